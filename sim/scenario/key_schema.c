/*
 * key_schema.c: the JSON Schema of a scenario and the tables of its documentation.
 */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/scenario/key.h"
#include "sim/scenario/scenario.h"

enum { FLAT_DEPTH = 5 };

/* As scaled.h reads it. */
static const char count_pattern[] = "^[0-9]+(\\.[0-9]+)?[kKmMgGtTpP]?$";

/* Sections that have rows. */
static const struct {
    const char *name;
    const struct key *rows;
} sections[] = {{"workload", workload_keys}, {"run", run_keys}};
enum { SECTION_COUNT = sizeof sections / sizeof *sections };

/* The text of a link, the name behind which it points nowhere, and what code marks enclose. */
static void plain_add(struct text *text, const char *markdown)
{
    for (const char *at = markdown; *at != '\0'; at++) {
        if (at[0] == ']' && at[1] == '(')
            at = strchr(at, ')');
        else if (*at != '[' && *at != '`' && *at != '\\')
            text_add_bytes(text, at, 1);
    }
}

static void described(struct json_writer *writer, const char *markdown)
{
    struct text text = {0};
    if (markdown == NULL) return;
    plain_add(&text, markdown);
    if (text.bytes != NULL && !text.failed) json_put_string(writer, "description", text.bytes);
    text_free(&text);
}

/* Whether the row alone gives the default. */
static bool has_preset(const struct key *row)
{
    return !row->needed && row->preset_text == NULL && row->kind != KEY_OBJECT &&
           row->kind != KEY_OWN;
}

static const char *preset_word(const struct key *row)
{
    if (row->kind == KEY_TEXT) return row->word;
    return row->choices[row->preset - (row->kind == KEY_CHOICE ? row->least : 0)];
}

static void preset_write(struct json_writer *writer, const struct key *row)
{
    switch (row->kind) {
    case KEY_FLAG:
    case KEY_FLAG_NOT:
        json_put_boolean(writer, "default", row->preset != 0);
        break;
    case KEY_COUNT:
    case KEY_TOKENS:
    case KEY_INTEGER:
        json_put_integer(writer, "default", row->preset);
        break;
    case KEY_SHARE:
        json_put_real(writer, "default", (double)row->preset / PPM_ONE);
        break;
    case KEY_CHOICE:
    case KEY_WORD:
    case KEY_TEXT:
        json_put_string(writer, "default", preset_word(row));
        break;
    case KEY_FIXED:
    case KEY_OBJECT:
    case KEY_OWN:
        break;
    }
}

static void types_write(struct json_writer *writer, const char *first, const char *second)
{
    json_put_array(writer, "type");
    json_write_string(writer, first);
    json_write_string(writer, second);
    json_write_array_end(writer);
}

static void whole_write(struct json_writer *writer, const struct key *row)
{
    if (row->kind == KEY_INTEGER) {
        json_put_string(writer, "type", "integer");
    } else {
        types_write(writer, "integer", "string");
        json_put_string(writer, "pattern", count_pattern);
    }
    json_put_integer(writer, "minimum", row->least);
    json_put_integer(writer, "maximum", row->most);
}

static void object_write(struct json_writer *writer, const struct key *rows);

static void kind_write(struct json_writer *writer, const struct key *row)
{
    switch (row->kind) {
    case KEY_FLAG:
    case KEY_FLAG_NOT:
        json_put_string(writer, "type", "boolean");
        break;
    case KEY_COUNT:
    case KEY_TOKENS:
    case KEY_INTEGER:
        whole_write(writer, row);
        break;
    case KEY_SHARE:
        json_put_string(writer, "type", "number");
        json_put_real(writer, "minimum", (double)row->least / PPM_ONE);
        json_put_real(writer, "maximum", (double)row->most / PPM_ONE);
        break;
    case KEY_CHOICE:
    case KEY_WORD:
    case KEY_FIXED:
        json_put_array(writer, "enum");
        for (uint32_t i = 0; row->choices[i] != NULL; i++)
            json_write_string(writer, row->choices[i]);
        json_write_array_end(writer);
        break;
    case KEY_TEXT:
        json_put_string(writer, "type", "string");
        break;
    case KEY_OBJECT:
        object_write(writer, row->members);
        break;
    case KEY_OWN: /* A name, a path, or an object in their place. */
        types_write(writer, "string", "object");
        break;
    }
}

/* The members of the schema of an object. */
static void object_write(struct json_writer *writer, const struct key *rows)
{
    json_put_string(writer, "type", "object");
    json_put_boolean(writer, "additionalProperties", false);
    json_put_array(writer, "required");
    for (const struct key *row = rows; row->name != NULL; row++)
        if (row->needed) json_write_string(writer, row->name);
    json_write_array_end(writer);
    json_put_object(writer, "properties");
    for (const struct key *row = rows; row->name != NULL; row++) {
        json_put_object(writer, row->name);
        described(writer, row->help);
        kind_write(writer, row);
        if (has_preset(row)) preset_write(writer, row);
        json_write_object_end(writer);
    }
    json_write_object_end(writer);
}

/* A member whose keys have no rows. */
static void whole_member_write(struct json_writer *writer, const char *name, const char *type,
                               const char *description)
{
    json_put_object(writer, name);
    json_put_string(writer, "description", description);
    json_put_string(writer, "type", type);
    json_write_object_end(writer);
}

void scenario_schema(struct text *text)
{
    struct json_writer writer;
    json_write_start(&writer, text);
    writer.flat = FLAT_DEPTH;
    json_write_object(&writer);
    json_put_string(&writer, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_put_string(&writer, "title", "a scenario of podsim");
    json_put_string(&writer, "type", "object");
    json_put_boolean(&writer, "additionalProperties", false);
    json_put_array(&writer, "required");
    json_write_string(&writer, "podsim");
    json_write_string(&writer, "machine");
    json_write_string(&writer, "workload");
    json_write_array_end(&writer);
    json_put_object(&writer, "properties");
    json_put_object(&writer, "podsim");
    json_put_string(&writer, "description", "version of the format");
    json_put_integer(&writer, "const", 1);
    json_write_object_end(&writer);
    whole_member_write(&writer, "title", "string", "the name of the run in reports");
    whole_member_write(&writer, "question", "string", "the question that the scenario answers");
    whole_member_write(&writer, "machine", "object",
                       "chips, links and switches; this schema does not say its keys");
    whole_member_write(&writer, "mesh", "object",
                       "mesh axes on machine axes; this schema does not say its keys");
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        json_put_object(&writer, sections[i].name);
        object_write(&writer, sections[i].rows);
        json_write_object_end(&writer);
    }
    json_write_object_end(&writer);
    json_write_object_end(&writer);
}

static void values_add(struct text *text, const struct key *row)
{
    if (row->values != NULL)
        text_add(text, "%s", row->values);
    else if (row->kind == KEY_FLAG || row->kind == KEY_FLAG_NOT)
        text_add(text, "boolean");
    else if (row->kind == KEY_SHARE)
        text_add(text, "%g to %g", (double)row->least / PPM_ONE, (double)row->most / PPM_ONE);
    else if (row->choices == NULL && row->most == INT64_MAX)
        text_add(text, "%lld or more", (long long)row->least);
    else if (row->choices == NULL)
        text_add(text, "%lld to %lld", (long long)row->least, (long long)row->most);
    for (uint32_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        text_add(text, "%s`%s`", i == 0 ? "" : ", ", row->choices[i]);
}

static void preset_add(struct text *text, const struct key *row)
{
    if (row->needed)
        text_add(text, "needed");
    else if (row->preset_text != NULL)
        text_add(text, "%s", row->preset_text);
    else if (row->kind == KEY_FLAG || row->kind == KEY_FLAG_NOT)
        text_add(text, "`%s`", row->preset != 0 ? "true" : "false");
    else if (row->kind == KEY_SHARE)
        text_add(text, "%g", (double)row->preset / PPM_ONE);
    else if (row->choices != NULL || row->kind == KEY_TEXT)
        text_add(text, "`%s`", preset_word(row));
    else
        text_add(text, "%lld", (long long)row->preset);
}

void scenario_tables(struct text *text)
{
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        text_add(text, "%s## `%s`\n\n| key | values | default | meaning |\n|---|---|---|---|\n",
                 i == 0 ? "" : "\n", sections[i].name);
        for (const struct key *row = sections[i].rows; row->name != NULL; row++) {
            text_add(text, "| `%s` | ", row->name);
            values_add(text, row);
            text_add(text, " | ");
            preset_add(text, row);
            text_add(text, " | %s |\n", row->help);
        }
    }
}
