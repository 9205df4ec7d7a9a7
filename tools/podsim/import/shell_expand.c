/* shell_expand.c: what stands for variables, commands and arithmetic in a shell script. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum { NUMBER_BYTES = 32 };

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
    STATUS_TRY(shell_push(shell, buffer, '$', shell->line | SHELL_LEFT, reterr));
    return put_text(shell, parameter->whole + 1, parameter->whole_length - 1, buffer, reterr);
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
    if (shell_left(shell, parameter->whole) != 0)
        return put_whole(shell, parameter, buffer, reterr);
    const struct shell_variable *variable = shell_variable_find(shell, parameter->name);
    shell_variable_use(shell, parameter->name);
    const char *const given =
        variable == NULL || variable->is_unknown ? given_find(shell, parameter->name) : NULL;
    if (given == NULL && shell->run.skipping == 0 &&
        shell_variable_is_hidden(shell, parameter->name))
        STATUS_TRY(shell_say(shell, parameter->name, "", shell->line,
                             "the script assigns it without `export`, so a text that another shell "
                             "runs does not have it",
                             reterr));
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
    if (parameter.name == NULL) return error_no_memory(reterr, "");
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
    if (*start == '@' || *start == '*') shell_variable_use(shell, *start == '@' ? "@" : "*");
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
    if (text == NULL) return error_no_memory(reterr, "");
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
    struct parameter parameter = {
        .name = arena_format(shell->file->arena, "%.*s", (int)(length - 1), shell->at + 1),
        .whole = shell->at,
        .whole_length = length,
    };
    if (parameter.name == NULL) return error_no_memory(reterr, "");
    /* All arguments of a text; those of the script are not known. */
    bool const is_all = length == 2 && (shell->at[1] == '@' || shell->at[1] == '*');
    parameter.is_all = is_all && shell_variable_find(shell, parameter.name) != NULL;
    parameter.is_joined = parameter.is_all && shell->at[1] == '*';
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
