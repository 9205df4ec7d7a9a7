/*
 * scenario_schema.c: the JSON Schema of a scenario and the tables of its documentation.
 */
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/machine/chip_keys.h"
#include "sim/model/model_read.h"
#include "sim/scenario/scenario_parts.h"

enum { FLAT_DEPTH = 5 };

/* Objects that may stand where a scenario names a chip or a model, and parts of them. */
static const struct {
    const char *definition; /* NULL: it is written with what it is a part of. */
    const char *heading;
    const struct key *rows;
} objects[] = {
    {"mlp", "### The bare MLP", model_mlp_keys},
    {"tpu", "### The file of a TPU", chip_tpu_keys},
    {NULL, "#### A profile of a TPU", chip_tpu_profile_keys},
    {"gpu", "### The file of a GPU", chip_gpu_keys},
    {NULL, "#### A profile of a GPU", chip_gpu_profile_keys},
};
enum { OBJECT_COUNT = sizeof objects / sizeof *objects };

void scenario_text_or_schema(struct json_writer *writer, const char *const *definitions)
{
    json_put_array(writer, "anyOf");
    json_write_object(writer);
    key_types_schema(writer, "string", NULL);
    json_write_object_end(writer);
    for (uint32_t i = 0; definitions[i] != NULL; i++) {
        json_write_object(writer);
        json_put_string(writer, "$ref", definitions[i]);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

/* A config.json, whose keys are its readers'. */
static void config_add(struct json_writer *writer)
{
    json_put_object(writer, "config");
    json_put_string(writer, "type", "object");
    json_put_boolean(writer, "additionalProperties", true);
    json_put_object(writer, "properties");
    json_put_object(writer, "model_type");
    json_put_string(writer, "type", "string");
    json_write_object_end(writer);
    json_write_object_end(writer);
    json_put_array(writer, "required");
    json_write_string(writer, "model_type");
    json_write_array_end(writer);
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
    keys_schema(&writer, scenario_keys);
    json_put_object(&writer, "$defs");
    for (uint32_t i = 0; i < OBJECT_COUNT; i++) {
        if (objects[i].definition == NULL) continue;
        json_put_object(&writer, objects[i].definition);
        keys_schema(&writer, objects[i].rows);
        json_write_object_end(&writer);
    }
    config_add(&writer);
    json_write_object_end(&writer);
    json_write_object_end(&writer);
}

static void table_add(struct strbuf *text, const char *level, const struct key *row)
{
    strbuf_add(text, "\n%s `%s`\n\n", level, row->name);
    keys_table(text, row->members);
}

static void variants_add(struct strbuf *text, const struct key *row)
{
    strbuf_add(text, "\n## `%s`\n", row->name);
    for (const struct key *variant = row->members; variant->name != NULL; variant++) {
        strbuf_add(text, "\n### `%s` of kind `%s`\n\n", row->name, variant->name);
        keys_table(text, variant->members);
    }
}

void scenario_tables(struct strbuf *text)
{
    strbuf_add(text, "## A scenario\n\n");
    keys_table(text, scenario_keys);
    for (const struct key *row = scenario_keys; row->name != NULL; row++) {
        if (row->kind == &key_variants) variants_add(text, row);
        if (row->members == NULL || row->kind == &key_variants) continue;
        table_add(text, "##", row);
        for (const struct key *member = row->members; member->name != NULL; member++)
            if (member->has_table) table_add(text, "###", member);
    }
    for (uint32_t i = 0; i < OBJECT_COUNT; i++) {
        strbuf_add(text, "\n%s\n\n", objects[i].heading);
        keys_table(text, objects[i].rows);
    }
}
