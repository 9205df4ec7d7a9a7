#include "sim/scenario/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/chip.h"
#include "sim/scenario/scenario_parts.h"
#include "sim/step/workload.h"

/* Written at build time from workloads/presets/. */
extern const struct embed_file presets_files[];
extern const unsigned presets_files_count;

enum { FILE_VERSION = 1, NAMES_MAX = 64, PART_BYTES = 64, YEAR_LEAST = 2000, YEAR_MOST = 2100 };

const char *preset_name_at(uint32_t index)
{
    return index < presets_files_count ? presets_files[index].name : NULL;
}

/* --- A file --- */

static enum status text_read(struct json *object, const char *key, bool needed, const char **ret,
                             struct error *reterr)
{
    struct json *value = NULL;
    if (needed) {
        STATUS_TRY(json_need(object, key, &value, reterr));
    } else {
        value = json_take(object, key);
        if (value == NULL) return STATUS_OK;
    }
    return json_as_string(value, ret, reterr);
}

static enum status value_text(struct arena *arena, struct json *value, const char **ret_text,
                              struct error *reterr)
{
    struct strbuf text = {0};
    struct json_writer writer;
    json_write_start(&writer, &text);
    writer.flat = 1;
    json_write_value(&writer, value);
    *ret_text = text.failed ? NULL : arena_text(arena, text.bytes);
    strbuf_free(&text);
    if (*ret_text == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a preset");
    return STATUS_OK;
}

static enum status texts_read(struct json *list, uint32_t most, const char **ret_text,
                              uint32_t *ret_count, struct error *reterr)
{
    *ret_count = 0;
    if (list == NULL) return STATUS_OK;
    if (json_kind(list) != JSON_ARRAY || json_count(list) > most)
        return error_set(reterr, STATUS_INVALID, json_where(list),
                         "must be an array of at most %u texts", most);
    for (uint32_t i = 0; i < json_count(list); i++)
        STATUS_TRY(json_as_string(json_at(list, i), &ret_text[i], reterr));
    *ret_count = json_count(list);
    return STATUS_OK;
}

static enum status keys_of(struct arena *arena, struct json *list, uint32_t most,
                           struct preset_key *ret_key, uint32_t *ret_count, struct error *reterr)
{
    static const char *const known[] = {"key", "value", "source", "with", "unless", NULL};
    uint32_t const count = json_count(list);
    if (json_kind(list) != JSON_ARRAY || count > most)
        return error_set(reterr, STATUS_INVALID, json_where(list),
                         "must be an array of at most %u keys", most);
    for (uint32_t i = 0; i < count; i++) {
        struct json *object = json_at(list, i), *value = NULL;
        struct preset_key *key = &ret_key[i];
        STATUS_TRY(json_as_object(object, reterr));
        STATUS_TRY(text_read(object, "key", true, &key->pointer, reterr));
        STATUS_TRY(json_need(object, "value", &value, reterr));
        STATUS_TRY(value_text(arena, value, &key->value, reterr));
        STATUS_TRY(text_read(object, "source", true, &key->source, reterr));
        STATUS_TRY(texts_read(json_take(object, "with"), PRESET_AXES_MAX, key->with,
                              &key->with_count, reterr));
        STATUS_TRY(texts_read(json_take(object, "unless"), PRESET_UNLESS_MAX, key->unless,
                              &key->unless_count, reterr));
        STATUS_TRY(json_end(object, known, reterr));
    }
    *ret_count = count;
    return STATUS_OK;
}

static enum status words_of(struct arena *arena, struct json *words, struct preset *preset,
                            struct error *reterr)
{
    STATUS_TRY(json_as_object(words, reterr));
    if (json_count(words) > PRESET_WORDS_MAX)
        return error_set(reterr, STATUS_LIMIT, json_where(words), "has more than %d words",
                         PRESET_WORDS_MAX);
    for (uint32_t i = 0; json_key_at(words, i) != NULL; i++) {
        struct preset_word *word = &preset->recompute[preset->recompute_count++];
        word->word = json_key_at(words, i);
        STATUS_TRY(keys_of(arena, json_take(words, word->word), PRESET_WORDS_MAX, word->key,
                           &word->key_count, reterr));
    }
    return STATUS_OK;
}

static const char *const preset_kinds[] = {"train_step", "inference", NULL};

static enum status preset_read(struct arena *arena, struct json *document, struct preset *preset,
                               struct error *reterr)
{
    static const char *const known[] = {"podsim_preset", "title", "year",      "kind",
                                        "stack",         "set",   "recompute", NULL};
    struct json *value = NULL;
    int64_t version = 0, year = 0;
    uint32_t kind = 0;
    STATUS_TRY(json_as_object(document, reterr));
    STATUS_TRY(json_need(document, "podsim_preset", &value, reterr));
    STATUS_TRY(json_as_integer(value, FILE_VERSION, FILE_VERSION, &version, reterr));
    STATUS_TRY(text_read(document, "title", true, &preset->title, reterr));
    value = json_take(document, "year");
    if (value != NULL) STATUS_TRY(json_as_integer(value, YEAR_LEAST, YEAR_MOST, &year, reterr));
    preset->year = (uint32_t)year;
    STATUS_TRY(json_need(document, "kind", &value, reterr));
    STATUS_TRY(json_choice(value, preset_kinds, &kind, reterr));
    preset->trains = kind == 0;
    STATUS_TRY(text_read(document, "stack", false, &preset->stack, reterr));
    STATUS_TRY(json_need(document, "set", &value, reterr));
    STATUS_TRY(keys_of(arena, value, PRESET_KEYS_MAX, preset->key, &preset->key_count, reterr));
    value = json_take(document, "recompute");
    if (value != NULL) STATUS_TRY(words_of(arena, value, preset, reterr));
    return json_end(document, known, reterr);
}

enum status preset_find(struct arena *arena, const char *name, const char *where,
                        struct preset *ret_preset, struct error *reterr)
{
    const struct embed_file *file = embed_find(presets_files, presets_files_count, name);
    struct json *document = NULL;
    *ret_preset = (struct preset){.name = name};
    if (file == NULL) {
        const char *names[NAMES_MAX + 1] = {NULL};
        for (uint32_t i = 0; i < NAMES_MAX; i++) names[i] = preset_name_at(i);
        return error_set(reterr, STATUS_NOT_FOUND, where, "no preset is called \"%.40s\"%s", name,
                         name_offer(name, names, "; the nearest is \"", "\"", NULL).text);
    }
    ret_preset->name = file->name;
    STATUS_TRY(json_read_text(arena, file->name, file->bytes, file->size_bytes, &document, reterr));
    return preset_read(arena, document, ret_preset, reterr);
}

/* --- A scenario --- */

/* What lies at "/workload/zero"; NULL: nothing. */
static struct json *at_pointer(struct json *document, const char *pointer)
{
    struct json *at = document;
    while (at != NULL && *pointer == '/') {
        char part[PART_BYTES];
        size_t const length = strcspn(pointer + 1, "/");
        if (length >= sizeof part || json_kind(at) != JSON_OBJECT) return NULL;
        memcpy(part, pointer + 1, length);
        part[length] = '\0';
        at = json_take(at, part);
        pointer += 1 + length;
    }
    return at;
}

/* Whether a mesh has one of the key's axes, or the key none. */
static bool has_axis(struct json *mesh, const struct preset_key *key)
{
    if (key->with_count == 0) return true;
    if (mesh == NULL || json_kind(mesh) != JSON_OBJECT) return false;
    for (uint32_t i = 0; i < key->with_count; i++)
        if (json_take(mesh, key->with[i]) != NULL) return true;
    return false;
}

/* Whether two values mean the same: numbers may be written as text, 2 as "2" or 2.0. */
static bool same_value(const char *one, const char *other)
{
    const char *const text[2] = {one + (*one == '"'), other + (*other == '"')};
    double number[2];
    for (uint32_t i = 0; i < 2; i++) {
        char *end = NULL;
        number[i] = strtod(text[i], &end);
        if (end == text[i] || strspn(end, "\"") != strlen(end)) return name_same(one, other);
    }
    return !(number[0] < number[1]) && !(number[0] > number[1]);
}

/* Chips of the catalogue alone. */
static enum status is_tpu(struct arena *arena, struct json *document, bool *ret_tpu,
                          struct error *reterr)
{
    struct json *const name = at_pointer(document, "/machine/chip");
    struct machine_plan plan = {.profile = "ideal"};
    struct error later; /* Names that no chip has are refused where they are read. */
    const char *units = NULL;
    struct chip chip;
    *ret_tpu = false;
    if (name == NULL || json_kind(name) != JSON_STRING) return STATUS_OK;
    STATUS_TRY(json_as_string(name, &plan.chip, reterr));
    enum status const status = machine_chip(arena, &plan, &chip, &units, &later);
    if (status == STATUS_NO_MEMORY) *reterr = later;
    *ret_tpu = status == STATUS_OK && chip.kind == CHIP_TPU;
    return status == STATUS_NO_MEMORY ? status : STATUS_OK;
}

/* The same of a condition, where a text with a star stands for all that begin as it does up to
 * there. */
static bool value_meets(const char *text, const char *condition)
{
    const char *const star = strchr(condition, '*');
    if (star == NULL) return same_value(text, condition);
    size_t const bytes = (size_t)(star - condition);
    return strlen(text) >= bytes && memcmp(text, condition, bytes) == 0;
}

static bool has_rms_norms(const struct model *model)
{
    return model->kind == MODEL_DECODER && !model->norms.centred;
}

static bool is_untied(const struct model *model)
{
    return !model->tied;
}

/* What a model has; false of what is none. */
static enum status model_has(struct arena *arena, struct json *document, const char *base_folder,
                             bool (*has)(const struct model *), bool *ret_has, struct error *reterr)
{
    struct json *const named = at_pointer(document, "/workload/model");
    struct error later; /* What is no model is refused where it is read. */
    struct model model;
    *ret_has = false;
    if (named == NULL) return STATUS_OK;
    enum status const status = scenario_model_read(arena, named, base_folder, &model, &later);
    if (status == STATUS_NO_MEMORY) *reterr = later;
    *ret_has = status == STATUS_OK && has(&model);
    return status == STATUS_NO_MEMORY ? status : STATUS_OK;
}

/* Whether a scenario has a key, "/mesh/fsdp", or a value, "/workload/zero=2"; null: not the key.
 * What is no pointer: a chip of that kind, "tpu", or a model with such norms, "rms_norms", or
 * without an embedding that is tied to its head, "untied". */
static enum status is_met(struct arena *arena, struct json *document, const char *base_folder,
                          const char *condition, bool *ret_met, struct error *reterr)
{
    static const char *const words[] = {"rms_norms", "untied", NULL};
    static bool (*const has[])(const struct model *) = {has_rms_norms, is_untied};
    size_t const bytes = strcspn(condition, "=");
    uint32_t const word = name_find(condition, words);
    if (words[word] != NULL)
        return model_has(arena, document, base_folder, has[word], ret_met, reterr);
    if (*condition != '/') return is_tpu(arena, document, ret_met, reterr);
    const char *const pointer = arena_format(arena, "%.*s", (int)bytes, condition);
    const char *text = "null";
    if (pointer == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a preset");
    struct json *const at = at_pointer(document, pointer);
    *ret_met = at != NULL;
    if (condition[bytes] == '\0') return STATUS_OK;
    if (at != NULL) STATUS_TRY(value_text(arena, at, &text, reterr));
    *ret_met = value_meets(text, condition + bytes + 1);
    return STATUS_OK;
}

static enum status key_fill(struct arena *arena, struct json *document, const char *base_folder,
                            const struct preset_key *key, struct preset_filled *filled,
                            struct error *reterr)
{
    struct strbuf setting = {0};
    if (at_pointer(document, key->pointer) != NULL) return STATUS_OK;
    if (!has_axis(json_take(document, "mesh"), key)) return STATUS_OK;
    for (uint32_t i = 0; i < key->unless_count; i++) {
        bool met = false;
        STATUS_TRY(is_met(arena, document, base_folder, key->unless[i], &met, reterr));
        if (met) return STATUS_OK;
    }
    strbuf_add(&setting, "%s=%s", key->pointer, key->value);
    enum status const status =
        setting.failed ? error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a preset")
                       : json_set(document, setting.bytes, reterr);
    strbuf_free(&setting);
    filled->value[filled->count] = key->value;
    filled->pointer[filled->count++] = key->pointer;
    return status;
}

/* False of a word that is no kind. */
static bool kind_find(const char *word, enum workload_kind *ret_kind)
{
    uint32_t const found = name_find(word, workload_kind_names);
    *ret_kind = (enum workload_kind)found;
    return workload_kind_names[found] != NULL;
}

static enum status kind_check(struct json *document, const struct preset *preset,
                              struct error *reterr)
{
    struct json *kind = at_pointer(document, "/workload/kind");
    const char *name = NULL;
    if (kind == NULL || json_kind(kind) != JSON_STRING) return STATUS_OK; /* Refused by its row. */
    STATUS_TRY(json_as_string(kind, &name, reterr));
    enum workload_kind found;
    if (!kind_find(name, &found)) return STATUS_OK; /* Refused by its row, too. */
    bool const trains = found == WORKLOAD_TRAIN_STEP;
    if (trains == preset->trains) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "/preset",
                     "%s is for workloads of %s, and this one is of kind \"%.40s\"", preset->name,
                     trains ? "inference" : "training", name);
}

/* Of a chip without tables `show scenario` prints that there is no stack. */
static enum status lacking_find(struct arena *arena, struct json *document, const char *stack,
                                struct preset_filled *filled, struct error *reterr)
{
    static const char *const without[] = {"/machine/stack=null", "/machine/stack=\"none\""};
    for (uint32_t i = 0; i < sizeof without / sizeof *without; i++) {
        bool met = false;
        STATUS_TRY(is_met(arena, document, /* base_folder= */ NULL, without[i], &met, reterr));
        if (met) filled->lacking_stack = stack;
    }
    return STATUS_OK;
}

/* Where the chip has these kernels, in a profile that reads some. */
static enum status stack_fill(struct arena *arena, struct json *document, const char *stack,
                              struct preset_filled *filled, struct error *reterr)
{
    struct json *chip = at_pointer(document, "/machine/chip");
    struct json *profile = at_pointer(document, "/machine/profile");
    const char *name = NULL, *rates = NULL;
    if (stack == NULL || chip == NULL || json_kind(chip) != JSON_STRING || profile == NULL ||
        json_kind(profile) != JSON_STRING)
        return STATUS_OK;
    STATUS_TRY(json_as_string(chip, &name, reterr));
    STATUS_TRY(json_as_string(profile, &rates, reterr));
    struct chip named;
    struct error later; /* Names that no chip and no profile has are refused where they are read. */
    enum status const status = chip_find(arena, name, rates, "", "", &named, &later);
    if (status == STATUS_NO_MEMORY) *reterr = later;
    if (status != STATUS_OK) return status == STATUS_NO_MEMORY ? status : STATUS_OK;
    if (named.is_ideal || !kernel_stack_is_shipped(named.name, stack)) return STATUS_OK;
    filled->lacking_stack = NULL;
    const char *const value = arena_format(arena, "\"%s\"", stack);
    if (value == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a preset");
    struct preset_key const key = {.pointer = "/machine/stack", .value = value};
    return key_fill(arena, document, /* base_folder= */ NULL, &key, filled, reterr);
}

enum status preset_apply(struct arena *arena, struct json *document, const char *base_folder,
                         struct preset_filled *ret_filled, struct error *reterr)
{
    struct json *value = json_kind(document) == JSON_OBJECT ? json_take(document, "preset") : NULL;
    struct preset preset;
    const char *name = NULL;
    *ret_filled = (struct preset_filled){.count = 0};
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(json_as_string(value, &name, reterr));
    STATUS_TRY(preset_find(arena, name, json_where(value), &preset, reterr));
    STATUS_TRY(kind_check(document, &preset, reterr));
    STATUS_TRY(lacking_find(arena, document, preset.stack, ret_filled, reterr));
    STATUS_TRY(stack_fill(arena, document, preset.stack, ret_filled, reterr));
    for (uint32_t i = 0; i < preset.key_count; i++)
        STATUS_TRY(key_fill(arena, document, base_folder, &preset.key[i], ret_filled, reterr));
    return STATUS_OK;
}
