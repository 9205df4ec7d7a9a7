/*
 * read_yaml.c: YAML, and JSON, which is written in it, as a flat list. The only user of libyaml.
 *
 * Keys are texts; an anchor that is used again is refused, so a small file stays a small list.
 */
#include <string.h>

#include <yaml.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/import/settings.h"

struct yaml {
    struct import_file *file;
    yaml_parser_t parser;
    yaml_event_t event; /* The next one; of type NO_EVENT if none is there. */
    uint32_t depth;
};

static enum status read_node(struct yaml *yaml, const char *key, struct error *reterr);

static enum status next(struct yaml *yaml, struct error *reterr)
{
    yaml_event_delete(&yaml->event);
    if (yaml_parser_parse(&yaml->parser, &yaml->event) == 1) return STATUS_OK;
    const yaml_parser_t *parser = &yaml->parser;
    bool const has_line = parser->problem_mark.line > 0 || parser->problem_mark.column > 0;
    return settings_fail(yaml->file, has_line ? (uint32_t)parser->problem_mark.line + 1 : 1,
                         STATUS_INVALID, reterr, "%s",
                         parser->problem == NULL ? "no YAML" : parser->problem);
}

static uint32_t line_of(const struct yaml *yaml)
{
    return (uint32_t)yaml->event.start_mark.line + 1;
}

/* What a word without quotes is, by YAML's core schema. */
static enum import_form form_of(const char *text, bool is_quoted)
{
    static const char *const nulls[] = {"", "~", "null", NULL};
    static const char *const booleans[] = {"true", "false", "yes", "no", "on", "off", NULL};
    if (is_quoted) return IMPORT_TEXT;
    if (nulls[name_find_any_case(text, nulls)] != NULL) return IMPORT_NULL;
    if (booleans[name_find_any_case(text, booleans)] != NULL) return IMPORT_BOOLEAN;
    const char *digits = text + (*text == '-' || *text == '+');
    bool const is_number = *digits != '\0' && digits[strspn(digits, "0123456789_.eE+-")] == '\0' &&
                           strspn(digits, "0123456789.") > 0;
    return is_number ? IMPORT_NUMBER : IMPORT_TEXT;
}

static enum status refuse_alias(struct yaml *yaml, struct error *reterr)
{
    return settings_fail(yaml->file, line_of(yaml), STATUS_UNSUPPORTED, reterr,
                         "*%.60s: a part that is used again is not read; write it out",
                         (const char *)yaml->event.data.alias.anchor);
}

/* The text of a scalar, without characters 0. */
static enum status scalar(struct yaml *yaml, const char **ret_text, struct error *reterr)
{
    const char *const bytes = (const char *)yaml->event.data.scalar.value;
    size_t const length = yaml->event.data.scalar.length;
    if (memchr(bytes, '\0', length) != NULL)
        return settings_fail(yaml->file, line_of(yaml), STATUS_INVALID, reterr,
                             "a text with a character 0");
    *ret_text = arena_text(yaml->file->arena, bytes);
    return *ret_text == NULL ? error_no_memory(reterr, "") : STATUS_OK;
}

static enum status add(struct yaml *yaml, uint32_t line, const char *key, const char *value,
                       enum import_form form, struct error *reterr)
{
    struct import_setting const setting = {.key = key, .value = value, .line = line, .form = form};
    const struct import_setting *const other = settings_find(yaml->file, key);
    if (other != NULL)
        return settings_fail(yaml->file, line, STATUS_INVALID, reterr,
                             "\"%.80s\" is given twice, first in line %u", key, other->line);
    return settings_add(yaml->file, &setting, reterr);
}

/* Elements are one text with blanks between; lists and maps in it have keys of their own. */
static enum status read_list(struct yaml *yaml, const char *key, struct error *reterr)
{
    uint32_t const line = line_of(yaml);
    struct strbuf text = {.bytes = NULL};
    enum status status = next(yaml, reterr);
    for (uint32_t i = 0; status == STATUS_OK && yaml->event.type != YAML_SEQUENCE_END_EVENT; i++) {
        const char *element = NULL;
        if (yaml->event.type == YAML_SCALAR_EVENT) {
            status = scalar(yaml, &element, reterr);
            strbuf_add(&text, "%s%s", text.size_bytes > 0 ? " " : "",
                       element == NULL ? "" : element);
        } else {
            const char *inner =
                arena_format(yaml->file->arena, "%s%s%u", key, key[0] == '\0' ? "" : ".", i);
            status = inner == NULL ? error_no_memory(reterr, "") : read_node(yaml, inner, reterr);
        }
        if (status == STATUS_OK) status = next(yaml, reterr);
    }
    strbuf_add(&text, "%s", "");
    const char *value = text.failed ? NULL : arena_text(yaml->file->arena, text.bytes);
    strbuf_free(&text);
    STATUS_TRY(status);
    return value == NULL ? error_no_memory(reterr, "")
                         : add(yaml, line, key, value, IMPORT_LIST, reterr);
}

static enum status read_map(struct yaml *yaml, const char *key, struct error *reterr)
{
    STATUS_TRY(next(yaml, reterr));
    while (yaml->event.type != YAML_MAPPING_END_EVENT) {
        const char *name = NULL;
        if (yaml->event.type == YAML_ALIAS_EVENT) return refuse_alias(yaml, reterr);
        if (yaml->event.type != YAML_SCALAR_EVENT)
            return settings_fail(yaml->file, line_of(yaml), STATUS_INVALID, reterr,
                                 "a key that is no text");
        STATUS_TRY(scalar(yaml, &name, reterr));
        const char *inner =
            key[0] == '\0' ? name : arena_format(yaml->file->arena, "%s.%s", key, name);
        if (inner == NULL) return error_no_memory(reterr, "");
        STATUS_TRY(next(yaml, reterr));
        STATUS_TRY(read_node(yaml, inner, reterr));
        STATUS_TRY(next(yaml, reterr));
    }
    return STATUS_OK;
}

/* At the first event of a value; its last one is left. */
static enum status read_node(struct yaml *yaml, const char *key, struct error *reterr)
{
    const char *text = NULL;
    enum status status = STATUS_OK;
    if (yaml->event.type == YAML_ALIAS_EVENT) return refuse_alias(yaml, reterr);
    if (yaml->depth == IMPORT_DEPTH_MAX)
        return settings_fail(yaml->file, line_of(yaml), STATUS_LIMIT, reterr,
                             "lists and maps within one another more than %d deep",
                             IMPORT_DEPTH_MAX);
    yaml->depth++;
    if (yaml->event.type == YAML_SCALAR_EVENT) {
        bool const is_quoted = yaml->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        status = scalar(yaml, &text, reterr);
        if (status == STATUS_OK)
            status = add(yaml, line_of(yaml), key, text, form_of(text, is_quoted), reterr);
    } else if (yaml->event.type == YAML_SEQUENCE_START_EVENT) {
        status = read_list(yaml, key, reterr);
    } else {
        status = read_map(yaml, key, reterr);
    }
    yaml->depth--;
    return status;
}

static enum status read_document(struct yaml *yaml, struct error *reterr)
{
    STATUS_TRY(next(yaml, reterr)); /* The stream begins. */
    STATUS_TRY(next(yaml, reterr));
    if (yaml->event.type == YAML_STREAM_END_EVENT) return STATUS_OK;
    STATUS_TRY(next(yaml, reterr)); /* Behind the beginning of the document. */
    bool const is_empty =
        yaml->event.type == YAML_SCALAR_EVENT && yaml->event.data.scalar.length == 0;
    if (!is_empty && yaml->event.type != YAML_MAPPING_START_EVENT)
        return settings_fail(yaml->file, line_of(yaml), STATUS_INVALID, reterr,
                             "keys with values are expected, such as \"steps: 100\"");
    if (!is_empty) STATUS_TRY(read_map(yaml, "", reterr));
    STATUS_TRY(next(yaml, reterr)); /* The document ends. */
    STATUS_TRY(next(yaml, reterr));
    if (yaml->event.type == YAML_STREAM_END_EVENT) return STATUS_OK;
    return settings_fail(yaml->file, line_of(yaml), STATUS_INVALID, reterr,
                         "a second document in the file");
}

enum status settings_read_yaml(struct import_file *file, struct error *reterr)
{
    struct yaml yaml = {.file = file};
    if (yaml_parser_initialize(&yaml.parser) != 1) return error_no_memory(reterr, "");
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)file->text, file->text_bytes);
    yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
    enum status const status = read_document(&yaml, reterr);
    yaml_event_delete(&yaml.event);
    yaml_parser_delete(&yaml.parser);
    return status;
}

enum status settings_read_json(struct import_file *file, struct error *reterr)
{
    struct json *document = NULL;
    STATUS_TRY(
        json_read_text(file->arena, file->path, file->text, file->text_bytes, &document, reterr));
    if (json_kind(document) != JSON_OBJECT) return json_as_object(document, reterr);
    return settings_read_yaml(file, reterr);
}
