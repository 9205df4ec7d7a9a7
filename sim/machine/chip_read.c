#include "sim/machine/chip_read.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/machine/chip_keys.h"

enum { CHIP_FACTS_MAX = 128 };
enum { CHIP_PROFILES_MAX = 8 }; /* That are offered where none has the name. */

/* What follows from the grid that a TPU's slices are cut from. */
static void tpu_finish(struct chip_file *file)
{
    struct chip *chip = &file->chip;
    struct chip_network *network = &chip->network;
    chip->pod.axis_count = file->pod.axis_count;
    memcpy(chip->pod.shape, file->pod.length, sizeof chip->pod.shape);
    memcpy(chip->pod.host_shape, file->host.length, sizeof chip->pod.host_shape);
    network->host_chips = (uint32_t)shape_chip_count(&file->host);
    network->nic_count = 1;
    network->nic_peak_bytes_per_s = network->host_chips * chip->dcn_bytes_per_s;
}

static void gpu_finish(struct chip *chip)
{
    struct chip_network *network = &chip->network;
    network->nic_chips = 1;
    chip->dcn_bytes_per_s = network->nic_count * network->nic_peak_bytes_per_s;
}

/* Scales the peaks that were read and adds the overheads. A GPU's capacity is that of its data
 * sheet unless the profile has what the driver leaves of the real one. */
static void profile_apply(const struct chip_profile *profile, struct chip *chip)
{
    struct chip_network *network = &chip->network;
    for (uint32_t i = 0; i < FORMAT_COUNT; i++) {
        chip->math_peak_flop_per_s[i] = chip->math_peak_flop_per_s[format_math((enum format)i)];
        chip->math_flop_per_s[i] =
            units_scale_ppm(chip->math_peak_flop_per_s[i], profile->math_ppm);
    }
    chip->vector_flop_per_s = units_scale_ppm(chip->vector_flop_per_s, profile->vector_ppm);
    chip->kernels.rest_math_ppm = profile->math_ppm;
    chip->kernels.rest_hbm_ppm = profile->hbm_ppm;
    chip->hbm_bytes_per_s = units_scale_ppm(chip->kernels.sheet_hbm_bytes_per_s, profile->hbm_ppm);
    chip->ici_bytes_per_s = units_scale_ppm(chip->ici_peak_bytes_per_s, profile->link_ppm);
    network->nvlink_bytes_per_s =
        units_scale_ppm(network->nvlink_peak_bytes_per_s, profile->link_ppm);
    network->nic_bytes_per_s = units_scale_ppm(network->nic_peak_bytes_per_s, profile->nic_ppm);
    if (profile->hbm_capacity_bytes != 0) chip->hbm_capacity_bytes = profile->hbm_capacity_bytes;
    chip->launch.op_ps = profile->op_overhead_ps;
    chip->launch.message_ps = profile->message_overhead_ps;
    chip->launch.async_ps = profile->async_overhead_ps;
    chip->pod.dcn.begin_ps = profile->dcn_begin_ps;
    chip->pod.dcn.message_ps = profile->dcn_message_ps;
    chip->pod.dcn.spread_ps = profile->dcn_spread_ps;
}

static enum status profile_find(const struct chip_file *file, const char *name, const char *where,
                                const struct chip_profile **ret_profile, struct error *reterr)
{
    const char *names[CHIP_PROFILES_MAX + 1] = {NULL};
    for (uint32_t i = 0; i < file->profile_count; i++) {
        *ret_profile = &file->profiles[i];
        if (name_same((*ret_profile)->name, name)) return STATUS_OK;
        if (i < CHIP_PROFILES_MAX) names[i] = (*ret_profile)->name;
    }
    return error_set(reterr, STATUS_NOT_FOUND, where, "%s has no profile \"%.40s\"%s",
                     file->chip.title, name,
                     name_offer(name, names, "; the nearest is \"", "\"", NULL).text);
}

/* Whether a chip reaches the rates of its data sheet, and no op and no message takes more. */
static bool profile_is_ideal(const struct chip_profile *profile)
{
    return profile->math_ppm == PPM_ONE && profile->vector_ppm == PPM_ONE &&
           profile->hbm_ppm == PPM_ONE && profile->link_ppm == PPM_ONE &&
           profile->nic_ppm == PPM_ONE && profile->op_overhead_ps == 0 &&
           profile->message_overhead_ps == 0 && profile->async_overhead_ps == 0 &&
           profile->dcn_begin_ps == 0 && profile->dcn_message_ps == 0 &&
           profile->dcn_spread_ps == 0;
}

/* The document alone: what is wrong with it has its place there. */
static enum status file_read(struct arena *arena, const char *profile_name, struct chip_file *file,
                             struct error *reterr)
{
    static const char *const kinds[] = {[CHIP_TPU] = "tpu", [CHIP_GPU] = "gpu", NULL};
    struct key_reader const reader = {
        .arena = arena, .object = file->document, .whole = file, .base = file};
    struct json *value = NULL;
    uint32_t kind = 0;
    STATUS_TRY(json_need(file->document, "kind", &value, reterr));
    STATUS_TRY(json_choice(value, kinds, &kind, reterr));
    STATUS_TRY(keys_read(kind == CHIP_GPU ? chip_gpu_keys : chip_tpu_keys, &reader, reterr));
    file->chip.kind = (enum chip_kind)kind;
    if (file->profile_count > 0) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, json_where(json_take(file->document, "profiles")),
                     "%s has no profile at all; \"%.40s\" is needed", file->chip.title,
                     profile_name);
}

enum status chip_read(struct arena *arena, struct json *document, const char *path,
                      const char *profile_name, const char *where_profile, struct chip *ret_chip,
                      struct error *reterr)
{
    struct chip_file file = {.document = document};
    const struct chip_profile *profile = NULL;
    enum status const status = file_read(arena, profile_name, &file, reterr);
    if (status != STATUS_OK && path != NULL) error_in_file(reterr, path);
    STATUS_TRY(status);
    STATUS_TRY(profile_find(&file, profile_name, where_profile, &profile, reterr));
    if (file.chip.kind == CHIP_GPU)
        gpu_finish(&file.chip);
    else
        tpu_finish(&file);
    profile_apply(profile, &file.chip);
    file.chip.is_ideal = profile_is_ideal(profile);
    file.chip.profile = arena_text(arena, profile_name);
    if (file.chip.profile == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the chip's name");
    *ret_chip = file.chip;
    return STATUS_OK;
}

/* The value as the file has it; lists with spaces between. */
static enum status value_text(struct arena *arena, struct json *value, const char **ret_text,
                              struct error *reterr)
{
    char buffer[512] = "";
    size_t used = 0;
    int64_t integer = 0;
    if (json_kind(value) == JSON_STRING) return json_as_string(value, ret_text, reterr);
    if (json_kind(value) != JSON_ARRAY) {
        STATUS_TRY(json_as_integer(value, 0, INT64_MAX, &integer, reterr));
        (void)snprintf(buffer, sizeof buffer, "%lld", (long long)integer);
    }
    for (uint32_t i = 0; json_kind(value) == JSON_ARRAY && i < json_count(value); i++) {
        const char *item = NULL;
        STATUS_TRY(json_as_string(json_at(value, i), &item, reterr));
        if (used < sizeof buffer)
            used +=
                (size_t)snprintf(buffer + used, sizeof buffer - used, i == 0 ? "%s" : " %s", item);
    }
    *ret_text = arena_text(arena, buffer);
    if (*ret_text == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a text");
    return STATUS_OK;
}

struct facts {
    struct arena *arena;
    struct chip_fact *fact;
    uint32_t count;
};

static enum status fact_add(struct facts *facts, struct json *number, const char *key,
                            struct error *reterr)
{
    if (facts->count == CHIP_FACTS_MAX)
        return error_set(reterr, STATUS_LIMIT, json_where(number), "more than %d numbers",
                         CHIP_FACTS_MAX);
    struct chip_fact *fact = &facts->fact[facts->count++];
    fact->key = key;
    STATUS_TRY(json_as_string(json_take(number, "source"), &fact->source, reterr));
    return value_text(facts->arena, json_take(number, "value"), &fact->value, reterr);
}

/* The numbers of an object, then those of the objects in it; `before` is the path to it, "math/".
 */
static enum status facts_add(struct facts *facts, struct json *object, const char *before,
                             struct error *reterr)
{
    const char *key = NULL;
    for (uint32_t inner = 0; inner < 2; inner++) {
        for (uint32_t i = 0; (key = json_key_at(object, i)) != NULL; i++) {
            struct json *member = json_take(object, key);
            bool const is_number = json_take(member, "value") != NULL;
            if (json_kind(member) != JSON_OBJECT || is_number == (inner == 1)) continue;
            const char *path =
                arena_format(facts->arena, is_number ? "%s%s" : "%s%s/", before, key);
            if (path == NULL)
                return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a text");
            STATUS_TRY(is_number ? fact_add(facts, member, path, reterr)
                                 : facts_add(facts, member, path, reterr));
        }
    }
    return STATUS_OK;
}

enum status chip_read_facts(struct arena *arena, struct json *document,
                            const struct chip_fact **ret_facts, uint32_t *ret_count,
                            struct error *reterr)
{
    struct facts facts = {arena, NULL, 0};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, CHIP_FACTS_MAX, sizeof *facts.fact, &memory, reterr));
    facts.fact = memory;
    STATUS_TRY(facts_add(&facts, document, "", reterr));
    *ret_facts = facts.fact;
    *ret_count = facts.count;
    return STATUS_OK;
}
