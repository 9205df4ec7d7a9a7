/*
 * json_write.c: JSON out, byte for byte the same everywhere.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/json_node.h"
#include "sim/base/letter.h"
#include "sim/base/strbuf.h"

void json_write_start(struct json_writer *writer, struct strbuf *text)
{
    *writer = (struct json_writer){.text = text, .first = true};
}

static bool on_one_line(const struct json_writer *writer)
{
    return writer->flat != 0 && writer->depth >= writer->flat;
}

static void write_line(struct json_writer *writer)
{
    strbuf_add(writer->text, "\n%*s", (int)(2 * writer->depth), "");
}

/* What stands between the last thing written and the next value or key. */
static void write_separator(struct json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (!writer->first) strbuf_add(writer->text, on_one_line(writer) ? ", " : ",");
    if (writer->depth > 0 && !on_one_line(writer)) write_line(writer);
    writer->first = false;
}

static void write_open(struct json_writer *writer, const char *bracket)
{
    write_separator(writer);
    strbuf_add(writer->text, "%s", bracket);
    writer->depth++;
    writer->first = true;
}

static void write_close(struct json_writer *writer, const char *bracket)
{
    SIM_ASSERT(writer->depth > 0 && !writer->after_key);
    bool const flat = on_one_line(writer);
    writer->depth--;
    if (!writer->first && !flat) write_line(writer);
    strbuf_add(writer->text, "%s%s", bracket, writer->depth == 0 ? "\n" : "");
    writer->first = false;
}

static void write_quoted(struct strbuf *text, const char *string)
{
    strbuf_add_bytes(text, "\"", 1);
    for (uint32_t bytes = 0; *string != '\0'; string += bytes) {
        enum letter const letter = letter_at(string, &bytes);
        if (letter == LETTER_NONE)
            strbuf_add(text, "\xef\xbf\xbd"); /* U+FFFD: a path need not be UTF-8; JSON must. */
        else if (*string == '"' || *string == '\\')
            strbuf_add(text, "\\%c", *string);
        else if (letter == LETTER_OBEYED)
            strbuf_add(text, "\\u%04x", letter_number(string, bytes));
        else
            strbuf_add_bytes(text, string, bytes);
    }
    strbuf_add_bytes(text, "\"", 1);
}

void json_write_key(struct json_writer *writer, const char *key)
{
    SIM_ASSERT(writer->depth > 0 && !writer->after_key);
    write_separator(writer);
    write_quoted(writer->text, key);
    strbuf_add(writer->text, ": ");
    writer->after_key = true;
}

void json_write_object(struct json_writer *writer)
{
    write_open(writer, "{");
}

void json_write_object_end(struct json_writer *writer)
{
    write_close(writer, "}");
}

void json_write_array(struct json_writer *writer)
{
    write_open(writer, "[");
}

void json_write_array_end(struct json_writer *writer)
{
    write_close(writer, "]");
}

void json_write_string(struct json_writer *writer, const char *text)
{
    write_separator(writer);
    write_quoted(writer->text, text);
}

void json_write_integer(struct json_writer *writer, int64_t value)
{
    write_separator(writer);
    strbuf_add(writer->text, "%lld", (long long)value);
}

void json_write_unsigned(struct json_writer *writer, uint64_t value)
{
    write_separator(writer);
    strbuf_add(writer->text, "%llu", (unsigned long long)value);
}

static const double plain_below = 1e15;

void json_write_real(struct json_writer *writer, double value)
{
    SIM_ASSERT(isfinite(value));
    char digits[64];
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    if (fabs(value) < plain_below && trunc(value) == value)
        (void)snprintf(digits, sizeof digits, "%.0f", value); /* 30, not 3e+01. */
    /* Whatever the locale puts for the point, in however many bytes, is a point. */
    char plain[64];
    uint32_t length = 0;
    bool real = false, in_point = false;
    for (const char *c = digits; *c != '\0'; c++) {
        bool const kept = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        if (!kept && in_point) continue;
        in_point = !kept;
        real = real || !kept || *c == 'e';
        plain[length++] = kept ? *c : '.';
    }
    write_separator(writer);
    strbuf_add_bytes(writer->text, plain, length);
    if (!real) strbuf_add(writer->text, ".0"); /* So that it is read back as a real. */
}

void json_write_null(struct json_writer *writer)
{
    write_separator(writer);
    strbuf_add(writer->text, "null");
}

void json_write_boolean(struct json_writer *writer, bool value)
{
    write_separator(writer);
    strbuf_add(writer->text, value ? "true" : "false");
}

/* The length of a member and of the comma behind it, up to the next member or the line's end. */
static uint64_t member_bytes(const char *at)
{
    bool quoted = false;
    const char *end = at;
    for (; *end != '\0' && *end != '\n'; end++) {
        if (*end == '"') quoted = !quoted;
        if (quoted && *end == '\\' && end[1] != '\0') end++;
        if (!quoted && end[0] == ',' && end[1] == ' ') return (uint64_t)(end - at) + 1;
    }
    return (uint64_t)(end - at);
}

void json_fold(const struct strbuf *json, uint32_t columns, struct strbuf *text)
{
    enum { FURTHER = 2 };
    for (const char *at = json->bytes; at != NULL && *at != '\0';) {
        uint64_t const indent = strspn(at, " ");
        uint64_t column = 0, bytes = member_bytes(at);
        for (; bytes > 0; bytes = member_bytes(at)) {
            bool const begins = column == 0;
            if (!begins && column + 1 + bytes > columns) {
                strbuf_add(text, "\n%*s", (int)indent + FURTHER, "");
                column = indent + FURTHER;
            } else if (!begins) {
                strbuf_add(text, " ");
                column++;
            }
            strbuf_add_bytes(text, at, bytes);
            column += bytes;
            at += bytes;
            if (*at == ' ') at++; /* Behind a comma. */
        }
        if (*at == '\n') strbuf_add_bytes(text, at++, 1);
    }
}

void json_put_object(struct json_writer *writer, const char *key)
{
    json_write_key(writer, key);
    json_write_object(writer);
}

void json_put_array(struct json_writer *writer, const char *key)
{
    json_write_key(writer, key);
    json_write_array(writer);
}

void json_put_string(struct json_writer *writer, const char *key, const char *text)
{
    json_write_key(writer, key);
    json_write_string(writer, text);
}

void json_put_integer(struct json_writer *writer, const char *key, int64_t value)
{
    json_write_key(writer, key);
    json_write_integer(writer, value);
}

void json_put_unsigned(struct json_writer *writer, const char *key, uint64_t value)
{
    json_write_key(writer, key);
    json_write_unsigned(writer, value);
}

void json_put_real(struct json_writer *writer, const char *key, double value)
{
    json_write_key(writer, key);
    json_write_real(writer, value);
}

void json_put_boolean(struct json_writer *writer, const char *key, bool value)
{
    json_write_key(writer, key);
    json_write_boolean(writer, value);
}

void json_write_value(struct json_writer *writer, struct json *value)
{
    switch (value->kind) {
    case NODE_NULL:
        json_write_null(writer);
        break;
    case NODE_BOOLEAN:
        json_write_boolean(writer, value->value.boolean);
        break;
    case NODE_INTEGER:
        json_write_integer(writer, value->value.integer);
        break;
    case NODE_REAL:
        json_write_real(writer, value->value.real);
        break;
    case NODE_STRING:
        json_write_string(writer, value->value.text);
        break;
    case NODE_ARRAY:
        json_write_array(writer);
        for (uint32_t i = 0; i < value->count; i++) json_write_value(writer, json_at(value, i));
        json_write_array_end(writer);
        break;
    default:
        json_write_object(writer);
        for (struct json *member = value->value.first; member != NULL; member = member->next) {
            json_write_key(writer, member->key);
            json_write_value(writer, member);
        }
        json_write_object_end(writer);
    }
}
