/* shell_word.c: words of a shell script. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tools/podsim/import/shell.h"

enum { BUFFER_BYTES_MIN = 64 };

static enum status no_memory(struct error *reterr)
{
    return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
}

enum status shell_refuse_end(struct shell *shell, uint32_t line, const char *what,
                             struct error *reterr)
{
    return settings_fail(shell->file, line, STATUS_INVALID, reterr,
                         "%s is open at the end of the file", what);
}

enum status shell_push(struct shell *shell, struct shell_buffer *buffer, char c, uint32_t line,
                       struct error *reterr)
{
    if (++shell->bytes > SHELL_BYTES_MAX)
        return settings_fail(shell->file, line, STATUS_LIMIT, reterr,
                             "variables expand to more than %d MiB", SHELL_BYTES_MAX >> 20);
    if (buffer->length + 1 >= buffer->capacity) {
        uint32_t const capacity = buffer->capacity == 0 ? BUFFER_BYTES_MIN : 2 * buffer->capacity;
        char *text = arena_take(shell->file->arena, capacity, sizeof *text);
        uint32_t *lines = arena_take(shell->file->arena, capacity, sizeof *lines);
        if (text == NULL || lines == NULL) return no_memory(reterr);
        if (buffer->length > 0) {
            memcpy(text, buffer->text, buffer->length);
            memcpy(lines, buffer->line, buffer->length * sizeof *lines);
        }
        buffer->text = text;
        buffer->line = lines;
        buffer->capacity = capacity;
    }
    buffer->is_word = true;
    buffer->text[buffer->length] = c;
    buffer->line[buffer->length++] = line;
    buffer->text[buffer->length] = '\0';
    return STATUS_OK;
}

enum status shell_words_add(struct shell *shell, struct shell_words *words,
                            const struct shell_word *word, struct error *reterr)
{
    if (words->count == SHELL_WORDS_MAX)
        return settings_fail(shell->file, shell->line, STATUS_LIMIT, reterr,
                             "a command of more than %d words", SHELL_WORDS_MAX);
    if (words->count == words->capacity) {
        uint32_t const capacity = words->capacity == 0 ? 8 : 2 * words->capacity;
        struct shell_word *more = arena_take(shell->file->arena, capacity, sizeof *more);
        if (more == NULL) return no_memory(reterr);
        if (words->count > 0) memcpy(more, words->word, words->count * sizeof *more);
        words->word = more;
        words->capacity = capacity;
    }
    words->word[words->count++] = *word;
    return STATUS_OK;
}

enum status shell_word_end(struct shell *shell, struct shell_buffer *buffer,
                           struct shell_words *words, struct error *reterr)
{
    struct shell_word word = {"", NULL, 0};
    if (!buffer->is_word) return STATUS_OK;
    if (buffer->length == 0) {
        uint32_t *line = arena_take(shell->file->arena, 1, sizeof *line);
        if (line == NULL) return no_memory(reterr);
        *line = shell->line;
        word.line = line;
    } else {
        word = (struct shell_word){buffer->text, buffer->line, buffer->length};
    }
    *buffer = (struct shell_buffer){.text = NULL};
    return shell_words_add(shell, words, &word, reterr);
}

void shell_skip_blanks(struct shell *shell)
{
    while (shell->at < shell->end) {
        if (*shell->at == ' ' || *shell->at == '\t' || *shell->at == '\r') {
            shell->at++;
        } else if (*shell->at == '\\' && shell->at + 1 < shell->end && shell->at[1] == '\n') {
            shell->at += 2;
            shell->line++;
        } else {
            return;
        }
    }
}

static enum status read_single(struct shell *shell, struct shell_buffer *buffer,
                               struct error *reterr)
{
    uint32_t const line = shell->line;
    buffer->is_word = true;
    for (shell->at++; shell->at < shell->end && *shell->at != '\''; shell->at++) {
        STATUS_TRY(shell_push(shell, buffer, *shell->at, shell->line, reterr));
        shell->line += *shell->at == '\n';
    }
    if (shell->at == shell->end) return shell_refuse_end(shell, line, "a text in '", reterr);
    shell->at++;
    return STATUS_OK;
}

/* A backslash outside quotes, or before what it guards within. */
static enum status read_backslash(struct shell *shell, struct shell_buffer *buffer, bool is_quoted,
                                  struct error *reterr)
{
    char const next = shell->at + 1 < shell->end ? shell->at[1] : '\n';
    bool const guards = !is_quoted || strchr("$`\"\\\n", next) != NULL;
    if (!guards) STATUS_TRY(shell_push(shell, buffer, '\\', shell->line, reterr));
    if (next != '\n') STATUS_TRY(shell_push(shell, buffer, next, shell->line, reterr));
    shell->line += next == '\n';
    shell->at += shell->at + 1 < shell->end ? 2 : 1;
    return STATUS_OK;
}

static enum status read_double(struct shell *shell, struct shell_buffer *buffer,
                               struct shell_words *words, struct error *reterr)
{
    uint32_t const line = shell->line;
    buffer->is_word = true;
    for (shell->at++; shell->at < shell->end && *shell->at != '"';) {
        if (*shell->at == '$' || *shell->at == '`') {
            STATUS_TRY(shell_expand(shell, buffer, words, /* is_quoted= */ true, reterr));
        } else if (*shell->at == '\\') {
            STATUS_TRY(read_backslash(shell, buffer, /* is_quoted= */ true, reterr));
        } else {
            STATUS_TRY(shell_push(shell, buffer, *shell->at, shell->line, reterr));
            shell->line += *shell->at == '\n';
            shell->at++;
        }
    }
    if (shell->at >= shell->end) return shell_refuse_end(shell, line, "a text in \"", reterr);
    shell->at++;
    return STATUS_OK;
}

enum status shell_read_word(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    static const char ends[] = " \t\r\n;&|<>()";
    struct shell_buffer buffer = {.text = NULL};
    while (shell->at < shell->end && strchr(ends, *shell->at) == NULL) {
        if (*shell->at == '\'')
            STATUS_TRY(read_single(shell, &buffer, reterr));
        else if (*shell->at == '"')
            STATUS_TRY(read_double(shell, &buffer, words, reterr));
        else if (*shell->at == '\\')
            STATUS_TRY(read_backslash(shell, &buffer, /* is_quoted= */ false, reterr));
        else if (*shell->at == '$' || *shell->at == '`')
            STATUS_TRY(shell_expand(shell, &buffer, words, /* is_quoted= */ false, reterr));
        else
            STATUS_TRY(shell_push(shell, &buffer, *shell->at++, shell->line, reterr));
    }
    return shell_word_end(shell, &buffer, words, reterr);
}

/* One text, whatever blanks its variables have. */
enum status shell_join(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    struct shell_buffer buffer = {.is_word = true};
    struct shell_words whole = {.word = NULL};
    for (uint32_t i = 0; i < words->count; i++) {
        const struct shell_word *word = &words->word[i];
        if (i > 0) STATUS_TRY(shell_push(shell, &buffer, ' ', word->line[0], reterr));
        for (uint32_t c = 0; c < word->length; c++)
            STATUS_TRY(shell_push(shell, &buffer, word->text[c], word->line[c], reterr));
    }
    STATUS_TRY(shell_word_end(shell, &buffer, &whole, reterr));
    *words = whole;
    return STATUS_OK;
}
