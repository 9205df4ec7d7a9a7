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

static struct shell_variable *variable_make(struct shell *shell, const char *name,
                                            struct error *reterr)
{
    for (uint32_t i = 0; i < shell->variable_count; i++)
        if (name_same(shell->variable[i].name, name)) return &shell->variable[i];
    if (shell->variable_count == SHELL_VARIABLES_MAX) {
        (void)settings_fail(shell->file, shell->line, STATUS_LIMIT, reterr,
                            "more than %d variables", SHELL_VARIABLES_MAX);
        return NULL;
    }
    struct shell_variable *made = &shell->variable[shell->variable_count++];
    made->name = name;
    return made;
}

/* The text behind what a variable has. */
static enum status text_append(struct shell *shell, struct shell_variable *variable,
                               const struct shell_word *word, struct error *reterr)
{
    struct shell_buffer buffer = {.is_word = true};
    struct shell_words whole = {.word = NULL};
    const struct shell_word *parts[] = {variable->words.count > 0 ? variable->words.word : NULL,
                                        word};
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t i = 0; parts[p] != NULL && i < parts[p]->length; i++)
            STATUS_TRY(shell_push(shell, &buffer, parts[p]->text[i], parts[p]->line[i], reterr));
    STATUS_TRY(shell_word_end(shell, &buffer, &whole, reterr));
    variable->words = whole;
    return STATUS_OK;
}

enum status shell_assign(struct shell *shell, const char *name, bool is_array, bool is_more,
                         const struct shell_words *words, struct error *reterr)
{
    struct shell_variable *variable = variable_make(shell, name, reterr);
    if (variable == NULL) return reterr->status;
    if (is_more && !is_array && !variable->is_array && words->count > 0)
        return text_append(shell, variable, words->word, reterr);
    if (!is_more) {
        variable->is_array = is_array;
        variable->words = (struct shell_words){.word = NULL};
    }
    for (uint32_t i = 0; i < words->count; i++)
        STATUS_TRY(shell_words_add(shell, &variable->words, &words->word[i], reterr));
    return STATUS_OK;
}

/* A value into the word; where it is not quoted, blanks in it end words. */
static enum status put_word(struct shell *shell, const struct shell_word *value,
                            struct shell_buffer *buffer, struct shell_words *words, bool is_quoted,
                            struct error *reterr)
{
    for (uint32_t i = 0; i < value->length; i++) {
        if (!is_quoted && strchr(" \t\n", value->text[i]) != NULL)
            STATUS_TRY(shell_word_end(shell, buffer, words, reterr));
        else
            STATUS_TRY(shell_push(shell, buffer, value->text[i], value->line[i], reterr));
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

/* All elements of an array, each a word. */
static enum status put_all(struct shell *shell, const struct shell_variable *variable,
                           struct shell_buffer *buffer, struct shell_words *words, bool is_quoted,
                           struct error *reterr)
{
    for (uint32_t i = 0; i < variable->words.count; i++) {
        if (i > 0) STATUS_TRY(shell_word_end(shell, buffer, words, reterr));
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
        if (!is_quoted && *given == ' ')
            STATUS_TRY(shell_word_end(shell, buffer, words, reterr));
        else
            STATUS_TRY(shell_push(shell, buffer, *given, shell->line, reterr));
    }
    return STATUS_OK;
}

/* What stands in braces after ":-", as if in quotes. */
static enum status put_otherwise(struct shell *shell, const char *text, size_t length,
                                 struct shell_buffer *buffer, struct shell_words *words,
                                 bool is_quoted, struct error *reterr)
{
    struct shell_words inner = {.word = NULL};
    const char *const at = shell->at, *const end = shell->end;
    uint32_t const line = shell->line;
    enum status status = STATUS_OK;
    shell->at = text;
    shell->end = text + length;
    while (status == STATUS_OK && shell->at < shell->end) {
        const char *const before = shell->at;
        status = shell_read_word(shell, &inner, reterr);
        if (shell->at == before) shell->at++;
    }
    shell->at = at;
    shell->end = end;
    shell->line = line;
    for (uint32_t i = 0; status == STATUS_OK && i < inner.count; i++) {
        if (i > 0 && is_quoted) status = shell_push(shell, buffer, ' ', line, reterr);
        if (i > 0 && !is_quoted) status = shell_word_end(shell, buffer, words, reterr);
        if (status == STATUS_OK)
            status = put_word(shell, &inner.word[i], buffer, words, is_quoted, reterr);
    }
    return status;
}

struct parameter {
    const char *name;
    bool is_all;           /* [@] or [*] */
    const char *otherwise; /* Behind ":-" or "-"; NULL: nothing. */
    size_t otherwise_length;
    const char *whole; /* As it is written, from the "$" on. */
    size_t whole_length;
};

static enum status put_parameter(struct shell *shell, const struct parameter *parameter,
                                 struct shell_buffer *buffer, struct shell_words *words,
                                 bool is_quoted, struct error *reterr)
{
    const struct shell_variable *variable = shell_variable_find(shell, parameter->name);
    const char *const given = variable == NULL ? given_find(shell, parameter->name) : NULL;
    bool const is_empty = variable != NULL && variable->words.count <= 1 &&
                          (variable->words.count == 0 || variable->words.word[0].length == 0);
    if (given != NULL) return put_given(shell, given, buffer, words, is_quoted, reterr);
    if (parameter->otherwise != NULL && (variable == NULL || is_empty))
        return put_otherwise(shell, parameter->otherwise, parameter->otherwise_length, buffer,
                             words, is_quoted, reterr);
    if (variable != NULL && parameter->is_all)
        return put_all(shell, variable, buffer, words, is_quoted, reterr);
    if (variable != NULL)
        return variable->words.count == 0
                   ? STATUS_OK
                   : put_word(shell, variable->words.word, buffer, words, is_quoted, reterr);
    shell->assumed += shell->unset_is_empty;
    if (shell->unset_is_empty || parameter->is_all) return STATUS_OK;
    return put_text(shell, parameter->whole, parameter->whole_length, buffer, reterr);
}

/* Behind an opening bracket: the place of the one that closes it, past texts in quotes. NULL: it is
 * open at the end. */
static const char *closing(const struct shell *shell, const char *at, char open, char close)
{
    uint32_t depth = 1;
    char quote = '\0';
    for (; at < shell->end; at++) {
        if (*at == '\\' && quote != '\'' && at + 1 < shell->end) {
            at++;
        } else if (quote != '\0') {
            if (*at == quote) quote = '\0';
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
        } else if (*at == open) {
            depth++;
        } else if (*at == close && --depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* As it is written: what podsim does not run. */
static enum status put_literally(struct shell *shell, const char *end, struct shell_buffer *buffer,
                                 struct error *reterr)
{
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
    const char *const end = closing(shell, start, '{', '}');
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
        at += 3;
    }
    if (end - at >= 2 && at[0] == ':' && (at[1] == '-' || at[1] == '=')) at++;
    if (at < end && (*at == '-' || *at == '=')) {
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
    const char *const end = closing(shell, shell->at + 2, '(', ')');
    if (end == NULL) return shell_refuse_end(shell, shell->line, "$(", reterr);
    const char *const start = shell->at + 3;
    if (!is_arithmetic || end <= start || end[-1] != ')')
        return put_literally(shell, end + 1, buffer, reterr);
    char number[NUMBER_BYTES];
    int64_t value = 0;
    const char *text = arena_format(shell->file->arena, "%.*s", (int)(end - 1 - start), start);
    if (text == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    if (!shell_arithmetic(shell, text, &value))
        return put_literally(shell, end + 1, buffer, reterr);
    for (const char *c = shell->at; c <= end; c++) shell->line += *c == '\n';
    shell->at = end + 1;
    int const length = snprintf(number, sizeof number, "%" PRId64, value);
    return put_text(shell, number, (size_t)length, buffer, reterr);
}

static enum status expand_name(struct shell *shell, struct shell_buffer *buffer,
                               struct shell_words *words, bool is_quoted, struct error *reterr)
{
    const char *at = shell->at + 1;
    bool const is_digit = at < shell->end && strchr("0123456789@*#?$!", *at) != NULL;
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
    if (length == 1) return shell_push(shell, buffer, '$', shell->line, reterr);
    return put_parameter(shell, &parameter, buffer, words, is_quoted, reterr);
}

static enum status expand_backquotes(struct shell *shell, struct shell_buffer *buffer,
                                     struct error *reterr)
{
    const char *end = memchr(shell->at + 1, '`', (size_t)(shell->end - shell->at - 1));
    if (end == NULL) return shell_refuse_end(shell, shell->line, "a command in `", reterr);
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
