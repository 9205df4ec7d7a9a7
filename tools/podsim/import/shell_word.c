/* shell_word.c: words of a shell script. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tools/podsim/import/shell.h"

enum { BUFFER_BYTES_MIN = 64, PATTERN_BYTES_MAX = 256, FOLLOWING_BYTES_MAX = 1 << 13 };

enum status shell_refuse_end(struct shell *shell, uint32_t line, const char *what,
                             struct error *reterr)
{
    return settings_fail(shell->file, line, STATUS_INVALID, reterr, "%s is open at the end of %s",
                         what, shell->run.source != NULL ? "a command's text" : "the file");
}

void shell_line_find(struct shell *shell)
{
    const struct shell_word *const of = shell->run.source;
    if (of != NULL && shell->at >= of->text && shell->at < of->text + of->length)
        shell->line = of->line[shell->at - of->text] & ~SHELL_LEFT;
}

uint32_t shell_left(const struct shell *shell, const char *at)
{
    const struct shell_word *const of = shell->run.source;
    bool const is_inside = of != NULL && at >= of->text && at < of->text + of->length;
    return is_inside ? of->line[at - of->text] & SHELL_LEFT : 0;
}

uint32_t shell_word_line(const struct shell_word *word)
{
    return word->line[0] & ~SHELL_LEFT;
}

enum status shell_push(struct shell *shell, struct shell_buffer *buffer, char c, uint32_t line,
                       struct error *reterr)
{
    if (++shell->bytes > SHELL_BYTES_MAX)
        return settings_fail(shell->file, line & ~SHELL_LEFT, STATUS_LIMIT, reterr,
                             "variables expand to more than %d MiB", SHELL_BYTES_MAX >> 20);
    if (buffer->length + 1 >= buffer->capacity) {
        uint32_t const capacity = buffer->capacity == 0 ? BUFFER_BYTES_MIN : 2 * buffer->capacity;
        char *text = arena_take(shell->file->arena, capacity, sizeof *text);
        uint32_t *lines = arena_take(shell->file->arena, capacity, sizeof *lines);
        if (text == NULL || lines == NULL) return error_no_memory(reterr, "");
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

void *shell_room(struct shell *shell, void *items, uint32_t count, uint32_t *capacity,
                 size_t item_bytes, struct error *reterr)
{
    if (count < *capacity) return items;
    uint32_t const more = *capacity == 0 ? 8 : 2 * *capacity;
    void *const room = arena_take(shell->file->arena, more, item_bytes);
    if (room == NULL) {
        (void)error_no_memory(reterr, "");
        return NULL;
    }
    if (count > 0) memcpy(room, items, count * item_bytes);
    *capacity = more;
    return room;
}

enum status shell_words_add(struct shell *shell, struct shell_words *words,
                            const struct shell_word *word, struct error *reterr)
{
    if (words->count == SHELL_WORDS_MAX)
        return settings_fail(shell->file, shell->line, STATUS_LIMIT, reterr,
                             "a command of more than %d words", SHELL_WORDS_MAX);
    struct shell_word *const room =
        shell_room(shell, words->word, words->count, &words->capacity, sizeof *room, reterr);
    if (room == NULL) return STATUS_NO_MEMORY;
    words->word = room;
    words->word[words->count++] = *word;
    return STATUS_OK;
}

enum status shell_word_end(struct shell *shell, struct shell_buffer *buffer,
                           struct shell_words *words, struct error *reterr)
{
    struct shell_word word = {.text = "", .is_open = buffer->is_open};
    if (!buffer->is_word) return STATUS_OK;
    if (buffer->length == 0) {
        uint32_t *line = arena_take(shell->file->arena, 1, sizeof *line);
        if (line == NULL) return error_no_memory(reterr, "");
        *line = shell->line;
        word.line = line;
    } else {
        word.text = buffer->text;
        word.line = buffer->line;
        word.length = buffer->length;
    }
    *buffer = (struct shell_buffer){.text = NULL};
    return shell_words_add(shell, words, &word, reterr);
}

char shell_peek(const struct shell *shell, uint32_t ahead)
{
    return (uint64_t)(shell->end - shell->at) > ahead ? shell->at[ahead] : '\0';
}

bool shell_is_at(const struct shell *shell, const char *word)
{
    size_t const length = strlen(word);
    if ((uint64_t)(shell->end - shell->at) < length) return false;
    char const next = shell_peek(shell, (uint32_t)length);
    return memcmp(shell->at, word, length) == 0 &&
           (next == '\0' || strchr(" \t\r\n;&|()<>", next) != NULL);
}

static void skip_line(struct shell *shell)
{
    while (shell->at < shell->end && *shell->at != '\n') shell->at++;
}

/* Past the lines of a text that follows a command, up to the one that ends it. */
static void skip_ended_text(struct shell *shell)
{
    size_t const length = strlen(shell->ending.text);
    while (shell->at < shell->end) {
        const char *line = shell->at;
        skip_line(shell);
        while (shell->ending.has_tabs && line < shell->at && *line == '\t') line++;
        bool const is_end =
            (size_t)(shell->at - line) == length && memcmp(line, shell->ending.text, length) == 0;
        if (shell->at < shell->end) shell->at++;
        shell->line++;
        if (is_end) break;
    }
    shell->ending.text = NULL;
}

void shell_skip_lines(struct shell *shell)
{
    for (;;) {
        shell_skip_blanks(shell);
        shell_line_find(shell);
        char const next = shell_peek(shell, 1);
        if (shell_peek(shell, 0) == '#') {
            skip_line(shell);
        } else if (shell_peek(shell, 0) == '\n') {
            shell->at++;
            shell->line++;
            if (shell->ending.text != NULL) skip_ended_text(shell);
        } else if (shell_peek(shell, 0) == ';' && next != ';' && next != '&') {
            shell->at++;
        } else {
            return;
        }
    }
}

/* Behind "<<" in $( ): the last byte of the text that follows the line; NULL: none does. */
static const char *followed_to(const struct shell *shell, const char *at)
{
    char ending[PATTERN_BYTES_MAX];
    size_t length = 0;
    at += strspn(at, "-");
    at += strspn(at, " \t'\"\\");
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    if (length == 0 || length >= sizeof ending || isdigit((unsigned char)*at)) return NULL;
    if (at >= shell->end) return NULL;
    memcpy(ending, at, length);
    const char *const last =
        shell->end - at > FOLLOWING_BYTES_MAX ? at + FOLLOWING_BYTES_MAX : shell->end;
    while ((at = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        at++;
        const char *const start = at + strspn(at, "\t");
        if (strncmp(start, ending, length) == 0 && start[length] == '\n') return start + length;
    }
    return NULL;
}

const char *shell_closing(const struct shell *shell, const char *at, char open, char close)
{
    uint32_t depth = 1;
    char quote = '\0';
    bool has_texts = open == '(';
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
        } else if (open == '(' && *at == '#' && isspace((unsigned char)at[-1])) {
            at += strcspn(at, "\n") - 1; /* A comment, whatever quotes it has. */
        } else if (has_texts && at[0] == '<' && at[1] == '<' && at[2] != '<' && at[-1] != '<') {
            const char *const end = followed_to(shell, at + 2);
            has_texts = end != NULL;
            at = has_texts ? end : at;
        }
    }
    return NULL;
}

uint32_t shell_literal(struct shell *shell, const struct shell_word *word, uint32_t at)
{
    const char *const start = word->text + at, *const end = shell->end, *last = NULL;
    char const opening = start[0] == '$' ? start[1] : '\0';
    bool const is_behind = shell->unclosed != NULL && shell->unclosed >= word->text &&
                           shell->unclosed <= start; /* In the same word. */
    if (!word->is_open || is_behind) return 0;
    shell->end = word->text + word->length;
    if (start[0] == '`')
        last = memchr(start + 1, '`', word->length - at - 1);
    else if (opening == '(' || opening == '{')
        last = shell_closing(shell, start + 2, opening, opening == '(' ? ')' : '}');
    shell->end = end;
    if (last == NULL && (start[0] == '`' || opening == '(' || opening == '{'))
        shell->unclosed = start;
    return last == NULL ? 0 : (uint32_t)(last + 1 - start);
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
        uint32_t const of_byte = shell->line | shell_left(shell, shell->at);
        STATUS_TRY(shell_push(shell, buffer, *shell->at, of_byte, reterr));
        shell->line += *shell->at == '\n';
    }
    if (shell->at == shell->end) return shell_refuse_end(shell, line, "a text in '", reterr);
    shell->at++;
    return STATUS_OK;
}

enum status shell_read_backslash(struct shell *shell, struct shell_buffer *buffer, bool is_quoted,
                                 struct error *reterr)
{
    char const next = shell->at + 1 < shell->end ? shell->at[1] : '\n';
    bool const guards = !is_quoted || strchr("$`\"\\\n", next) != NULL;
    if (!guards) STATUS_TRY(shell_push(shell, buffer, '\\', shell->line, reterr));
    uint32_t const of_byte = shell->line | shell_left(shell, shell->at + 1);
    if (next != '\n') STATUS_TRY(shell_push(shell, buffer, next, of_byte, reterr));
    shell->line += next == '\n';
    shell->at += shell->at + 1 < shell->end ? 2 : 1;
    return STATUS_OK;
}

static enum status read_double(struct shell *shell, struct shell_buffer *buffer,
                               struct shell_words *words, struct error *reterr)
{
    uint32_t const line = shell->line;
    bool const was_word = buffer->is_word;
    uint32_t const length = buffer->length, count = words->count;
    buffer->is_word = true;
    shell->is_nothing = false;
    for (shell->at++; shell->at < shell->end && *shell->at != '"';) {
        if (*shell->at == '$' || *shell->at == '`') {
            STATUS_TRY(shell_expand(shell, buffer, words, /* is_quoted= */ true, reterr));
        } else if (*shell->at == '\\') {
            STATUS_TRY(shell_read_backslash(shell, buffer, /* is_quoted= */ true, reterr));
        } else {
            STATUS_TRY(shell_push(shell, buffer, *shell->at, shell->line, reterr));
            shell->line += *shell->at == '\n';
            shell->at++;
        }
    }
    if (shell->at >= shell->end) return shell_refuse_end(shell, line, "a text in \"", reterr);
    shell->at++;
    if (shell->is_nothing && buffer->length == length && words->count == count)
        buffer->is_word = was_word; /* Without elements "${NAME[@]}" is no word. */
    shell->is_nothing = false;
    return STATUS_OK;
}

/* "$'x'" is a text in quotes, and so is "$"x"". */
static enum status read_dollar(struct shell *shell, struct shell_buffer *buffer,
                               struct shell_words *words, struct error *reterr)
{
    char const next = shell_peek(shell, 1);
    if (next != '\'' && next != '"')
        return shell_expand(shell, buffer, words, /* is_quoted= */ false, reterr);
    shell->at++;
    if (next == '"') return read_double(shell, buffer, words, reterr);
    uint32_t const length = buffer->length;
    STATUS_TRY(read_single(shell, buffer, reterr));
    if (buffer->length > length && memchr(buffer->text + length, '\\', buffer->length - length))
        buffer->is_open = true; /* Escapes are not read. */
    return STATUS_OK;
}

enum status shell_read_part(struct shell *shell, struct shell_buffer *buffer,
                            struct shell_words *words, struct error *reterr)
{
    shell_line_find(shell);
    switch (*shell->at) {
    case '\'':
        return read_single(shell, buffer, reterr);
    case '"':
        return read_double(shell, buffer, words, reterr);
    case '\\':
        return shell_read_backslash(shell, buffer, /* is_quoted= */ false, reterr);
    case '`':
        return shell_expand(shell, buffer, words, /* is_quoted= */ false, reterr);
    case '$':
        return read_dollar(shell, buffer, words, reterr);
    default:
        return shell_push(shell, buffer, *shell->at++, shell->line, reterr);
    }
}

/* Whether a character that no quotes guard stands for other words: of files, or {a,b}. */
static bool is_pattern(const struct shell *shell)
{
    if (strchr("*?[", *shell->at) != NULL) return true;
    if (*shell->at != '{') return false;
    const char *at = shell->at, *const last = at + PATTERN_BYTES_MAX;
    while (at < shell->end && at < last && strchr(", \t\n", *at) == NULL &&
           (at[0] != '.' || at[1] != '.'))
        at++;
    return at == last || *at == ',' || *at == '.';
}

enum status shell_read_word(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    static const char ends[] = " \t\r\n;&|<>()";
    struct shell_buffer buffer = {.is_word = false};
    bool is_open = shell_peek(shell, 0) == '~';
    uint32_t const count = words->count;
    while (shell->at < shell->end && strchr(ends, *shell->at) == NULL) {
        bool const may_be = !shell->is_whole || (shell->is_declared && *shell->at == '{');
        is_open = is_open || (may_be && is_pattern(shell));
        STATUS_TRY(shell_read_part(shell, &buffer, words, reterr));
    }
    buffer.is_open = buffer.is_open || is_open;
    for (uint32_t i = count; is_open && i < words->count; i++) words->word[i].is_open = true;
    return shell_word_end(shell, &buffer, words, reterr);
}

/* One text, whatever blanks its variables have. */
enum status shell_join(struct shell *shell, struct shell_words *words, struct error *reterr)
{
    struct shell_buffer buffer = {.is_word = true};
    struct shell_words whole = {.word = NULL};
    for (uint32_t i = 0; i < words->count; i++) {
        const struct shell_word *word = &words->word[i];
        buffer.is_open = buffer.is_open || word->is_open;
        if (i > 0) STATUS_TRY(shell_push(shell, &buffer, ' ', shell_word_line(word), reterr));
        for (uint32_t c = 0; c < word->length; c++)
            STATUS_TRY(shell_push(shell, &buffer, word->text[c], word->line[c], reterr));
    }
    STATUS_TRY(shell_word_end(shell, &buffer, &whole, reterr));
    *words = whole;
    return STATUS_OK;
}
