/* shell_command.c: the command of a shell script that is wanted, and its arguments as settings. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

static bool is_program(const struct shell_word *word)
{
    return word->length > 3 && name_same(word->text + word->length - 3, ".py");
}

/* A command in one text, as `bash -c "$COMMAND"` has it: its words. */
static enum status split_text(struct shell *shell, const struct shell_word *word,
                              struct shell_words *words, struct error *reterr)
{
    struct shell_buffer buffer = {.is_open = word->is_open};
    for (uint32_t i = 0; i < word->length; i++) {
        buffer.is_open = word->is_open;
        if (strchr(" \t\n;", word->text[i]) != NULL)
            STATUS_TRY(shell_word_end(shell, &buffer, words, reterr));
        else
            STATUS_TRY(shell_push(shell, &buffer, word->text[i], word->line[i], reterr));
    }
    return shell_word_end(shell, &buffer, words, reterr);
}

static bool holds_program(const struct shell_word *word)
{
    const char *found = strstr(word->text, ".py");
    return found != NULL && strpbrk(word->text, " \n") != NULL &&
           (found[3] == ' ' || found[3] == '\n');
}

bool shell_has_program(const struct shell_words *words)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (is_program(&words->word[i]) || holds_program(&words->word[i])) return true;
    return false;
}

/* An operator among words, which `eval` and `bash -c` end a command at. */
static bool is_operator(const struct shell_word *word)
{
    return word->length > 0 && (strchr("|&<>", word->text[0]) != NULL ||
                                name_after(word->text, "2>") != NULL || name_same(word->text, ";"));
}

enum status shell_keep(struct shell *shell, const struct shell_words *words, struct error *reterr)
{
    struct shell_words split = {.word = NULL};
    bool runs = false, is_model = false;
    for (uint32_t i = 0; i < words->count; i++) {
        if (holds_program(&words->word[i]))
            STATUS_TRY(split_text(shell, &words->word[i], &split, reterr));
        else
            STATUS_TRY(shell_words_add(shell, &split, &words->word[i], reterr));
    }
    for (uint32_t i = 0; i < split.count; i++) {
        if (is_operator(&split.word[i])) split.count = i;
        if (i == split.count) break;
        runs = runs || is_program(&split.word[i]);
        is_model = is_model || name_after(split.word[i].text, "--num-layers") != NULL ||
                   name_after(split.word[i].text, "--micro-batch-size") != NULL;
    }
    bool const begins = split.count > 0 && name_after(split.word[0].text, "--") != NULL;
    if (!runs && !begins) return STATUS_OK;
    if (!runs && (shell->commands == 0 || shell->are_arguments)) {
        shell->are_arguments = true;
        shell->commands = 1;
        for (uint32_t i = 0; i < split.count; i++)
            STATUS_TRY(shell_words_add(shell, &shell->command, &split.word[i], reterr));
        return STATUS_OK;
    }
    if (!runs && !is_model)
        return shell_say(shell, split.word[0].text, split.count > 1 ? split.word[1].text : "",
                         split.word[0].line[0],
                         "no command has it: the line before ends without a backslash", reterr);
    if (!is_model && shell->commands > 0) return STATUS_OK;
    if (is_model && shell->commands > 1)
        return settings_fail(shell->file, split.word[0].line[0], STATUS_UNSUPPORTED, reterr,
                             "a second command with a model; the first is in line %u, and a file "
                             "of one command makes one scenario",
                             shell->command.word[0].line[0]);
    shell->command = split;
    shell->commands = is_model ? 2 : 1;
    return STATUS_OK;
}

enum status shell_say(struct shell *shell, const char *text, const char *value, uint32_t line,
                      const char *because, struct error *reterr)
{
    struct import_setting const setting = {.key = text,
                                           .value = value,
                                           .line = line,
                                           .outcome = IMPORT_NOT_EXPRESSED,
                                           .because = because};
    return settings_add(shell->file, &setting, reterr);
}

/* What podsim does not know by itself: any arguments, or none. */
static bool adds_arguments(const struct shell_word *word)
{
    return word->is_open && word->length > 0 && strchr("$`{", word->text[0]) != NULL;
}

/* "$NAME", "${NAME}", which --with may give. */
static bool is_variable(const struct shell_word *word)
{
    size_t const length = strcspn(word->text, "(`%#/[^,");
    return word->text[0] == '$' && word->text[length] == '\0';
}

enum status shell_to_settings(struct shell *shell, struct error *reterr)
{
    const struct shell_words *words = &shell->command;
    struct arena *arena = shell->file->arena;
    for (uint32_t i = 0; i < words->count; i++) {
        const struct shell_word *word = &words->word[i];
        if (adds_arguments(word))
            STATUS_TRY(shell_say(shell, word->text, "", word->line[0],
                                 is_variable(word) ? IMPORT_OPEN
                                                   : "podsim does not know what it stands for",
                                 reterr));
        if (is_program(word)) shell->file->program = word->text;
        if (is_program(word)) shell->file->program_line = word->line[0];
        if (name_after(word->text, "--") == NULL || word->length == 2) continue;
        size_t const name = strcspn(word->text, "=");
        struct shell_words more = {.word = &words->word[i + 1]};
        const char *value = word->text[name] == '=' ? word->text + name + 1 : "";
        while (i + 1 < words->count && name_after(words->word[i + 1].text, "--") == NULL &&
               !is_program(&words->word[i + 1]) &&
               (more.count == 0 || !adds_arguments(&words->word[i + 1]))) {
            more.count++;
            i++;
        }
        uint32_t const values = more.count + (word->text[name] == '=');
        if (more.count > 0) STATUS_TRY(shell_join(shell, &more, reterr));
        if (more.count > 0) value = more.word[0].text;
        struct import_setting const setting = {
            .key = arena_format(arena, "%.*s", (int)name, word->text),
            .value = value,
            .line = word->line[0],
            .form = values == 0   ? IMPORT_FLAG
                    : values == 1 ? IMPORT_TEXT
                                  : IMPORT_LIST};
        if (setting.key == NULL || value == NULL)
            return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
        STATUS_TRY(settings_add(shell->file, &setting, reterr));
    }
    return STATUS_OK;
}

enum status shell_keep_variables(struct shell *shell, struct error *reterr)
{
    for (uint32_t i = 0; shell->commands == 0 && i < shell->variable_count; i++)
        for (uint32_t w = 0; w < shell->variable[i].words.count; w++)
            if (holds_program(&shell->variable[i].words.word[w]))
                STATUS_TRY(shell_keep(shell, &shell->variable[i].words, reterr));
    if (shell->commands > 0) return STATUS_OK;
    for (uint32_t i = 0; i < shell->variable_count; i++) {
        struct shell_words split = {.word = NULL};
        for (uint32_t w = 0; w < shell->variable[i].words.count; w++)
            STATUS_TRY(split_text(shell, &shell->variable[i].words.word[w], &split, reterr));
        STATUS_TRY(shell_keep(shell, &split, reterr));
    }
    return STATUS_OK;
}
