/*
 * shell_variable.c: variables of a shell script, and which of them a command in a text has.
 *
 * A text behind `bash -c` is run by a bash of its own, which has what is exported, and its
 * arguments as $0, $1 and so on. What it assigns ends with it.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

static uint32_t variable_at(const struct shell *shell, const char *name)
{
    uint32_t i = 0;
    while (i < shell->variable_count && !name_same(shell->variable[i].name, name)) i++;
    return i;
}

/* What the environment has too stays exported when it is assigned. */
static bool is_given(const struct shell *shell, const char *name)
{
    for (uint32_t i = 0; i < shell->file->given_count; i++)
        if (name_same(shell->file->given[i].key, name)) return true;
    return false;
}

bool shell_variable_is_hidden(const struct shell *shell, const char *name)
{
    uint32_t const at = variable_at(shell, name);
    const struct shell_variable *const variable = &shell->variable[at];
    return at < shell->variable_count && variable->child < shell->run.children &&
           !variable->is_exported && !is_given(shell, name);
}

const struct shell_variable *shell_variable_find(const struct shell *shell, const char *name)
{
    uint32_t const at = variable_at(shell, name);
    return at < shell->variable_count && !shell_variable_is_hidden(shell, name)
               ? &shell->variable[at]
               : NULL;
}

void shell_variable_use(struct shell *shell, const char *name)
{
    uint32_t const at = variable_at(shell, name);
    if (at < shell->variable_count) shell->variable[at].is_used = true;
}

void shell_export(struct shell *shell, const char *name)
{
    uint32_t const at = variable_at(shell, name);
    if (at < shell->variable_count) shell->variable[at].is_exported = true;
}

static enum status undo_add(struct shell *shell, const struct shell_undo *undo,
                            struct error *reterr)
{
    struct shell_undo *const room = shell_room(shell, shell->undo, shell->undo_count,
                                               &shell->undo_capacity, sizeof *room, reterr);
    if (room == NULL) return STATUS_NO_MEMORY;
    shell->undo = room;
    shell->undo[shell->undo_count++] = *undo;
    return STATUS_OK;
}

void shell_restore(struct shell *shell, uint32_t mark)
{
    while (shell->undo_count > mark) {
        const struct shell_undo *const undo = &shell->undo[--shell->undo_count];
        shell->variable[undo->variable] = undo->before;
        if (undo->is_new) shell->variable_count--;
    }
}

/* The variable of the name, which is about to change. */
static enum status variable_make(struct shell *shell, const char *name,
                                 struct shell_variable **ret_variable, struct error *reterr)
{
    uint32_t const i = variable_at(shell, name);
    struct shell_undo const undo = {
        .variable = i, .is_new = i == shell->variable_count, .before = {.name = NULL}};
    if (i == SHELL_VARIABLES_MAX)
        return settings_fail(shell->file, shell->line, STATUS_LIMIT, reterr,
                             "more than %d variables", SHELL_VARIABLES_MAX);
    if (!undo.is_new && shell->variable[i].is_readonly)
        return settings_fail(shell->file, shell->line, STATUS_INVALID, reterr,
                             "%s is readonly, so bash assigns nothing here", name);
    STATUS_TRY(undo_add(shell, &undo, reterr));
    shell->undo[shell->undo_count - 1].before = shell->variable[i];
    if (undo.is_new) shell->variable[i] = (struct shell_variable){.name = name};
    shell->variable_count += undo.is_new;
    shell->variable[i].child = shell->run.children;
    if (shell->run.is_exporting || shell->run.exports_all) shell->variable[i].is_exported = true;
    shell->tally.assigned++;
    *ret_variable = &shell->variable[i];
    return STATUS_OK;
}

/* Text without a subscript: it replaces an array's first element, or stands behind that. */
static enum status text_assign(struct shell *shell, struct shell_variable *variable, bool is_more,
                               const struct shell_words *value, struct error *reterr)
{
    struct shell_words const before = variable->words;
    struct shell_words both = {.word = NULL}, after = {.word = NULL};
    struct shell_buffer buffer = {.is_word = true};
    bool const is_plain = !is_more && value->count == 1;
    if (is_plain) STATUS_TRY(shell_words_add(shell, &after, &value->word[0], reterr));
    if (is_more && before.count > 0)
        STATUS_TRY(shell_words_add(shell, &both, &before.word[0], reterr));
    for (uint32_t i = 0; !is_plain && i < value->count; i++)
        STATUS_TRY(shell_words_add(shell, &both, &value->word[i], reterr));
    for (uint32_t w = 0; w < both.count; w++) {
        const struct shell_word *const word = &both.word[w];
        buffer.is_open = buffer.is_open || word->is_open;
        for (uint32_t i = 0; i < word->length; i++)
            STATUS_TRY(shell_push(shell, &buffer, word->text[i], word->line[i], reterr));
    }
    if (!is_plain) STATUS_TRY(shell_word_end(shell, &buffer, &after, reterr));
    for (uint32_t i = 1; i < before.count; i++)
        STATUS_TRY(shell_words_add(shell, &after, &before.word[i], reterr));
    variable->words = after;
    return STATUS_OK;
}

enum status shell_assign(struct shell *shell, const char *name, bool is_array, bool is_more,
                         const struct shell_words *words, struct error *reterr)
{
    struct shell_variable *variable = NULL;
    STATUS_TRY(variable_make(shell, name, &variable, reterr));
    variable->is_unknown = variable->is_unknown && is_more;
    if (!is_array) return text_assign(shell, variable, is_more, words, reterr);
    if (!is_more) variable->words = (struct shell_words){.word = NULL};
    variable->is_array = true;
    for (uint32_t i = 0; i < words->count; i++)
        STATUS_TRY(shell_words_add(shell, &variable->words, &words->word[i], reterr));
    return STATUS_OK;
}

void shell_make_readonly(struct shell *shell, const char *name)
{
    uint32_t const at = variable_at(shell, name);
    if (at < shell->variable_count) shell->variable[at].is_readonly = true;
}

enum status shell_forget(struct shell *shell, const char *name, struct error *reterr)
{
    struct shell_variable *variable = NULL;
    struct shell_buffer buffer = {.is_open = true};
    STATUS_TRY(variable_make(shell, name, &variable, reterr));
    variable->is_unknown = true;
    variable->words = (struct shell_words){.word = NULL};
    STATUS_TRY(shell_push(shell, &buffer, '$', shell->line | SHELL_LEFT, reterr));
    for (const char *at = name; *at != '\0'; at++)
        STATUS_TRY(shell_push(shell, &buffer, *at, shell->line, reterr));
    return shell_word_end(shell, &buffer, &variable->words, reterr);
}
