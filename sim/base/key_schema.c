/*
 * key_schema.c: the JSON Schema of objects and the tables of their documentation.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/key.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"

/* The end of " ([page](address), [page](address))", which says nothing but where to read on; NULL:
 * another text. */
static const char *reference_end(const char *at)
{
    if (strncmp(at, " ([", 3) != 0) return NULL;
    for (at += 3;; at += 4) {
        at = strpbrk(at, "[]");
        if (at == NULL || at[0] != ']' || at[1] != '(') return NULL;
        at = strchr(at, ')');
        if (at != NULL && at[1] == ')') return at + 1;
        if (at == NULL || strncmp(at, "), [", 4) != 0) return NULL;
    }
}

/* The text of a link, the name behind which it points nowhere, and what code marks enclose. */
static void plain_add(struct strbuf *text, const char *markdown)
{
    for (const char *at = markdown; *at != '\0'; at++) {
        const char *const end = reference_end(at);
        if (end != NULL)
            at = end;
        else if (at[0] == ']' && at[1] == '(')
            at = strchr(at, ')');
        else if (*at != '[' && *at != '`' && *at != '\\')
            strbuf_add_bytes(text, at, 1);
    }
}

/* What it means, and behind which condition. */
static void meaning_add(struct strbuf *text, const struct key *row)
{
    if (row->when != NULL) strbuf_add(text, "%s: ", row->when);
    if (row->with != NULL) strbuf_add(text, "with `%s`: ", row->with);
    strbuf_add(text, "%s", row->help);
}

/* Whether the schema has the default as a value: the row alone gives it. */
static bool is_preset_value(const struct key *row)
{
    if (row->needed || row->preset_text != NULL || row->like_at != 0) return false;
    if (row->quiet || row->has_source) return false;
    return row->kind->put != NULL || row->word != NULL;
}

static void preset_write(struct json_writer *writer, const struct key *row)
{
    if (!is_preset_value(row)) return;
    json_write_key(writer, "default");
    if (row->kind->put != NULL)
        row->kind->put(writer, row, row->preset);
    else
        json_write_string(writer, row->word);
}

/* An object without words of its own has the defaults of its keys. */
static void preset_add(struct strbuf *text, const struct key *rows, const struct key *row)
{
    const struct key *like = rows;
    while (row->like_at != 0 && like->at != row->like_at) like++;
    if (row->like_at != 0)
        strbuf_add(text, "as `%s`", like->name);
    else if (row->needed)
        strbuf_add(text, "needed");
    else if (row->preset_text != NULL)
        strbuf_add(text, "%s", row->preset_text);
    else if (row->kind->say != NULL)
        row->kind->say(text, row, row->preset);
    else if (row->word != NULL)
        strbuf_add(text, "`%s`", row->word);
    else
        strbuf_add(text, "its keys'");
}

static void described(struct json_writer *writer, const struct key *rows, const struct key *row)
{
    struct strbuf markdown = {0}, text = {0};
    meaning_add(&markdown, row);
    if (!row->needed && !is_preset_value(row)) {
        strbuf_add(&markdown, ". Default: ");
        preset_add(&markdown, rows, row);
    }
    if (markdown.bytes != NULL) plain_add(&text, markdown.bytes);
    strbuf_free(&markdown);
    if (text.bytes != NULL && !text.failed) json_put_string(writer, "description", text.bytes);
    strbuf_free(&text);
}

void key_types_schema(struct json_writer *writer, const char *type, const char *type_too)
{
    json_write_key(writer, "type");
    if (type_too != NULL) json_write_array(writer);
    json_write_string(writer, type);
    if (type_too != NULL) json_write_string(writer, type_too);
    if (type_too != NULL) json_write_array_end(writer);
}

void key_choices_schema(struct json_writer *writer, const char *const *choices)
{
    json_put_array(writer, "enum");
    for (uint32_t i = 0; choices[i] != NULL; i++) json_write_string(writer, choices[i]);
    json_write_array_end(writer);
}

void key_array_schema(struct json_writer *writer, int64_t least, int64_t most)
{
    json_put_string(writer, "type", "array");
    json_put_integer(writer, "minItems", least);
    json_put_integer(writer, "maxItems", most);
    json_put_object(writer, "items");
}

static void range_write(struct json_writer *writer, const struct key *row)
{
    json_write_key(writer, "minimum");
    row->kind->put(writer, row, row->least);
    json_write_key(writer, "maximum");
    row->kind->put(writer, row, row->most);
}

static void value_write(struct json_writer *writer, const struct key *row)
{
    const struct key_kind *const kind = row->kind;
    if (kind->schema != NULL) {
        kind->schema(writer, row);
    } else if (row->choices != NULL) {
        key_choices_schema(writer, row->choices);
    } else {
        key_types_schema(writer, kind->type, kind->type_too);
        if (kind->pattern != NULL) json_put_string(writer, "pattern", kind->pattern);
        if (kind->has_range) range_write(writer, row);
        if (kind->has_length && row->least > 0) json_put_integer(writer, "minLength", row->least);
    }
}

static void sourced_write(struct json_writer *writer, const struct key *row)
{
    json_put_string(writer, "type", "object");
    json_put_boolean(writer, "additionalProperties", false);
    json_put_array(writer, "required");
    json_write_string(writer, "value");
    json_write_string(writer, "source");
    json_write_array_end(writer);
    json_put_object(writer, "properties");
    json_put_object(writer, "value");
    value_write(writer, row);
    json_write_object_end(writer);
    json_put_object(writer, "source");
    json_put_string(writer, "type", "string");
    json_put_integer(writer, "minLength", 1);
    json_write_object_end(writer);
    json_write_object_end(writer);
}

static bool is_needed_by(const struct key *row, const struct key *other)
{
    return row->needed && row->with != NULL && name_same(row->with, other->name);
}

/* A key that is there only with another one, and what another one needs beside it. */
static void dependents_write(struct json_writer *writer, const struct key *rows)
{
    bool open = false;
    for (const struct key *row = rows; row->name != NULL; row++) {
        bool listed = row->with != NULL;
        for (const struct key *of = rows; of->name != NULL; of++) listed |= is_needed_by(of, row);
        if (!listed) continue;
        if (!open) json_put_object(writer, "dependentRequired");
        open = true;
        json_put_array(writer, row->name);
        if (row->with != NULL) json_write_string(writer, row->with);
        for (const struct key *of = rows; of->name != NULL; of++)
            if (is_needed_by(of, row) && !(row->with != NULL && name_same(row->with, of->name)))
                json_write_string(writer, of->name);
        json_write_array_end(writer);
    }
    if (open) json_write_object_end(writer);
}

void keys_schema(struct json_writer *writer, const struct key *rows)
{
    json_put_string(writer, "type", "object");
    json_put_boolean(writer, "additionalProperties", false);
    json_put_array(writer, "required");
    for (const struct key *row = rows; row->name != NULL; row++)
        if (row->needed && row->with == NULL) json_write_string(writer, row->name);
    json_write_array_end(writer);
    dependents_write(writer, rows);
    json_put_object(writer, "properties");
    for (const struct key *row = rows; row->name != NULL; row++) {
        json_put_object(writer, row->name);
        described(writer, rows, row);
        if (row->has_source)
            sourced_write(writer, row);
        else
            value_write(writer, row);
        preset_write(writer, row);
        json_write_object_end(writer);
    }
    json_write_object_end(writer);
}

void key_object_schema(struct json_writer *writer, const struct key *row)
{
    keys_schema(writer, row->members);
}

/* An example as code in a cell of a table. */
static void example_add(struct strbuf *text, const char *example)
{
    strbuf_add(text, "`");
    for (const char *at = example; *at != '\0'; at++)
        strbuf_add(text, *at == '|' ? "\\%c" : "%c", *at);
    strbuf_add(text, "`");
}

static void values_add(struct strbuf *text, const struct key *row)
{
    const struct key_kind *const kind = row->kind;
    const struct key_values *const values = &row->values;
    if (values->words != NULL || values->example != NULL) {
        if (values->words != NULL) strbuf_add(text, "%s", values->words);
        if (values->words != NULL && values->example != NULL) strbuf_add(text, " such as ");
        if (values->example != NULL) example_add(text, values->example);
    } else if (kind->values != NULL) {
        strbuf_add(text, "%s", kind->values);
    } else if (row->choices != NULL) {
        for (uint32_t i = 0; row->choices[i] != NULL; i++)
            strbuf_add(text, "%s`%s`", i == 0 ? "" : ", ", row->choices[i]);
    } else {
        kind->say(text, row, row->least);
        if (row->most == INT64_MAX)
            strbuf_add(text, " or more");
        else if (row->most != row->least)
            strbuf_add(text, " to ");
        if (row->most != INT64_MAX && row->most != row->least) kind->say(text, row, row->most);
    }
}

static void rows_add(struct strbuf *text, const char *before, const struct key *rows)
{
    for (const struct key *row = rows; row->name != NULL; row++) {
        if (row->kind == &key_object && row->values.words == NULL && row->values.example == NULL) {
            char path[64];
            (void)snprintf(path, sizeof path, "%s%s.", before, row->name);
            rows_add(text, path, row->members);
            continue;
        }
        strbuf_add(text, "| `%s%s` | ", before, row->name);
        values_add(text, row);
        strbuf_add(text, " | ");
        preset_add(text, rows, row);
        strbuf_add(text, " | ");
        meaning_add(text, row);
        strbuf_add(text, " |\n");
    }
}

void keys_table(struct strbuf *text, const struct key *rows)
{
    strbuf_add(text, "| key | values | default | meaning |\n|---|---|---|---|\n");
    rows_add(text, "", rows);
}
