#include "sim/machine/chip.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/machine/chip_read.h"

/* Written at build time from topology/chips/. */
extern const struct embed_file chip_files[];
extern const unsigned chip_files_count;

enum { CHIP_NAMES_MAX = 128 };

const char *const chip_launch_names[] = {[CHIP_LAUNCHES_PROFILE] = "profile",
                                         [CHIP_LAUNCHES_GRAPH] = "graph",
                                         [CHIP_LAUNCHES_EAGER] = "eager",
                                         NULL};

static const char chip_maker[] = "tpu-";

const char *chip_name_at(uint32_t index)
{
    return index < chip_files_count ? chip_files[index].name : NULL;
}

static enum status file_read(struct arena *arena, const struct embed_file *file,
                             struct json **ret_document, struct error *reterr)
{
    return json_read_text(arena, file->name, file->bytes, file->size_bytes, ret_document, reterr);
}

/* The chip that a text names: its full name, or one of its short names with or without "tpu-".
 * `names` collects every name that was compared, for the refusal. */
static enum status find_document(struct arena *arena, const char *name, const char **names,
                                 struct json **ret_document, struct error *reterr)
{
    const char *const rest = name_after(name, chip_maker);
    uint32_t name_count = 0;
    const struct embed_file *named = embed_find(chip_files, chip_files_count, name);
    *ret_document = NULL;
    if (named != NULL) return file_read(arena, named, ret_document, reterr);
    for (unsigned i = 0; i < chip_files_count; i++) {
        struct json *document = NULL;
        struct json *aliases = NULL;
        names[name_count++] = chip_files[i].name;
        const char **const own = &names[name_count];
        STATUS_TRY(file_read(arena, &chip_files[i], &document, reterr));
        STATUS_TRY(json_need(document, "aliases", &aliases, reterr));
        for (uint32_t k = 0; k < json_count(aliases); k++) {
            const char *alias = NULL;
            STATUS_TRY(json_as_string(json_at(aliases, k), &alias, reterr));
            SIM_ASSERT(name_count + 1 < CHIP_NAMES_MAX);
            names[name_count++] = alias;
        }
        if (own[name_find(rest == NULL ? name : rest, own)] == NULL) {
            json_free(document);
            continue;
        }
        *ret_document = document;
        return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status need_document(struct arena *arena, const char *name, const char *where,
                                 struct json **ret_document, struct error *reterr)
{
    const char *names[CHIP_NAMES_MAX] = {NULL};
    STATUS_TRY(find_document(arena, name, names, ret_document, reterr));
    if (*ret_document != NULL) return STATUS_OK;
    return error_set(
        reterr, STATUS_NOT_FOUND, where, "no chip is called \"%.40s\"%s", name,
        name_offer(name, names, "; the nearest is \"", "\"", "; `podsim list chips` has the names")
            .text);
}

enum status chip_find(struct arena *arena, const char *name, const char *profile, const char *where,
                      const char *where_profile, struct chip *ret_chip, struct error *reterr)
{
    struct json *document = NULL;
    STATUS_TRY(need_document(arena, name, where, &document, reterr));
    enum status const status =
        chip_read(arena, document, NULL, profile, where_profile, ret_chip, reterr);
    json_free(document);
    return status;
}

uint64_t chip_gib_bytes(uint64_t hbm_bytes)
{
    static const uint64_t gb_bytes = 1000000000;
    return hbm_bytes % gb_bytes == 0 ? hbm_bytes / gb_bytes << 30 : hbm_bytes;
}

enum status chip_facts(struct arena *arena, const char *name, const char *where,
                       const struct chip_fact **ret_facts, uint32_t *ret_count,
                       struct error *reterr)
{
    struct json *document = NULL;
    STATUS_TRY(need_document(arena, name, where, &document, reterr));
    enum status const status = chip_read_facts(arena, document, ret_facts, ret_count, reterr);
    json_free(document);
    return status;
}
