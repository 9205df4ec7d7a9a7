/*
 * read_toml.c: TOML 1.0 as a flat list: "table.key". Tables, arrays of tables, inline tables, all
 * kinds of strings, numbers, booleans, arrays. Dates are texts.
 */
#include <ctype.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/import/settings.h"

enum { TABLES_MAX = 512, WORD_BYTES_MAX = 32 };

struct toml_table {
    const char *name; /* "job.0.step": in an array of tables, with the element's number. */
    bool is_array;    /* One for each element, all of one name. */
};

struct toml {
    struct import_file *file;
    const char *at, *end;
    uint32_t line;
    const char *table;                    /* The keys that follow lie in it; "": in none. */
    struct toml_table tables[TABLES_MAX]; /* That had a heading. */
    uint32_t table_count;
    uint32_t depth;
};

static enum status read_value(struct toml *toml, const char *key, struct error *reterr);

static enum status refuse(const struct toml *toml, struct error *reterr, const char *what)
{
    return settings_fail(toml->file, toml->line, STATUS_INVALID, reterr, "%s", what);
}

static char peek(const struct toml *toml, uint32_t ahead)
{
    return (uint64_t)(toml->end - toml->at) > ahead ? toml->at[ahead] : '\0';
}

static void skip_blanks(struct toml *toml)
{
    while (peek(toml, 0) == ' ' || peek(toml, 0) == '\t') toml->at++;
}

/* Blanks, comments and line ends. */
static void skip_lines(struct toml *toml)
{
    for (;;) {
        skip_blanks(toml);
        if (peek(toml, 0) == '#')
            while (toml->at < toml->end && *toml->at != '\n') toml->at++;
        if (peek(toml, 0) == '\r' && peek(toml, 1) == '\n') toml->at++;
        if (peek(toml, 0) != '\n') return;
        toml->at++;
        toml->line++;
    }
}

/* --- Texts --- */

static void add_character(struct strbuf *text, uint32_t code)
{
    char bytes[4];
    uint32_t count = 0;
    if (code < 0x80) {
        bytes[count++] = (char)code;
    } else if (code < 0x800) {
        bytes[count++] = (char)(0xC0 | code >> 6);
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        bytes[count++] = (char)(0xE0 | code >> 12);
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    } else {
        bytes[count++] = (char)(0xF0 | code >> 18);
        bytes[count++] = (char)(0x80 | (code >> 12 & 0x3F));
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    }
    strbuf_add_bytes(text, bytes, count);
}

/* Behind a backslash. */
static enum status read_escape(struct toml *toml, bool is_long, struct strbuf *text,
                               struct error *reterr)
{
    static const char names[] = "btnfre\"\\", meant[] = "\b\t\n\f\r\033\"\\";
    char const c = peek(toml, 0);
    const char *found = c == '\0' ? NULL : strchr(names, c);
    if (found != NULL) {
        strbuf_add_bytes(text, &meant[found - names], 1);
        toml->at++;
        return STATUS_OK;
    }
    if (is_long && (c == '\n' || c == ' ' || c == '\t' || c == '\r')) {
        for (; isspace((unsigned char)peek(toml, 0)); toml->at++) toml->line += *toml->at == '\n';
        return STATUS_OK;
    }
    uint32_t const digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t code = 0;
    if (digits == 0) return refuse(toml, reterr, "an unknown escape in a text");
    for (uint32_t i = 1; i <= digits; i++) {
        char const digit = peek(toml, i);
        if (!isxdigit((unsigned char)digit)) return refuse(toml, reterr, "a broken \\u in a text");
        code = 16 * code + (uint32_t)(isdigit((unsigned char)digit)
                                          ? digit - '0'
                                          : tolower((unsigned char)digit) - 'a' + 10);
    }
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return refuse(toml, reterr, "a \\u that is no character");
    toml->at += 1 + digits;
    add_character(text, code);
    return STATUS_OK;
}

static bool is_at_end(const struct toml *toml, char quote, bool is_long)
{
    if (peek(toml, 0) != quote) return false;
    return !is_long || (peek(toml, 1) == quote && peek(toml, 2) == quote);
}

static enum status read_characters(struct toml *toml, char quote, bool is_long, struct strbuf *text,
                                   struct error *reterr)
{
    uint32_t const line = toml->line;
    while (!is_at_end(toml, quote, is_long)) {
        char const c = peek(toml, 0);
        if (toml->at >= toml->end || (c == '\n' && !is_long)) {
            toml->line = line;
            return refuse(toml, reterr, "a text whose quotes are not closed");
        }
        toml->at++;
        toml->line += c == '\n';
        if (c == '\\' && quote == '"')
            STATUS_TRY(read_escape(toml, is_long, text, reterr));
        else
            strbuf_add_bytes(text, &c, 1);
    }
    toml->at += is_long ? 3 : 1;
    for (uint32_t i = 0; is_long && i < 2 && peek(toml, 0) == quote; i++) { /* Of the text. */
        strbuf_add_bytes(text, &quote, 1);
        toml->at++;
    }
    return STATUS_OK;
}

static enum status read_text(struct toml *toml, bool may_be_long, const char **ret_text,
                             struct error *reterr)
{
    char const quote = peek(toml, 0);
    bool const is_long = may_be_long && peek(toml, 1) == quote && peek(toml, 2) == quote;
    struct strbuf text = {.bytes = NULL};
    toml->at += is_long ? 3 : 1;
    if (is_long && peek(toml, 0) == '\r') toml->at++;
    if (is_long && peek(toml, 0) == '\n') {
        toml->at++;
        toml->line++;
    }
    enum status const status = read_characters(toml, quote, is_long, &text, reterr);
    strbuf_add(&text, "%s", "");
    *ret_text = text.failed ? NULL : arena_text(toml->file->arena, text.bytes);
    strbuf_free(&text);
    STATUS_TRY(status);
    return *ret_text == NULL ? error_no_memory(reterr, "") : STATUS_OK;
}

/* --- Keys --- */

/* How many headings have the name. */
static uint32_t tables_named(const struct toml *toml, const char *name, bool are_arrays)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < toml->table_count; i++)
        count += toml->tables[i].is_array == are_arrays && name_same(toml->tables[i].name, name);
    return count;
}

/* "a.b", in the table that `before` names. Of a heading, a part that is an array of tables stands
 * for the array's last element, "a.0.b". */
static enum status read_key(struct toml *toml, const char *before, bool is_heading,
                            const char **ret_key, struct error *reterr)
{
    const char *key = before;
    for (uint32_t parts = 0;; parts++) {
        const char *part = NULL;
        skip_blanks(toml);
        if (parts == IMPORT_DEPTH_MAX) return refuse(toml, reterr, "a key of too many parts");
        if (peek(toml, 0) == '"' || peek(toml, 0) == '\'') {
            STATUS_TRY(read_text(toml, /* may_be_long= */ false, &part, reterr));
        } else {
            const char *const start = toml->at;
            while (isalnum((unsigned char)peek(toml, 0)) || peek(toml, 0) == '_' ||
                   peek(toml, 0) == '-')
                toml->at++;
            if (toml->at == start) return refuse(toml, reterr, "a key is expected here");
            part = arena_format(toml->file->arena, "%.*s", (int)(toml->at - start), start);
        }
        key = part == NULL || key[0] == '\0' ? part
                                             : arena_format(toml->file->arena, "%s.%s", key, part);
        if (key == NULL) return error_no_memory(reterr, "");
        skip_blanks(toml);
        if (peek(toml, 0) != '.') break;
        toml->at++;
        uint32_t const elements = is_heading ? tables_named(toml, key, /* are_arrays= */ true) : 0;
        if (elements > 0) key = arena_format(toml->file->arena, "%s.%u", key, elements - 1);
        if (key == NULL) return error_no_memory(reterr, "");
    }
    *ret_key = key;
    return STATUS_OK;
}

static enum status add(struct toml *toml, uint32_t line, const char *key, const char *value,
                       enum import_form form, struct error *reterr)
{
    struct import_setting const setting = {.key = key, .value = value, .line = line, .form = form};
    const struct import_setting *const other = settings_find(toml->file, key);
    if (other != NULL)
        return settings_fail(toml->file, line, STATUS_INVALID, reterr,
                             "\"%s\" is given twice, first in line %u", key, other->line);
    return settings_add(toml->file, &setting, reterr);
}

/* --- Values --- */

static bool is_number(const char *text)
{
    static const char *const words[] = {"inf", "nan", NULL};
    text += *text == '+' || *text == '-';
    if (words[name_find(text, words)] != NULL) return true;
    if (strncmp(text, "0x", 2) == 0) return strspn(text + 2, "0123456789abcdefABCDEF_") > 0;
    if (strncmp(text, "0o", 2) == 0) return strspn(text + 2, "01234567_") > 0;
    if (strncmp(text, "0b", 2) == 0) return strspn(text + 2, "01_") > 0;
    return isdigit((unsigned char)*text) && text[strspn(text, "0123456789_.eE+-")] == '\0';
}

/* Where the text ends that is as the form says, "0" for any digit; NULL: it is not. */
static const char *form_end(const char *text, const char *form)
{
    for (; *form != '\0'; form++, text++)
        if (*form == '0' ? !isdigit((unsigned char)*text) : *text != *form) return NULL;
    return text;
}

/* A date, a time, or both with "T" or a blank between; behind both the zone. */
static bool is_date(const char *text)
{
    const char *const date = form_end(text, "0000-00-00");
    if (date != NULL && *date == '\0') return true;
    if (date != NULL && strchr("Tt ", *date) == NULL) return false;
    const char *at = form_end(date != NULL ? date + 1 : text, "00:00:00");
    if (at != NULL && *at == '.' && isdigit((unsigned char)at[1]))
        for (at++; isdigit((unsigned char)*at);) at++;
    if (at == NULL || *at == '\0') return at != NULL;
    if (date == NULL) return false;
    const char *const zone = *at == '+' || *at == '-' ? form_end(at + 1, "00:00") : at + 1;
    return strchr("Zz+-", *at) != NULL && zone != NULL && *zone == '\0';
}

/* A word without quotes: a number, true, false or a date. */
static enum status read_word(struct toml *toml, const char **ret_text, enum import_form *ret_form,
                             struct error *reterr)
{
    const char *const start = toml->at;
    while (isalnum((unsigned char)peek(toml, 0)) ||
           (peek(toml, 0) != '\0' && strchr("+-._:", peek(toml, 0)) != NULL))
        toml->at++;
    if (form_end(start, "0000-00-00 00:") != NULL && toml->at == start + strlen("0000-00-00"))
        for (toml->at++; isalnum((unsigned char)peek(toml, 0)) ||
                         (peek(toml, 0) != '\0' && strchr("+-.:", peek(toml, 0)) != NULL);)
            toml->at++;
    size_t const length = (size_t)(toml->at - start);
    if (length == 0) return refuse(toml, reterr, "a value is expected here");
    if (length > WORD_BYTES_MAX) return refuse(toml, reterr, "a number of too many digits");
    const char *text = arena_format(toml->file->arena, "%.*s", (int)length, start);
    if (text == NULL) return error_no_memory(reterr, "");
    bool const is_boolean = name_same(text, "true") || name_same(text, "false");
    bool const is_day = is_date(text);
    if (!is_boolean && !is_day && !is_number(text))
        return settings_fail(toml->file, toml->line, STATUS_INVALID, reterr,
                             "\"%s\" is no value; a text has quotes", text);
    *ret_text = text;
    *ret_form = is_boolean ? IMPORT_BOOLEAN : is_day ? IMPORT_TEXT : IMPORT_NUMBER;
    return STATUS_OK;
}

static enum status read_scalar(struct toml *toml, const char **ret_text, enum import_form *ret_form,
                               struct error *reterr)
{
    if (peek(toml, 0) != '"' && peek(toml, 0) != '\'')
        return read_word(toml, ret_text, ret_form, reterr);
    *ret_form = IMPORT_TEXT;
    return read_text(toml, /* may_be_long= */ true, ret_text, reterr);
}

/* Elements are one text with blanks between; those that are arrays or tables have keys of their
 * own. */
static enum status read_array(struct toml *toml, const char *key, struct error *reterr)
{
    uint32_t const line = toml->line;
    struct strbuf text = {.bytes = NULL};
    enum status status = STATUS_OK;
    uint32_t count = 0;
    toml->at++;
    for (skip_lines(toml); status == STATUS_OK && peek(toml, 0) != ']'; skip_lines(toml), count++) {
        const char *element = NULL;
        enum import_form ignored;
        if (toml->at >= toml->end) {
            toml->line = line;
            status = refuse(toml, reterr, "an array that is not closed");
            break;
        }
        if (peek(toml, 0) == '[' || peek(toml, 0) == '{') {
            const char *inner = arena_format(toml->file->arena, "%s.%u", key, count);
            status = inner == NULL ? error_no_memory(reterr, "") : read_value(toml, inner, reterr);
        } else {
            status = read_scalar(toml, &element, &ignored, reterr);
            strbuf_add(&text, "%s%s", text.size_bytes > 0 ? " " : "",
                       element == NULL ? "" : element);
        }
        if (status != STATUS_OK) break;
        skip_lines(toml);
        if (peek(toml, 0) == ',')
            toml->at++;
        else if (peek(toml, 0) != ']')
            status = refuse(toml, reterr, "\",\" or \"]\" is expected here, in an array");
    }
    strbuf_add(&text, "%s", "");
    const char *value = text.failed ? NULL : arena_text(toml->file->arena, text.bytes);
    strbuf_free(&text);
    STATUS_TRY(status);
    toml->at++;
    return value == NULL ? error_no_memory(reterr, "")
                         : add(toml, line, key, value, IMPORT_LIST, reterr);
}

static enum status read_inline_table(struct toml *toml, const char *key, struct error *reterr)
{
    toml->at++;
    for (skip_blanks(toml); peek(toml, 0) != '}'; skip_blanks(toml)) {
        const char *inner = NULL;
        STATUS_TRY(read_key(toml, key, /* is_heading= */ false, &inner, reterr));
        if (peek(toml, 0) != '=') return refuse(toml, reterr, "\"=\" is expected behind a key");
        toml->at++;
        STATUS_TRY(read_value(toml, inner, reterr));
        skip_blanks(toml);
        if (peek(toml, 0) == ',')
            toml->at++;
        else if (peek(toml, 0) != '}')
            return refuse(toml, reterr, "\",\" or \"}\" is expected here, in a table");
    }
    toml->at++;
    return STATUS_OK;
}

static enum status read_value(struct toml *toml, const char *key, struct error *reterr)
{
    uint32_t const line = toml->line;
    const char *text = NULL;
    enum import_form form = IMPORT_TEXT;
    enum status status = STATUS_OK;
    if (toml->depth == IMPORT_DEPTH_MAX)
        return settings_fail(toml->file, line, STATUS_LIMIT, reterr,
                             "arrays and tables within one another more than %d deep",
                             IMPORT_DEPTH_MAX);
    toml->depth++;
    skip_blanks(toml);
    if (peek(toml, 0) == '[')
        status = read_array(toml, key, reterr);
    else if (peek(toml, 0) == '{')
        status = read_inline_table(toml, key, reterr);
    else {
        status = read_scalar(toml, &text, &form, reterr);
        if (status == STATUS_OK) status = add(toml, line, key, text, form, reterr);
    }
    toml->depth--;
    return status;
}

/* --- Lines --- */

/* [table], or the next of [[tables]]. */
static enum status read_heading(struct toml *toml, struct error *reterr)
{
    bool const is_array = peek(toml, 1) == '[';
    const char *name = NULL;
    toml->at += is_array ? 2 : 1;
    STATUS_TRY(read_key(toml, "", /* is_heading= */ true, &name, reterr));
    if (peek(toml, 0) != ']' || (is_array && peek(toml, 1) != ']'))
        return refuse(toml, reterr, "a heading that is not closed");
    toml->at += is_array ? 2 : 1;
    uint32_t const elements = tables_named(toml, name, /* are_arrays= */ true);
    uint32_t const tables = tables_named(toml, name, /* are_arrays= */ false);
    if (tables > 0 && !is_array)
        return settings_fail(toml->file, toml->line, STATUS_INVALID, reterr,
                             "the table [%s] is given twice", name);
    if (is_array ? tables > 0 : elements > 0)
        return settings_fail(toml->file, toml->line, STATUS_INVALID, reterr,
                             "[%s] is a table in one line and an array of tables in another", name);
    if (toml->table_count == TABLES_MAX)
        return settings_fail(toml->file, toml->line, STATUS_LIMIT, reterr, "more than %d tables",
                             TABLES_MAX);
    toml->tables[toml->table_count++] = (struct toml_table){.name = name, .is_array = is_array};
    toml->table = is_array ? arena_format(toml->file->arena, "%s.%u", name, elements) : name;
    return toml->table == NULL ? error_no_memory(reterr, "") : STATUS_OK;
}

static enum status read_line(struct toml *toml, struct error *reterr)
{
    const char *key = NULL;
    if (peek(toml, 0) == '[') {
        STATUS_TRY(read_heading(toml, reterr));
    } else {
        STATUS_TRY(read_key(toml, toml->table, /* is_heading= */ false, &key, reterr));
        if (peek(toml, 0) != '=') return refuse(toml, reterr, "\"=\" is expected behind a key");
        toml->at++;
        STATUS_TRY(read_value(toml, key, reterr));
    }
    skip_blanks(toml);
    if (toml->at < toml->end && *toml->at != '\n' && *toml->at != '#' &&
        !(*toml->at == '\r' && peek(toml, 1) == '\n'))
        return refuse(toml, reterr, "something follows the end of a value, or of a heading");
    return STATUS_OK;
}

enum status settings_read_toml(struct import_file *file, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(file->arena, 1, sizeof(struct toml), &memory, reterr));
    struct toml *toml = memory;
    *toml = (struct toml){.file = file, .at = file->text, .line = 1, .table = ""};
    toml->end = file->text + file->text_bytes;
    for (skip_lines(toml); toml->at < toml->end; skip_lines(toml))
        STATUS_TRY(read_line(toml, reterr));
    return STATUS_OK;
}
