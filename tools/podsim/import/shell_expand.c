/* shell_expand.c: variables of a shell script, and what stands for them. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum { NUMBER_BYTES = 32 };

const struct shell_variable *shell_variable_find(const struct shell *shell, const char *name)
{
    for (uint32_t i = 0; i < shell->variable_count; i++)
        if (name_same(shell->variable[i].name, name)) return &shell->variable[i];
    return NULL;
}

static enum status undo_add(struct shell *shell, const struct shell_undo *undo,
                            struct error *reterr)
{
    if (shell->undo_count == shell->undo_capacity) {
        uint32_t const capacity = shell->undo_capacity == 0 ? 8 : 2 * shell->undo_capacity;
        struct shell_undo *more = arena_take(shell->file->arena, capacity, sizeof *more);
        if (more == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
        if (shell->undo_count > 0) memcpy(more, shell->undo, shell->undo_count * sizeof *more);
        shell->undo = more;
        shell->undo_capacity = capacity;
    }
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
    uint32_t i = 0;
    while (i < shell->variable_count && !name_same(shell->variable[i].name, name)) i++;
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
    for (uint32_t i = 0; i < shell->variable_count; i++)
        if (name_same(shell->variable[i].name, name)) shell->variable[i].is_readonly = true;
}

enum status shell_forget(struct shell *shell, const char *name, struct error *reterr)
{
    struct shell_variable *variable = NULL;
    struct shell_buffer buffer = {.is_open = true};
    STATUS_TRY(variable_make(shell, name, &variable, reterr));
    variable->is_unknown = true;
    variable->words = (struct shell_words){.word = NULL};
    STATUS_TRY(shell_push(shell, &buffer, '$', shell->line, reterr));
    for (const char *at = name; *at != '\0'; at++)
        STATUS_TRY(shell_push(shell, &buffer, *at, shell->line, reterr));
    return shell_word_end(shell, &buffer, &variable->words, reterr);
}

/* --- Values --- */

/* A value into the word; where it is not quoted, blanks in it end words, but for those of a command
 * that stands there as it is written. */
static enum status put_word(struct shell *shell, const struct shell_word *value,
                            struct shell_buffer *buffer, struct shell_words *words, bool is_quoted,
                            struct error *reterr)
{
    bool const splits = !is_quoted && !shell->is_whole;
    buffer->is_open = buffer->is_open || value->is_open;
    for (uint32_t i = 0, whole = 0; i < value->length; i++) {
        whole -= whole > 0;
        if (splits && whole == 0) whole = shell_literal(shell, value, i);
        if (splits && whole == 0 && strchr(" \t\n", value->text[i]) != NULL) {
            STATUS_TRY(shell_word_end(shell, buffer, words, reterr));
            buffer->is_open = value->is_open;
        } else {
            STATUS_TRY(shell_push(shell, buffer, value->text[i], value->line[i], reterr));
        }
    }
    return STATUS_OK;
}

static enum status put_text(struct shell *shell, const char *text, size_t length,
                            struct shell_buffer *buffer, struct error *reterr)
{
    for (size_t i = 0; i < length; i++)
        STATUS_TRY(shell_push(shell, buffer, text[i], shell->line, reterr));
    return STATUS_OK;
}

/* All elements of an array, each a word; of "${NAME[*]}" in quotes, one word. */
static enum status put_all(struct shell *shell, const struct shell_variable *variable,
                           struct shell_buffer *buffer, struct shell_words *words, bool is_quoted,
                           bool is_joined, struct error *reterr)
{
    for (uint32_t i = 0; i < variable->words.count; i++) {
        if (i > 0 && is_joined && is_quoted)
            STATUS_TRY(shell_push(shell, buffer, ' ', shell->line, reterr));
        else if (i > 0)
            STATUS_TRY(shell_word_end(shell, buffer, words, reterr));
        STATUS_TRY(put_word(shell, &variable->words.word[i], buffer, words, is_quoted, reterr));
    }
    return STATUS_OK;
}

/* `--with NAME=VALUE`: of the environment, for what the file does not assign. */
static const char *given_find(struct shell *shell, const char *name)
{
    for (uint32_t i = 0; i < shell->file->given_count; i++)
        if (name_same(shell->file->given[i].key, name)) {
            shell->file->given[i].is_taken = true;
            return shell->file->given[i].value;
        }
    return NULL;
}

static enum status put_given(struct shell *shell, const char *given, struct shell_buffer *buffer,
                             struct shell_words *words, bool is_quoted, struct error *reterr)
{
    for (; *given != '\0'; given++) {
        if (!is_quoted && !shell->is_whole && *given == ' ')
            STATUS_TRY(shell_word_end(shell, buffer, words, reterr));
        else
            STATUS_TRY(shell_push(shell, buffer, *given, shell->line, reterr));
    }
    return STATUS_OK;
}

/* What stands in braces after ":-". In quotes of the whole "'" is no quote. */
static enum status put_otherwise(struct shell *shell, const char *text, size_t length,
                                 struct shell_buffer *buffer, struct shell_words *words,
                                 bool is_quoted, struct error *reterr)
{
    const char *const at = shell->at, *const end = shell->end;
    uint32_t const line = shell->line;
    enum status status = STATUS_OK;
    bool const splits = !is_quoted && !shell->is_whole;
    shell->at = text;
    shell->end = text + length;
    while (status == STATUS_OK && shell->at < shell->end) {
        char const c = *shell->at;
        if (splits && strchr(" \t\n", c) != NULL) {
            shell->at++;
            status = shell_word_end(shell, buffer, words, reterr);
        } else if (!is_quoted) {
            status = shell_read_part(shell, buffer, words, reterr);
        } else if (c == '$' || c == '`') {
            status = shell_expand(shell, buffer, words, is_quoted, reterr);
        } else if (c == '\\') {
            status = shell_read_backslash(shell, buffer, is_quoted, reterr);
        } else {
            if (c != '"') status = shell_push(shell, buffer, c, shell->line, reterr);
            shell->at++;
        }
    }
    shell->at = at;
    shell->end = end;
    shell->line = line;
    return status;
}

struct parameter {
    const char *name;
    bool is_all;           /* [@] or [*] */
    bool is_joined;        /* [*] */
    char otherwise_how;    /* '-', '=', '?' or '+'; 0: nothing stands behind the name. */
    bool counts_empty;     /* ":-": an empty value is as none. */
    const char *otherwise; /* What stands behind it. */
    size_t otherwise_length;
    const char *whole; /* As it is written, from the "$" on. */
    size_t whole_length;
};

static enum status put_whole(struct shell *shell, const struct parameter *parameter,
                             struct shell_buffer *buffer, struct error *reterr)
{
    buffer->is_open = true;
    return put_text(shell, parameter->whole, parameter->whole_length, buffer, reterr);
}

/* Variables that bash itself sets, whatever the environment has. */
static bool is_of_bash(const char *name)
{
    static const char *const names[] = {"?",
                                        "$",
                                        "!",
                                        "#",
                                        "-",
                                        "_",
                                        "0",
                                        "BASH",
                                        "BASHPID",
                                        "COMP_WORDBREAKS",
                                        "DIRSTACK",
                                        "EPOCHREALTIME",
                                        "EPOCHSECONDS",
                                        "EUID",
                                        "GROUPS",
                                        "HOSTNAME",
                                        "HOSTTYPE",
                                        "IFS",
                                        "LINENO",
                                        "MACHTYPE",
                                        "OPTERR",
                                        "OPTIND",
                                        "OSTYPE",
                                        "PATH",
                                        "PIPESTATUS",
                                        "PPID",
                                        "PS4",
                                        "PWD",
                                        "RANDOM",
                                        "SECONDS",
                                        "SHELL",
                                        "SHELLOPTS",
                                        "SHLVL",
                                        "SRANDOM",
                                        "TERM",
                                        "UID",
                                        NULL};
    return name_after(name, "BASH_") != NULL || names[name_find(name, names)] != NULL;
}

/* "${NAME:=value}" of a variable without a value: the value, which the variable keeps. */
static enum status put_assigned(struct shell *shell, const struct parameter *parameter,
                                struct shell_buffer *buffer, struct shell_words *words,
                                bool is_quoted, struct error *reterr)
{
    struct shell_buffer value = {.is_word = true};
    struct shell_words made = {.word = NULL};
    bool const is_whole = shell->is_whole;
    shell->is_whole = true;
    enum status const status = put_otherwise(
        shell, parameter->otherwise, parameter->otherwise_length, &value, &made, is_quoted, reterr);
    shell->is_whole = is_whole;
    STATUS_TRY(status);
    STATUS_TRY(shell_word_end(shell, &value, &made, reterr));
    STATUS_TRY(shell_join(shell, &made, reterr));
    shell->tally.lost += shell->run.skipping > 0;
    if (shell->run.skipping == 0)
        STATUS_TRY(shell_assign(shell, parameter->name, /* is_array= */ false, /* is_more= */ false,
                                &made, reterr));
    return put_word(shell, &made.word[0], buffer, words, is_quoted, reterr);
}

static enum status put_value(struct shell *shell, const struct parameter *parameter,
                             const struct shell_variable *variable, struct shell_buffer *buffer,
                             struct shell_words *words, bool is_quoted, struct error *reterr)
{
    if (parameter->is_all) {
        shell->is_nothing = variable->words.count == 0 && !parameter->is_joined;
        return put_all(shell, variable, buffer, words, is_quoted, parameter->is_joined, reterr);
    }
    return variable->words.count == 0
               ? STATUS_OK
               : put_word(shell, variable->words.word, buffer, words, is_quoted, reterr);
}

static enum status put_parameter(struct shell *shell, const struct parameter *parameter,
                                 struct shell_buffer *buffer, struct shell_words *words,
                                 bool is_quoted, struct error *reterr)
{
    const struct shell_variable *variable = shell_variable_find(shell, parameter->name);
    const char *const given =
        variable == NULL || variable->is_unknown ? given_find(shell, parameter->name) : NULL;
    if (given == NULL && variable == NULL && is_of_bash(parameter->name))
        return put_whole(shell, parameter, buffer, reterr);
    const struct shell_word *const first =
        variable != NULL && variable->words.count > 0 ? variable->words.word : NULL;
    bool const is_one = first == NULL || variable->words.count == 1 || !parameter->is_all;
    bool const has_text =
        given != NULL ? given[0] != '\0' : first != NULL && (first->length > 0 || !is_one);
    shell->tally.guessed += shell->unset_is_empty && variable == NULL && given == NULL;
    bool const is_set = parameter->counts_empty ? has_text : given != NULL || first != NULL;
    char const how = parameter->otherwise_how;
    if (how != '\0' && first != NULL && first->is_open && given == NULL)
        return put_whole(shell, parameter, buffer, reterr);
    if (how == '=' && !is_set && !parameter->is_all)
        return put_assigned(shell, parameter, buffer, words, is_quoted, reterr);
    if ((how == '-' && !is_set) || (how == '+' && is_set))
        return put_otherwise(shell, parameter->otherwise, parameter->otherwise_length, buffer,
                             words, is_quoted, reterr);
    if (how == '+' && (variable != NULL || given != NULL)) return STATUS_OK;
    if (given != NULL) return put_given(shell, given, buffer, words, is_quoted, reterr);
    if (variable != NULL && (is_set || how == '\0'))
        return put_value(shell, parameter, variable, buffer, words, is_quoted, reterr);
    bool const is_empty = shell->unset_is_empty && how != '?' && how != '=';
    shell->tally.assumed += is_empty && shell->run.skipping == 0;
    shell->is_nothing = parameter->is_all && !parameter->is_joined;
    if (is_empty || (parameter->is_all && how == '\0')) return STATUS_OK;
    return put_whole(shell, parameter, buffer, reterr);
}

/* As it is written: what podsim does not run. */
static enum status put_literally(struct shell *shell, const char *end, struct shell_buffer *buffer,
                                 struct error *reterr)
{
    buffer->is_open = true;
    for (; shell->at < end; shell->at++) {
        STATUS_TRY(
            shell_push(shell, buffer, *shell->at == '\n' ? ' ' : *shell->at, shell->line, reterr));
        shell->line += *shell->at == '\n';
    }
    return STATUS_OK;
}

static enum status expand_braces(struct shell *shell, struct shell_buffer *buffer,
                                 struct shell_words *words, bool is_quoted, struct error *reterr)
{
    const char *const start = shell->at + 2;
    const char *const end = shell_closing(shell, start, '{', '}');
    if (end == NULL) return shell_refuse_end(shell, shell->line, "${", reterr);
    const char *at = start;
    while (at < end && (isalnum((unsigned char)*at) || *at == '_')) at++;
    struct parameter parameter = {
        .name = arena_format(shell->file->arena, "%.*s", (int)(at - start), start),
        .whole = shell->at,
        .whole_length = (size_t)(end + 1 - shell->at),
    };
    if (parameter.name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    if (end - at >= 3 && at[0] == '[' && (at[1] == '@' || at[1] == '*') && at[2] == ']') {
        parameter.is_all = true;
        parameter.is_joined = at[1] == '*';
        at += 3;
    }
    parameter.counts_empty = end - at >= 2 && at[0] == ':' && strchr("-=?+", at[1]) != NULL;
    at += parameter.counts_empty;
    if (at < end && strchr("-=?+", *at) != NULL) {
        parameter.otherwise_how = *at;
        parameter.otherwise = at + 1;
        parameter.otherwise_length = (size_t)(end - at - 1);
        at = end;
    }
    if (at != end || parameter.name[0] == '\0')
        return put_literally(shell, end + 1, buffer, reterr);
    uint32_t lines = 0;
    for (const char *c = shell->at; c <= end; c++) lines += *c == '\n';
    enum status const status = put_parameter(shell, &parameter, buffer, words, is_quoted, reterr);
    shell->at = end + 1;
    shell->line += lines;
    return status;
}

static enum status expand_brackets(struct shell *shell, struct shell_buffer *buffer,
                                   struct error *reterr)
{
    bool const is_arithmetic = shell->at + 2 < shell->end && shell->at[2] == '(';
    const char *const end = shell_closing(shell, shell->at + 2, '(', ')');
    if (end == NULL) return shell_refuse_end(shell, shell->line, "$(", reterr);
    const char *const start = shell->at + 3;
    shell->tally.substituted += !is_arithmetic;
    if (!is_arithmetic || end <= start || end[-1] != ')')
        return put_literally(shell, end + 1, buffer, reterr);
    char number[NUMBER_BYTES];
    int64_t value = 0;
    const char *text = arena_format(shell->file->arena, "%.*s", (int)(end - 1 - start), start);
    if (text == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    if (!shell_arithmetic(shell, text, &value)) {
        bool const changes = shell_arithmetic_changes(text);
        shell->tally.lost += changes && shell->run.skipping > 0;
        if (changes && shell->run.skipping == 0)
            STATUS_TRY(shell_say(shell, text, "", shell->line, SHELL_NOT_RUN, reterr));
        return put_literally(shell, end + 1, buffer, reterr);
    }
    for (const char *c = shell->at; c <= end; c++) shell->line += *c == '\n';
    shell->at = end + 1;
    int const length = snprintf(number, sizeof number, "%" PRId64, value);
    return put_text(shell, number, (size_t)length, buffer, reterr);
}

static enum status expand_name(struct shell *shell, struct shell_buffer *buffer,
                               struct shell_words *words, bool is_quoted, struct error *reterr)
{
    const char *at = shell->at + 1;
    bool const is_digit = at < shell->end && strchr("0123456789@*#?$!-", *at) != NULL;
    if (is_digit)
        at++;
    else
        while (at < shell->end && (isalnum((unsigned char)*at) || *at == '_')) at++;
    size_t const length = (size_t)(at - shell->at);
    struct parameter const parameter = {
        .name = arena_format(shell->file->arena, "%.*s", (int)(length - 1), shell->at + 1),
        .whole = shell->at,
        .whole_length = length,
    };
    if (parameter.name == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    shell->at = at;
    buffer->is_open = buffer->is_open || (length == 1 && *at == '['); /* $[1+2] */
    if (length == 1) return shell_push(shell, buffer, '$', shell->line, reterr);
    return put_parameter(shell, &parameter, buffer, words, is_quoted, reterr);
}

static enum status expand_backquotes(struct shell *shell, struct shell_buffer *buffer,
                                     struct error *reterr)
{
    const char *end = memchr(shell->at + 1, '`', (size_t)(shell->end - shell->at - 1));
    if (end == NULL) return shell_refuse_end(shell, shell->line, "a command in `", reterr);
    shell->tally.substituted++;
    return put_literally(shell, end + 1, buffer, reterr);
}

enum status shell_expand(struct shell *shell, struct shell_buffer *buffer,
                         struct shell_words *words, bool is_quoted, struct error *reterr)
{
    char const next = shell->at + 1 < shell->end ? shell->at[1] : '\0';
    if (shell->depth == IMPORT_DEPTH_MAX)
        return settings_fail(shell->file, shell->line, STATUS_LIMIT, reterr,
                             "variables within one another more than %d deep", IMPORT_DEPTH_MAX);
    shell->depth++;
    enum status status = STATUS_OK;
    if (*shell->at == '`')
        status = expand_backquotes(shell, buffer, reterr);
    else if (next == '{')
        status = expand_braces(shell, buffer, words, is_quoted, reterr);
    else if (next == '(')
        status = expand_brackets(shell, buffer, reterr);
    else
        status = expand_name(shell, buffer, words, is_quoted, reterr);
    shell->depth--;
    return status;
}
