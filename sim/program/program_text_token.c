#include "sim/program/program_text_token.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/blank.h"
#include "sim/base/letter.h"
#include "sim/base/name.h"

enum { SHOWN_BYTES = 48, ROWS_MOST = 32, TEXT_BYTES_MAX = 256 };

enum status cursor_refuse(const struct text_cursor *cursor, enum status status, const char *at,
                          const char *format, ...)
{
    char where[160], message[640];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)snprintf(where, sizeof where, "%.120s:%u:%u", cursor->name, cursor->line,
                   (unsigned)(at - cursor->begin) + 1);
    return error_set(cursor->reterr, status, where, "%s", message);
}

bool cursor_line(struct text_cursor *cursor, const char **rest, const char *end)
{
    if (*rest >= end) return false;
    const char *newline = memchr(*rest, '\n', (size_t)(end - *rest));
    cursor->begin = cursor->at = *rest;
    cursor->end = newline == NULL ? end : newline;
    *rest = newline == NULL ? end : newline + 1;
    cursor->line++;
    return true;
}

bool cursor_more(struct text_cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at)) cursor->at++;
    return cursor->at < cursor->end;
}

uint32_t cursor_word(const struct text_cursor *cursor)
{
    const char *at = cursor->at;
    while (at < cursor->end && !is_blank(*at) && *at != '=' && *at != '"') at++;
    return (uint32_t)(at - cursor->at);
}

/* A word as a text that ends, cut where it is too long to be meant. */
static const char *shown(const char *at, uint32_t length, char buffer[SHOWN_BYTES])
{
    if (length >= SHOWN_BYTES) length = SHOWN_BYTES - 1;
    memcpy(buffer, at, length);
    buffer[length] = '\0';
    return buffer;
}

static bool is_word(const char *at, uint32_t length, const char *word)
{
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

/* Decimal digits and nothing else, up to 2^64. */
static bool digits_read(const char *at, uint32_t length, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (length == 0) return false;
    for (uint32_t i = 0; i < length; i++) {
        if (at[i] < '0' || at[i] > '9') return false;
        uint64_t const digit = (uint64_t)(at[i] - '0');
        bool const fits = number <= (UINT64_MAX - digit) / 10;
        number = fits ? 10 * number + digit : UINT64_MAX;
        if (!fits) break;
    }
    *ret_number = number;
    return true;
}

bool cursor_says(const struct text_cursor *cursor, const char *word)
{
    return is_word(cursor->at, cursor_word(cursor), word);
}

enum status cursor_number(struct text_cursor *cursor, const char *what, uint32_t next)
{
    char buffer[SHOWN_BYTES];
    uint64_t number = 0;
    bool const more = cursor_more(cursor);
    uint32_t const length = more ? cursor_word(cursor) : 0;
    if (!digits_read(cursor->at, length, &number) || number != next)
        return cursor_refuse(cursor, STATUS_INVALID, cursor->at,
                             "the next %s is number %u, not \"%s\": they are numbered from 0", what,
                             next, shown(cursor->at, length, buffer));
    cursor->at += length;
    return STATUS_OK;
}

enum status cursor_text(struct text_cursor *cursor, const char **ret_text)
{
    char buffer[TEXT_BYTES_MAX + 1];
    uint32_t count = 0;
    const char *const from = cursor->at;
    if (!cursor_more(cursor) || *cursor->at != '"')
        return cursor_refuse(cursor, STATUS_INVALID, cursor->at, "a text in quotes is missing");
    for (cursor->at++; cursor->at < cursor->end && *cursor->at != '"'; cursor->at++) {
        bool const escapes = *cursor->at == '\\';
        if (escapes) cursor->at++;
        if (cursor->at == cursor->end) break;
        if (escapes && *cursor->at != '"' && *cursor->at != '\\')
            return cursor_refuse(cursor, STATUS_INVALID, cursor->at - 1,
                                 "a text in quotes escapes \\\" and \\\\ only");
        if (count == TEXT_BYTES_MAX)
            return cursor_refuse(cursor, STATUS_LIMIT, from, "a text of more than %d bytes",
                                 TEXT_BYTES_MAX);
        buffer[count++] = *cursor->at;
    }
    if (cursor->at == cursor->end)
        return cursor_refuse(cursor, STATUS_INVALID, from, "its quotes do not end");
    cursor->at++;
    buffer[count] = '\0';
    if (!letters_are_plain(buffer))
        return cursor_refuse(cursor, STATUS_INVALID, from,
                             "a control character, or a byte that is not of UTF-8");
    *ret_text = arena_text(cursor->arena, buffer);
    if (*ret_text != NULL) return STATUS_OK;
    return cursor_refuse(cursor, STATUS_NO_MEMORY, from, "no memory for a text");
}

static void member_set(void *line, const struct text_row *row, uint64_t value)
{
    uint8_t const byte = (uint8_t)value;
    uint16_t const half = (uint16_t)value;
    uint32_t const word = (uint32_t)value;
    char *member = (char *)line + row->offset;
    switch (row->size) {
    case sizeof byte:
        memcpy(member, &byte, sizeof byte);
        break;
    case sizeof half:
        memcpy(member, &half, sizeof half);
        break;
    case sizeof word:
        memcpy(member, &word, sizeof word);
        break;
    default:
        memcpy(member, &value, sizeof value);
        break;
    }
}

/* A value as it stands, in quotes or not. */
static enum status value_take(struct text_cursor *cursor, char ret_value[TEXT_BYTES_MAX + 1])
{
    const char *const from = cursor->at, *text = NULL;
    if (from < cursor->end && *from == '"') {
        STATUS_TRY(cursor_text(cursor, &text));
        memcpy(ret_value, text, strlen(text) + 1);
        return STATUS_OK;
    }
    while (cursor->at < cursor->end && !is_blank(*cursor->at)) cursor->at++;
    size_t const length = (size_t)(cursor->at - from);
    if (length > TEXT_BYTES_MAX)
        return cursor_refuse(cursor, STATUS_LIMIT, from, "a value of more than %d bytes",
                             TEXT_BYTES_MAX);
    memcpy(ret_value, from, length);
    ret_value[length] = '\0';
    return STATUS_OK;
}

static enum status number_set(const struct text_cursor *cursor, const struct text_row *row,
                              const char *at, const char *value, void *line)
{
    uint64_t number = 0;
    bool const minus = row->kind == ROW_SIGNED && value[0] == '-';
    if (row->instead != NULL && name_same(value, row->instead)) {
        member_set(line, row, (uint64_t)row->instead_value);
        return STATUS_OK;
    }
    if (!digits_read(value + minus, (uint32_t)strlen(value + minus), &number))
        return cursor_refuse(cursor, STATUS_INVALID, at, "%s is a whole number%s%s, not \"%.40s\"",
                             row->key, row->instead != NULL ? " or " : "",
                             row->instead != NULL ? row->instead : "", value);
    if (number < row->least)
        return cursor_refuse(cursor, STATUS_INVALID, at, "%s is at least %llu", row->key,
                             (unsigned long long)row->least);
    if (number > row->most)
        return cursor_refuse(cursor, STATUS_LIMIT, at, "%s is at most %llu%s", row->key,
                             (unsigned long long)row->most,
                             row->kind == ROW_SIGNED ? ", either way" : "");
    member_set(line, row, minus ? 0 - number : number);
    return STATUS_OK;
}

static enum status word_unknown(const struct text_cursor *cursor, const struct text_row *row,
                                const char *at, const char *value, const char *const *words)
{
    return cursor_refuse(cursor, STATUS_INVALID, at, "%s cannot be \"%.40s\"%s", row->key, value,
                         name_offer(value, words, "; the nearest is ", "", NULL).text);
}

static enum status word_set(const struct text_cursor *cursor, const struct text_row *row,
                            const char *at, const char *value, void *line)
{
    const char *axes[MACHINE_AXES_MAX + 1] = {0};
    const char *const *words = row->words;
    for (uint32_t a = 0; row->kind == ROW_AXIS && a < cursor->machine->axis_count; a++)
        axes[a] = machine_axis_name(cursor->machine, a);
    if (row->kind == ROW_AXIS) words = axes;
    uint32_t const found = name_find(value, words);
    if (words[found] != NULL) {
        member_set(line, row, found);
        return STATUS_OK;
    }
    return word_unknown(cursor, row, at, value, words);
}

/* Words with commas between them; each comma becomes the end of a word. */
static enum status words_set(const struct text_cursor *cursor, const struct text_row *row,
                             const char *at, char *value, void *line)
{
    uint64_t bits = 0;
    bool const none = name_same(value, row->instead);
    for (char *word = none ? NULL : value, *next; word != NULL; word = next) {
        next = strchr(word, ',');
        if (next != NULL) *next++ = '\0';
        uint32_t const found = name_find(word, row->words);
        if (row->words[found] == NULL) return word_unknown(cursor, row, at, word, row->words);
        if ((bits >> found & 1) != 0)
            return cursor_refuse(cursor, STATUS_INVALID, at, "%s says \"%s\" twice", row->key,
                                 word);
        bits |= UINT64_C(1) << found;
    }
    member_set(line, row, bits);
    return STATUS_OK;
}

static enum status row_set(struct text_cursor *cursor, const struct text_row *row, void *line)
{
    const char *const at = cursor->at, *text = NULL;
    char value[TEXT_BYTES_MAX + 1];
    switch (row->kind) {
    case ROW_TEXT:
        STATUS_TRY(cursor_text(cursor, &text));
        memcpy((char *)line + row->offset, &text, sizeof text);
        return STATUS_OK;
    case ROW_UNSIGNED:
    case ROW_SIGNED:
        STATUS_TRY(value_take(cursor, value));
        return number_set(cursor, row, at, value, line);
    case ROW_WORDS:
        STATUS_TRY(value_take(cursor, value));
        return words_set(cursor, row, at, value, line);
    case ROW_WORD:
    case ROW_AXIS:
        STATUS_TRY(value_take(cursor, value));
        return word_set(cursor, row, at, value, line);
    }
    return STATUS_OK;
}

static enum status key_unknown(const struct text_cursor *cursor, const struct text_line *line,
                               uint32_t length)
{
    const char *names[ROWS_MOST + 1] = {0};
    char buffer[SHOWN_BYTES];
    const char *key = shown(cursor->at, length, buffer);
    for (uint32_t i = 0; i < line->row_count; i++) names[i] = line->rows[i].key;
    if (line->row_count == 0)
        return cursor_refuse(cursor, STATUS_INVALID, cursor->at, "%s has no keys", line->word);
    return cursor_refuse(cursor, STATUS_INVALID, cursor->at, "%s has no key \"%s\"%s", line->word,
                         key, name_offer(key, names, "; the nearest is ", "", NULL).text);
}

/* The row of the key at the cursor, which then stands behind its "=". */
static enum status key_take(struct text_cursor *cursor, const struct text_line *line,
                            uint32_t *ret_row)
{
    uint32_t const length = cursor_word(cursor);
    for (uint32_t i = 0; i < line->row_count; i++) {
        if (!is_word(cursor->at, length, line->rows[i].key)) continue;
        if (cursor->at + length == cursor->end || cursor->at[length] != '=')
            return cursor_refuse(cursor, STATUS_INVALID, cursor->at, "%s needs a value: %s=...",
                                 line->rows[i].key, line->rows[i].key);
        cursor->at += length + 1;
        *ret_row = i;
        return STATUS_OK;
    }
    return key_unknown(cursor, line, length);
}

enum status cursor_rows(struct text_cursor *cursor, const struct text_line *line, void *target)
{
    const char *given[ROWS_MOST] = {0};
    SIM_ASSERT(line->row_count <= ROWS_MOST);
    while (cursor_more(cursor)) {
        const char *const at = cursor->at;
        uint32_t row = 0;
        STATUS_TRY(key_take(cursor, line, &row));
        if (given[row] != NULL)
            return cursor_refuse(cursor, STATUS_INVALID, at, "%s is given twice",
                                 line->rows[row].key);
        given[row] = at;
        STATUS_TRY(row_set(cursor, &line->rows[row], target));
    }
    for (uint32_t i = 0; i < line->row_count; i++) {
        const struct text_row *row = &line->rows[i];
        if (row->needed && given[i] == NULL)
            return cursor_refuse(cursor, STATUS_INVALID, cursor->at, "%s is missing", row->key);
        if (given[i] != NULL && row->means != NULL && !row->means(target))
            return cursor_refuse(cursor, STATUS_INVALID, given[i],
                                 "%s means nothing in a line as this", row->key);
    }
    return STATUS_OK;
}
