/*
 * named.c: models by the names that frameworks have for them.
 *
 * A name stands for a built-in model, or for sizes of workloads/named-models.json, which are those
 * of the model's own config.json.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/model/model_read.h"
#include "tools/podsim/import/import.h"

enum { NAMES_MAX = 128 };

/* Written at build time from workloads/named-models.json. */
extern const struct embed_file named_model_files[];

/* The config.json of a model that is not built in, as text; "_name_or_path" is its name. */
static enum status sizes_of(struct import *import, const char *name, const char **ret_config,
                            struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    struct json_writer writer;
    struct json *document = NULL, *config = NULL;
    STATUS_TRY(json_read_text(import->arena, "named-models.json", named_model_files[0].bytes,
                              named_model_files[0].size_bytes, &document, reterr));
    STATUS_TRY(json_need(document, name, &config, reterr));
    json_write_start(&writer, &text);
    json_write_object(&writer);
    json_write_key(&writer, "_name_or_path");
    json_write_string(&writer, name);
    for (uint32_t i = 0; i < json_count(config); i++) {
        json_write_key(&writer, json_key_at(config, i));
        json_write_value(&writer, json_take(config, json_key_at(config, i)));
    }
    json_write_object_end(&writer);
    *ret_config = text.failed ? NULL : arena_text(import->arena, text.bytes);
    strbuf_free(&text);
    if (*ret_config == NULL) return error_no_memory(reterr, "");
    return STATUS_OK;
}

static enum status model_set(struct import *import, const char *ours, struct error *reterr)
{
    uint32_t bytes = 0;
    const char *config = NULL;
    if (model_json(ours, &bytes) != NULL)
        return import_set(import, reterr, "/workload/model=%s", ours);
    STATUS_TRY(sizes_of(import, ours, &config, reterr));
    return import_set(import, reterr, "/workload/model=%s", config);
}

/* The name without the end that says how a model of the same sizes was trained on. */
static const char *untuned(struct import *import, const char *name)
{
    static const char *const ends[] = {"-Instruct", "-instruct", "-it", "-Base", "-base"};
    size_t const length = strlen(name);
    for (uint32_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t const end = strlen(ends[i]);
        if (length <= end || !name_same(name + length - end, ends[i])) continue;
        char *const rest = arena_text(import->arena, name);
        if (rest != NULL) rest[length - end] = '\0';
        return rest == NULL ? name : rest;
    }
    return name;
}

/* What is not known of "llama3 9B": the flavor, where other flavors of the name are. */
static const void *unknown_part(const struct import_names *said, const char *const *known)
{
    for (; said->model != NULL && said->flavor != NULL && *known != NULL; known++) {
        const char *const behind = name_after(*known, said->model);
        if (behind != NULL && *behind == ' ') return &said->flavor;
    }
    return &said->model;
}

enum status import_model_named(struct import *import, const struct import_name *names,
                               struct error *reterr)
{
    const struct import_names *said = &import->facts.names;
    const char *known[NAMES_MAX + 1] = {NULL};
    uint32_t count = 0;
    if (import->model != NULL) return import_model(import, reterr);
    for (; names[count].theirs != NULL; count++) {
        SIM_ASSERT(count < NAMES_MAX);
        known[count] = names[count].theirs;
    }
    const char *name = said->model == NULL ? ""
                       : said->flavor == NULL
                           ? said->model
                           : arena_format(import->arena, "%s %s", said->model, said->flavor);
    if (name == NULL) return error_no_memory(reterr, "");
    uint32_t found = name_find(name, known);
    if (found == count) found = name_find(untuned(import, name), known);
    if (found == count)
        return import_refuse(
            import, unknown_part(said, known), reterr,
            "podsim has no sizes of the model \"%.60s\"%s; `--model NAME` names one "
            "of `podsim list models`, or a config.json",
            name, name_offer(name, known, "; the nearest it has is ", "", "").text);
    import_sizes_drop(import, /* but_name= */ true, "the named model has its own");
    uint64_t const mtp = import->facts.sizes.mtp;
    if (names[found].lacks_mtp)
        STATUS_TRY(import_set(import, reterr, "/workload/mtp=%s", mtp == 0 ? "false" : "true"));
    if (mtp > names[found].lacks_mtp)
        import_lacks(import, &import->facts.sizes.mtp,
                     "modules for multi-token prediction that podsim's model does not have");
    return model_set(import, names[found].ours, reterr);
}
