/*
 * scenario_machine_parse.c: a machine on a command line. It is turned into the settings of a
 * scenario's machine, so that both are read by the same code.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/letter.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/scenario/scenario_parts.h"

enum { TEXT_BYTES_MAX = 1024, TEXT_KEYS_MAX = 48, NAME_BYTES = 48 };

/* A key that the text may set: "leaf.policy", "/network/leaf/policy". */
struct text_key {
    char name[NAME_BYTES], pointer[NAME_BYTES];
    bool is_taken;
};

struct text_keys {
    struct text_key at[TEXT_KEYS_MAX];
    uint32_t count;
};

/* A part of a text, up to a comma. */
struct text_span {
    const char *text;
    int length;
};

/* The keys of one value, and where `within` says so those of objects. */
static void keys_add(struct text_keys *keys, const char *before, const char *pointer,
                     const struct key *rows, bool within)
{
    for (const struct key *row = rows; row->name != NULL; row++) {
        struct text_key key = {.is_taken = false};
        (void)snprintf(key.name, sizeof key.name, "%s%s", before, row->name);
        (void)snprintf(key.pointer, sizeof key.pointer, "%s/%s", pointer, row->name);
        if (row->kind == &key_object && within) {
            (void)snprintf(key.name, sizeof key.name, "%s.", row->name);
            keys_add(keys, key.name, key.pointer, row->members, within);
        } else if (row->kind->say != NULL || row->kind == &key_text) {
            SIM_ASSERT(keys->count < TEXT_KEYS_MAX);
            keys->at[keys->count++] = key;
        }
    }
}

static enum status key_find(struct text_keys *keys, struct text_span name, const char *where,
                            struct text_key **ret_key, struct error *reterr)
{
    const char *names[TEXT_KEYS_MAX + 1] = {NULL};
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%.*s", name.length, name.text);
    for (uint32_t i = 0; i < keys->count; i++) {
        names[i] = keys->at[i].name;
        *ret_key = &keys->at[i];
        if (name_same(wanted, names[i])) return STATUS_OK;
    }
    return error_set(reterr, STATUS_INVALID, where, "\"%s\" is no key of a machine%s", wanted,
                     name_offer(wanted, names, "; the nearest is \"", "\"", NULL).text);
}

static enum status set(struct json *document, const char *pointer, struct text_span value,
                       struct error *reterr)
{
    char setting[TEXT_BYTES_MAX + 64];
    (void)snprintf(setting, sizeof setting, "%s=%.*s", pointer, value.length, value.text);
    return json_set(document, setting, reterr);
}

/* "key=value", or a shape if it is the first after the chip's colon. */
static enum status take_span(struct json *document, struct text_span span, bool may_be_shape,
                             struct text_keys *keys, const char *where, struct error *reterr)
{
    static const struct text_span shape = {"shape", 5};
    const char *equals = memchr(span.text, '=', (size_t)span.length);
    struct text_key *key = NULL;
    bool const is_shape = equals == NULL && may_be_shape && span.length > 0;
    if (equals == NULL && !is_shape) {
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.*s\" is not \"key=value\", such as \"nodes=4\"", span.length,
                         span.text);
    }
    struct text_span name = shape, value = span;
    if (!is_shape) {
        name = (struct text_span){span.text, (int)(equals - span.text)};
        value = (struct text_span){equals + 1, span.length - name.length - 1};
    }
    STATUS_TRY(key_find(keys, name, where, &key, reterr));
    if (key->is_taken)
        return error_set(reterr, STATUS_INVALID, where, "\"%s\" is said twice", key->name);
    key->is_taken = true;
    return set(document, key->pointer, value, reterr);
}

static enum status parse_text(struct arena *arena, const char *text, const char *where,
                              struct json **ret_document, struct error *reterr)
{
    static const char empty[] = "{}";
    struct text_keys keys = {.count = 0};
    struct json *document = NULL;
    size_t const name = strcspn(text, ":,");
    if (name == 0) {
        return error_set(reterr, STATUS_INVALID, where,
                         "a machine begins with a chip, such as \"tpu-v5e:8x16\" or "
                         "\"h100-sxm:nodes=4\"");
    }
    STATUS_TRY(json_read_text(arena, where, empty, sizeof empty - 1, &document, reterr));
    /* As JSON text, so that no name is taken for a number. */
    const char *chip = arena_format(arena, "/chip=\"%.*s\"", (int)name, text);
    if (chip == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for a text");
    STATUS_TRY(json_set(document, chip, reterr));
    bool may_be_shape = text[name] == ':';
    keys_add(&keys, "", "", machine_keys, /* within= */ false);
    keys_add(&keys, "", "/network", network_keys, /* within= */ true);
    for (const char *next = text + name; *next != '\0';) {
        struct text_span const span = {next + 1, (int)strcspn(next + 1, ",")};
        STATUS_TRY(take_span(document, span, may_be_shape, &keys, where, reterr));
        may_be_shape = false;
        next = span.text + span.length;
    }
    *ret_document = document;
    return STATUS_OK;
}

/* A file holds a machine, a scenario with one, or a chip, which alone is a machine of the size that
 * it is sold in. */
static enum status file_read(struct arena *arena, const char *path, struct machine_plan *ret_plan,
                             bool *ret_is_chip, struct error *reterr)
{
    struct json *document = NULL;
    const char *folder = NULL;
    STATUS_TRY(path_folder(arena, path, &folder, reterr));
    STATUS_TRY(json_read_file(arena, path, &document, reterr));
    struct json *machine =
        json_kind(document) == JSON_OBJECT ? json_take(document, "machine") : NULL;
    *ret_is_chip = machine == NULL && json_take(document, "chip") == NULL &&
                   (json_take(document, "kind") != NULL || json_take(document, "profiles") != NULL);
    if (*ret_is_chip) return STATUS_OK;
    return scenario_machine_read(arena, machine == NULL ? document : machine, folder, ret_plan,
                                 reterr);
}

static enum status check_letters(const char *text, const char *where, struct error *reterr)
{
    if (strlen(text) >= TEXT_BYTES_MAX) {
        return error_set(reterr, STATUS_INVALID, where, "a machine of more than %d letters",
                         TEXT_BYTES_MAX - 1);
    }
    if (!letters_are_plain(text) || strpbrk(text, "\"\\") != NULL)
        return error_set(reterr, STATUS_INVALID, where,
                         "a machine holds no quotes, backslashes or control characters");
    return STATUS_OK;
}

enum status scenario_machine_parse(struct arena *arena, const char *text, const char *where,
                                   struct machine_plan *ret_plan, struct error *reterr)
{
    struct json *document = NULL;
    struct error inner = {0};
    size_t const name = strcspn(text, ":,");
    bool is_chip = false;
    STATUS_TRY(check_letters(text, where, reterr));
    const char *path = arena_format(arena, "%.*s", (int)name, text);
    if (path == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory");
    if (path_is_json(path)) {
        STATUS_TRY(file_read(arena, path, ret_plan, &is_chip, reterr));
        if (!is_chip && text[name] == '\0') return STATUS_OK;
        if (!is_chip)
            return error_set(reterr, STATUS_INVALID, where,
                             "\"%.80s\" holds a whole machine, so no keys can follow; they follow "
                             "the file of a chip",
                             path);
    } else if (path_is(path)) {
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.80s\" is a path, but the file of a machine or a chip ends in .json; "
                         "else a machine begins with a chip, such as \"h100-sxm:nodes=4\"",
                         text);
    }
    enum status status = parse_text(arena, text, "", &document, &inner);
    if (status == STATUS_OK)
        status = scenario_machine_read(arena, document, NULL, ret_plan, &inner);
    if (status == STATUS_OK) return STATUS_OK;
    bool const in_file = is_chip && strncmp(inner.where, text, name) == 0;
    char at[sizeof inner.where + 32];
    (void)snprintf(at, sizeof at, "%s%s", in_file ? "" : where, inner.where);
    return error_set(reterr, status, at, "%s", inner.message);
}

enum status scenario_machine_json(struct arena *arena, const char *text, const char *where,
                                  struct json **ret_machine, struct error *reterr)
{
    struct machine_plan ignored;
    struct json *document = NULL;
    size_t const name = strcspn(text, ":,");
    STATUS_TRY(scenario_machine_parse(arena, text, where, &ignored, reterr));
    const char *path = arena_format(arena, "%.*s", (int)name, text);
    if (path == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory");
    if (!path_is_json(path)) return parse_text(arena, text, where, ret_machine, reterr);
    STATUS_TRY(json_read_file(arena, path, &document, reterr));
    *ret_machine = json_take(document, "machine");
    if (*ret_machine != NULL) return STATUS_OK;
    *ret_machine = document;
    if (json_take(document, "chip") != NULL) return STATUS_OK;
    return parse_text(arena, text, where, ret_machine, reterr);
}
