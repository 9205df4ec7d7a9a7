/*
 * key_schema.c: the JSON Schema of a scenario and the tables of its documentation.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/scenario/key.h"
#include "sim/scenario/scenario.h"

enum { FLAT_DEPTH = 5 };

/* As scaled.h reads it. */
static const char count_pattern[] = "^[0-9]+(\\.[0-9]+)?[kKmMgGtTpP]?$";

/* As quantity.h reads them. */
#define NUMBER_PATTERN "^[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? *"
static const char rate_pattern[] = NUMBER_PATTERN "([kKMGTP]?B|[KMGT]iB|[kMGT]?bit)/s$";
static const char duration_pattern[] = NUMBER_PATTERN "[pnum]?s$";

/* The text of a link, the name behind which it points nowhere, and what code marks enclose. */
static void plain_add(struct strbuf *text, const char *markdown)
{
    for (const char *at = markdown; *at != '\0'; at++) {
        if (at[0] == ']' && at[1] == '(')
            at = strchr(at, ')');
        else if (*at != '[' && *at != '`' && *at != '\\')
            strbuf_add_bytes(text, at, 1);
    }
}

/* What it means, and behind which condition. */
static void described(struct json_writer *writer, const struct key *row)
{
    struct strbuf text = {0};
    if (row->when != NULL) plain_add(&text, row->when);
    if (row->when != NULL) strbuf_add(&text, ": ");
    plain_add(&text, row->help);
    if (text.bytes != NULL && !text.failed) json_put_string(writer, "description", text.bytes);
    strbuf_free(&text);
}

/* Whether the row alone gives the default. */
static bool has_preset(const struct key *row)
{
    return !row->needed && row->preset_text == NULL && !row->quiet && row->kind < KEY_RATE;
}

static const char *preset_word(const struct key *row)
{
    if (row->kind == KEY_TEXT) return row->word;
    return row->choices[row->preset - (row->kind == KEY_CHOICE ? row->least : 0)];
}

/* Of kinds that has_preset() has. */
static void preset_write(struct json_writer *writer, const struct key *row)
{
    if (row->kind == KEY_FLAG || row->kind == KEY_FLAG_NOT)
        json_put_boolean(writer, "default", row->preset != 0);
    else if (row->kind == KEY_SHARE)
        json_put_real(writer, "default", (double)row->preset / PPM_ONE);
    else if (row->choices != NULL || row->kind == KEY_TEXT)
        json_put_string(writer, "default", preset_word(row));
    else
        json_put_integer(writer, "default", row->preset);
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

static void words_write(struct json_writer *writer, const char *const *words)
{
    json_put_array(writer, "enum");
    for (uint32_t i = 0; words[i] != NULL; i++) json_write_string(writer, words[i]);
    json_write_array_end(writer);
}

/* What is the same of all arrays; the schema of its elements is open behind it. */
static void array_begin(struct json_writer *writer, int64_t least, int64_t most)
{
    json_put_string(writer, "type", "array");
    json_put_integer(writer, "minItems", least);
    json_put_integer(writer, "maxItems", most);
    json_put_object(writer, "items");
}

static void coordinates_write(struct json_writer *writer, bool may_be_any)
{
    array_begin(writer, 1, MACHINE_AXES_MAX);
    if (may_be_any) {
        types_write(writer, "integer", "string");
        json_put_string(writer, "pattern", "^[*]$");
    } else {
        json_put_string(writer, "type", "integer");
    }
    json_put_integer(writer, "minimum", 0);
    json_put_integer(writer, "maximum", MACHINE_CHIPS_MAX - 1);
    json_write_object_end(writer);
}

static void object_write(struct json_writer *writer, const struct key *rows);

static void kind_write(struct json_writer *writer, const struct key *row)
{
    switch (row->kind) {
    case KEY_FLAG:
    case KEY_FLAG_NOT:
    case KEY_MAYBE:
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
        words_write(writer, row->choices);
        break;
    case KEY_RATE:
    case KEY_DURATION:
        json_put_string(writer, "type", "string");
        json_put_string(writer, "pattern", row->kind == KEY_RATE ? rate_pattern : duration_pattern);
        break;
    case KEY_CHIP:
    case KEY_CHIPS:
        coordinates_write(writer, row->kind == KEY_CHIPS);
        break;
    case KEY_LIST:
        array_begin(writer, row->least, row->most);
        object_write(writer, row->members);
        json_write_object_end(writer);
        break;
    case KEY_WORDS:
        array_begin(writer, row->least, row->most);
        json_put_string(writer, "type", "string");
        if (row->choices != NULL) words_write(writer, row->choices);
        json_write_object_end(writer);
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
        described(writer, row);
        kind_write(writer, row);
        if (has_preset(row)) preset_write(writer, row);
        json_write_object_end(writer);
    }
    json_write_object_end(writer);
}

void scenario_schema(struct strbuf *text)
{
    struct json_writer writer;
    json_write_start(&writer, text);
    writer.flat = FLAT_DEPTH;
    json_write_object(&writer);
    json_put_string(&writer, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_put_string(&writer, "title", "a scenario of podsim");
    object_write(&writer, scenario_keys);
    json_write_object_end(&writer);
}

static void values_add(struct strbuf *text, const struct key *row)
{
    char least[KEY_AMOUNT_BYTES], most[KEY_AMOUNT_BYTES];
    bool const has_unit = row->kind == KEY_RATE || row->kind == KEY_DURATION;
    if (row->values != NULL)
        strbuf_add(text, "%s", row->values);
    else if (row->kind == KEY_FLAG || row->kind == KEY_FLAG_NOT || row->kind == KEY_MAYBE)
        strbuf_add(text, "boolean");
    else if (row->kind == KEY_SHARE)
        strbuf_add(text, "%g to %g", (double)row->least / PPM_ONE, (double)row->most / PPM_ONE);
    else if (has_unit)
        strbuf_add(text, "%s to %s", key_amount_text(row, (uint64_t)row->least, least),
                   key_amount_text(row, (uint64_t)row->most, most));
    else if (row->choices == NULL && row->most == INT64_MAX)
        strbuf_add(text, "%lld or more", (long long)row->least);
    else if (row->choices == NULL && row->least == row->most)
        strbuf_add(text, "%lld", (long long)row->least);
    else if (row->choices == NULL)
        strbuf_add(text, "%lld to %lld", (long long)row->least, (long long)row->most);
    else
        for (uint32_t i = 0; row->choices[i] != NULL; i++)
            strbuf_add(text, "%s`%s`", i == 0 ? "" : ", ", row->choices[i]);
}

static void preset_add(struct strbuf *text, const struct key *row)
{
    if (row->needed)
        strbuf_add(text, "needed");
    else if (row->preset_text != NULL)
        strbuf_add(text, "%s", row->preset_text);
    else if (row->kind == KEY_FLAG || row->kind == KEY_FLAG_NOT)
        strbuf_add(text, "`%s`", row->preset != 0 ? "true" : "false");
    else if (row->kind == KEY_SHARE)
        strbuf_add(text, "%g", (double)row->preset / PPM_ONE);
    else if (row->choices != NULL || row->kind == KEY_TEXT)
        strbuf_add(text, "`%s`", preset_word(row));
    else
        strbuf_add(text, "%lld", (long long)row->preset);
}

/* An object that has no words for its values comes as its members, "leaf.policy". */
static void rows_add(struct strbuf *text, const char *before, const struct key *rows)
{
    for (const struct key *row = rows; row->name != NULL; row++) {
        if (row->kind == KEY_OBJECT && row->values == NULL) {
            char path[64];
            (void)snprintf(path, sizeof path, "%s%s.", before, row->name);
            rows_add(text, path, row->members);
            continue;
        }
        strbuf_add(text, "| `%s%s` | ", before, row->name);
        values_add(text, row);
        strbuf_add(text, " | ");
        preset_add(text, row);
        strbuf_add(text, " | %s%s%s |\n", row->when == NULL ? "" : row->when,
                   row->when == NULL ? "" : ": ", row->help);
    }
}

static const char table_head[] = "| key | values | default | meaning |\n|---|---|---|---|\n";

void scenario_tables(struct strbuf *text)
{
    strbuf_add(text, "## A scenario\n\n%s", table_head);
    rows_add(text, "", scenario_keys);
    for (const struct key *row = scenario_keys; row->name != NULL; row++) {
        if (row->kind != KEY_OBJECT) continue;
        strbuf_add(text, "\n## `%s`\n\n%s", row->name, table_head);
        rows_add(text, "", row->members);
        for (const struct key *member = row->members; member->name != NULL; member++) {
            if (member->kind != KEY_OBJECT || !member->has_table) continue;
            strbuf_add(text, "\n### `%s`\n\n%s", member->name, table_head);
            rows_add(text, "", member->members);
        }
    }
}
