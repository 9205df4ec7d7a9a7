#include "sim/machine/chip_read.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/machine/chip_number.h"
#include "sim/machine/shape.h"

enum { CHIP_FACTS_MAX = 128, HOST_CHIPS_MAX = 64, CHIP_NODE_MAX = 576 };
enum { CHIP_PROFILES_MAX = 8 }; /* That are offered where none has the name. */

static enum status read_math(struct json *document, struct chip *chip, struct error *reterr)
{
    static const char *const formats[] = {
#define X(name, text, nccl, bits) text,
        FORMAT_TABLE(X)
#undef X
            NULL};
    struct json *math = NULL;
    STATUS_TRY(json_need(document, "math", &math, reterr));
    STATUS_TRY(json_as_object(math, reterr));
    const char *key = NULL;
    for (uint32_t i = 0; (key = json_key_at(math, i)) != NULL; i++) {
        enum format const format = format_find(key);
        if (format == FORMAT_COUNT) {
            return error_set(reterr, STATUS_INVALID, json_where(json_take(math, key)),
                             "\"%.40s\" is not a number format%s", key,
                             name_offer(key, formats, "; the nearest is \"", "\"", NULL).text);
        }
        STATUS_TRY(chip_flop_rate(math, key, &chip->math_peak_flop_per_s[format], reterr));
    }
    if (json_count(math) == 0)
        return error_set(reterr, STATUS_INVALID, json_where(math),
                         "a chip needs the rate of a number format, such as \"bf16\"");
    return STATUS_OK;
}

/* What a network of switches behind the NICs is made of. */
static enum status read_network(struct json *document, struct chip_network *network,
                                struct error *reterr)
{
    STATUS_TRY(chip_duration(document, "nic_latency", &network->nic_latency_ps, reterr));
    STATUS_TRY(chip_duration(document, "cable_latency", &network->cable_latency_ps, reterr));
    STATUS_TRY(chip_duration(document, "switch_latency", &network->switch_latency_ps, reterr));
    return chip_count_from(document, "switch_ports", 4, 65536, &network->switch_ports, reterr);
}

static enum status read_units(struct json *document, struct chip *chip, struct error *reterr)
{
    STATUS_TRY(chip_bytes(document, "hbm_capacity", &chip->hbm_capacity_bytes, reterr));
    STATUS_TRY(chip_rate(document, "hbm_rate", &chip->hbm_bytes_per_s, reterr));
    STATUS_TRY(read_math(document, chip, reterr));
    STATUS_TRY(chip_flop_rate(document, "vector_rate", &chip->vector_flop_per_s, reterr));
    return chip_rate(document, "pcie_rate", &chip->pcie_bytes_per_s, reterr);
}

static enum status read_tpu(struct json *document, struct chip *chip, struct error *reterr)
{
    struct chip_network *network = &chip->network;
    STATUS_TRY(chip_bytes(document, "vmem_capacity", &chip->vmem_capacity_bytes, reterr));
    STATUS_TRY(chip_rate(document, "vmem_rate", &chip->vmem_bytes_per_s, reterr));
    STATUS_TRY(chip_count(document, "mxu_rows", 4096, &chip->mxu.rows, reterr));
    STATUS_TRY(chip_count(document, "mxu_columns", 4096, &chip->mxu.columns, reterr));
    STATUS_TRY(chip_count(document, "mxu_count", 4096, &chip->mxu.count, reterr));
    STATUS_TRY(chip_count(document, "core_count", 4096, &chip->core.count, reterr));
    STATUS_TRY(chip_rate(document, "ici_rate", &chip->ici_peak_bytes_per_s, reterr));
    STATUS_TRY(chip_duration(document, "hop_latency", &chip->hop_latency_ps, reterr));
    STATUS_TRY(chip_rate(document, "dcn_rate", &chip->dcn_bytes_per_s, reterr));
    STATUS_TRY(chip_duration(document, "pcie_latency", &network->host_latency_ps, reterr));
    return read_network(document, network, reterr);
}

static enum status read_slices(struct json *document, struct chip *chip, struct error *reterr)
{
    struct json *value = NULL;
    const char *source = NULL;
    STATUS_TRY(chip_number(document, "slices", &value, &source, reterr));
    chip->pod.slice_count = json_count(value);
    if (json_kind(value) != JSON_ARRAY || chip->pod.slice_count > CHIP_SLICES_MAX) {
        return error_set(reterr, STATUS_INVALID, json_where(value),
                         "slices are not a list of at most %d shapes", CHIP_SLICES_MAX);
    }
    for (uint32_t i = 0; i < chip->pod.slice_count; i++) {
        const char *text = NULL;
        struct shape shape;
        STATUS_TRY(json_as_string(json_at(value, i), &text, reterr));
        STATUS_TRY(shape_parse(text, json_where(value), &shape, reterr));
        if (shape.axis_count != chip->pod.axis_count) {
            return error_set(reterr, STATUS_INVALID, json_where(value),
                             "%s does not have the pod's %u axes", text, chip->pod.axis_count);
        }
        memcpy(chip->pod.slice[i], shape.length, sizeof chip->pod.slice[i]);
    }
    return STATUS_OK;
}

/* A host holds a box of the pod's chips. */
static enum status check_host(struct json *document, const struct shape *pod,
                              const struct shape *host, struct error *reterr)
{
    const char *where = json_where(json_take(json_take(document, "host_shape"), "value"));
    char text[SHAPE_TEXT_BYTES];
    if (host->axis_count > pod->axis_count || host->twisted || pod->twisted)
        return error_set(reterr, STATUS_INVALID, where, "is no box of chips of a pod of %s",
                         shape_text(text, pod));
    if (shape_chip_count(host) > HOST_CHIPS_MAX)
        return error_set(reterr, STATUS_INVALID, where, "%llu chips are above the maximum of %d",
                         (unsigned long long)shape_chip_count(host), HOST_CHIPS_MAX);
    return STATUS_OK;
}

static enum status read_grid(struct json *document, struct chip *chip, struct error *reterr)
{
    static const char *const rules[] = {"full-axis", "cubes", NULL};
    struct shape pod;
    struct shape host;
    STATUS_TRY(chip_shape(document, "pod_shape", &pod, reterr));
    STATUS_TRY(chip_shape(document, "host_shape", &host, reterr));
    chip->pod.axis_count = pod.axis_count;
    STATUS_TRY(check_host(document, &pod, &host, reterr));
    chip->network.host_chips = (uint32_t)shape_chip_count(&host);
    chip->network.nic_count = 1;
    chip->network.nic_peak_bytes_per_s = chip->network.host_chips * chip->dcn_bytes_per_s;
    memcpy(chip->pod.shape, pod.length, sizeof chip->pod.shape);
    memcpy(chip->pod.host_shape, host.length, sizeof chip->pod.host_shape);
    struct json *value = NULL;
    const char *source = NULL;
    uint32_t rule = 0;
    STATUS_TRY(chip_number(document, "wrap_rule", &value, &source, reterr));
    STATUS_TRY(json_choice(value, rules, &rule, reterr));
    chip->pod.wrap_rule = rule == 0 ? CHIP_WRAP_FULL_AXIS : CHIP_WRAP_CUBES;
    STATUS_TRY(chip_count(document, "wrap_length", 4096, &chip->pod.wrap_length, reterr));
    STATUS_TRY(chip_count(document, "name_units", 16, &chip->pod.name_units, reterr));
    return read_slices(document, chip, reterr);
}

/* Without a switch each GPU has as many links to each other one of its node. */
static enum status check_mesh(struct json *document, const struct chip_network *network,
                              struct error *reterr)
{
    uint32_t const others = network->node_chips - 1;
    if (others > 0 && network->nvlink_count % others == 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID,
                     json_where(json_take(json_take(document, "nvlink_links"), "value")),
                     "%u links cannot be dealt evenly to the %u other GPUs of a node; with "
                     "switches \"nvswitch_count\" and \"nvswitch_ports\" are needed",
                     network->nvlink_count, others);
}

/* NVLink: a node of GPUs around its NVSwitches, or joined each to each. */
static enum status read_nvlink(struct json *document, struct chip *chip, struct error *reterr)
{
    static const char *const links[] = {"NVLink", NULL};
    struct json *name = json_take(document, "link_name");
    struct chip_network *network = &chip->network;
    network->link_name = links[0];
    if (name != NULL) STATUS_TRY(json_as_string(name, &network->link_name, reterr));
    chip->maker = name_find(network->link_name, links) == 0 ? CHIP_NVIDIA : CHIP_AMD;
    STATUS_TRY(chip_count(document, "nvlink_generation", 16, &network->nvlink_generation, reterr));
    STATUS_TRY(chip_count(document, "nvlink_links", 256, &network->nvlink_count, reterr));
    STATUS_TRY(chip_rate(document, "nvlink_rate", &network->nvlink_peak_bytes_per_s, reterr));
    STATUS_TRY(chip_duration(document, "nvlink_latency", &network->nvlink_latency_ps, reterr));
    STATUS_TRY(chip_count(document, "node_gpus", CHIP_NODE_MAX, &network->node_chips, reterr));
    bool const switched = json_take(document, "nvswitch_count") != NULL ||
                          json_take(document, "nvswitch_ports") != NULL;
    if (!switched) return check_mesh(document, network, reterr);
    STATUS_TRY(chip_count(document, "nvswitch_count", 1024, &network->nvswitch_count, reterr));
    STATUS_TRY(
        chip_count_from(document, "nvswitch_ports", 2, 4096, &network->nvswitch_ports, reterr));
    if (json_take(document, "nvswitch_reduce_rate") == NULL) return STATUS_OK;
    return chip_flop_rate(document, "nvswitch_reduce_rate", &network->nvswitch_flop_per_s, reterr);
}

/* What only a GPU has. Keys of hardware that some lack are left out there: SHARP, C2C, TMEM, and
 * the NIC of a node that is sold without a network. */
static enum status read_gpu(struct json *document, struct chip *chip, struct error *reterr)
{
    struct chip_network *network = &chip->network;
    STATUS_TRY(chip_bytes(document, "l2_capacity", &chip->vmem_capacity_bytes, reterr));
    STATUS_TRY(chip_rate(document, "l2_rate", &chip->vmem_bytes_per_s, reterr));
    STATUS_TRY(chip_count(document, "sm_count", 4096, &chip->core.count, reterr));
    STATUS_TRY(chip_count(document, "tensor_core_count", 65536, &chip->mxu.count, reterr));
    STATUS_TRY(chip_count(document, "tile_inner", 4096, &chip->mxu.rows, reterr));
    STATUS_TRY(chip_count(document, "tile_columns", 4096, &chip->mxu.columns, reterr));
    STATUS_TRY(chip_bytes(document, "sm_smem", &chip->core.smem_bytes, reterr));
    STATUS_TRY(chip_bytes(document, "sm_registers", &chip->core.register_bytes, reterr));
    if (json_take(document, "sm_tmem") != NULL)
        STATUS_TRY(chip_bytes(document, "sm_tmem", &chip->core.tmem_bytes, reterr));
    STATUS_TRY(chip_count(document, "host_gpus", 64, &network->host_chips, reterr));
    STATUS_TRY(chip_duration(document, "host_latency", &network->host_latency_ps, reterr));
    if (json_take(document, "c2c_rate") != NULL)
        STATUS_TRY(chip_rate(document, "c2c_rate", &network->c2c_bytes_per_s, reterr));
    STATUS_TRY(read_nvlink(document, chip, reterr));
    network->nic_chips = 1;
    if (json_take(document, "nic_rate") == NULL) return STATUS_OK;
    STATUS_TRY(chip_count(document, "gpu_nics", 64, &network->nic_count, reterr));
    STATUS_TRY(chip_rate(document, "nic_rate", &network->nic_peak_bytes_per_s, reterr));
    STATUS_TRY(chip_count(document, "leaf_rails", 64, &network->leaf_rails, reterr));
    STATUS_TRY(read_network(document, network, reterr));
    chip->dcn_bytes_per_s = network->nic_count * network->nic_peak_bytes_per_s;
    if (json_take(document, "switch_reduce_rate") == NULL) return STATUS_OK;
    return chip_flop_rate(document, "switch_reduce_rate", &network->switch_flop_per_s, reterr);
}

/* How much of each peak a profile leaves, and what it adds. */
struct profile {
    uint32_t math_ppm, vector_ppm, hbm_ppm;
    uint32_t ici_ppm;    /* TPU */
    uint32_t nvlink_ppm; /* GPU */
    uint32_t nic_ppm;
};

static void scale_rates(const struct profile *profile, struct chip *chip)
{
    struct chip_network *network = &chip->network;
    for (uint32_t i = 0; i < FORMAT_COUNT; i++)
        chip->math_flop_per_s[i] =
            units_scale_ppm(chip->math_peak_flop_per_s[i], profile->math_ppm);
    chip->vector_flop_per_s = units_scale_ppm(chip->vector_flop_per_s, profile->vector_ppm);
    chip->hbm_bytes_per_s = units_scale_ppm(chip->hbm_bytes_per_s, profile->hbm_ppm);
    chip->ici_bytes_per_s = units_scale_ppm(chip->ici_peak_bytes_per_s, profile->ici_ppm);
    network->nvlink_bytes_per_s =
        units_scale_ppm(network->nvlink_peak_bytes_per_s, profile->nvlink_ppm);
    network->nic_bytes_per_s = units_scale_ppm(network->nic_peak_bytes_per_s, profile->nic_ppm);
}

/* A misspelt key is said before the one that is missing for it. */
static enum status check_keys(struct json *object, const char *const *known, struct error *reterr)
{
    STATUS_TRY(json_as_object(object, reterr));
    for (uint32_t i = 0; known[i] != NULL; i++) (void)json_take(object, known[i]);
    return json_end(object, known, reterr);
}

/* Scales the peaks that were read and adds the overheads. A GPU's capacity is that of its data
 * sheet unless the profile has what the driver leaves of the real one. */
static enum status apply_profile(struct json *object, struct chip *chip, struct error *reterr)
{
    static const char *const known_tpu[] = {"math_ppm",         "vector_ppm",  "hbm_ppm",
                                            "ici_ppm",          "op_overhead", "nic_ppm",
                                            "message_overhead", NULL};
    static const char *const known_gpu[] = {"math_ppm",         "vector_ppm",   "hbm_ppm",
                                            "nvlink_ppm",       "op_overhead",  "nic_ppm",
                                            "message_overhead", "hbm_capacity", NULL};
    bool const gpu = chip->kind == CHIP_GPU;
    struct profile profile = {0};
    STATUS_TRY(check_keys(object, gpu ? known_gpu : known_tpu, reterr));
    STATUS_TRY(chip_count(object, "math_ppm", PPM_ONE, &profile.math_ppm, reterr));
    STATUS_TRY(chip_count(object, "vector_ppm", PPM_ONE, &profile.vector_ppm, reterr));
    STATUS_TRY(chip_count(object, "hbm_ppm", PPM_ONE, &profile.hbm_ppm, reterr));
    if (gpu && json_take(object, "hbm_capacity") != NULL)
        STATUS_TRY(chip_bytes(object, "hbm_capacity", &chip->hbm_capacity_bytes, reterr));
    if (gpu)
        STATUS_TRY(chip_count(object, "nvlink_ppm", PPM_ONE, &profile.nvlink_ppm, reterr));
    else
        STATUS_TRY(chip_count(object, "ici_ppm", PPM_ONE, &profile.ici_ppm, reterr));
    STATUS_TRY(chip_count(object, "nic_ppm", PPM_ONE, &profile.nic_ppm, reterr));
    STATUS_TRY(chip_overhead(object, "op_overhead", &chip->op_overhead_ps, reterr));
    STATUS_TRY(chip_overhead(object, "message_overhead", &chip->message_overhead_ps, reterr));
    scale_rates(&profile, chip);
    return STATUS_OK;
}

/* A profile's capacity is of the same memory as the data sheet's, less what a driver keeps. Where
 * one of the two was changed in a copied file, the other was forgotten. */
static enum status check_capacity(struct json *document, struct json *profile,
                                  const struct chip *chip, struct error *reterr)
{
    enum { PERCENT_APART_MAX = 15 };
    static const char key[] = "hbm_capacity";
    uint64_t const sheet = chip->hbm_capacity_bytes;
    uint64_t bytes = 0;
    const char *own = NULL, *of_sheet = NULL;
    if (chip->kind != CHIP_GPU || json_kind(profile) != JSON_OBJECT) return STATUS_OK;
    if (json_take(profile, key) == NULL) return STATUS_OK;
    STATUS_TRY(chip_bytes(profile, key, &bytes, reterr));
    uint64_t const apart = bytes > sheet ? bytes - sheet : sheet - bytes;
    if (apart * 100 <= sheet * PERCENT_APART_MAX) return STATUS_OK;
    struct json *const value = json_take(json_take(profile, key), "value");
    STATUS_TRY(json_as_string(value, &own, reterr));
    STATUS_TRY(json_as_string(json_take(json_take(document, key), "value"), &of_sheet, reterr));
    return error_set(reterr, STATUS_INVALID, json_where(value),
                     "%.40s is more than %d %% apart from %.40s, the chip's own \"%s\", whose "
                     "memory it is; change both, or leave this one out",
                     own, PERCENT_APART_MAX, of_sheet, key);
}

static const char *const ideal[] = {"ideal", NULL};

static enum status read_profile(struct json *document, const char *name, const char *where,
                                struct chip *chip, struct error *reterr)
{
    struct json *profiles = NULL;
    STATUS_TRY(json_need(document, "profiles", &profiles, reterr));
    STATUS_TRY(json_as_object(profiles, reterr));
    const char *names[CHIP_PROFILES_MAX + 1] = {NULL};
    const char *key = NULL;
    for (uint32_t i = 0; (key = json_key_at(profiles, i)) != NULL; i++)
        STATUS_TRY(check_capacity(document, json_take(profiles, key), chip, reterr));
    for (uint32_t i = 0; (key = json_key_at(profiles, i)) != NULL; i++) {
        if (i < CHIP_PROFILES_MAX) names[i] = key;
        if (!name_same(key, name)) continue;
        chip->profile = key;
        chip->is_ideal = name_find(key, ideal) == 0;
        return apply_profile(json_take(profiles, name), chip, reterr);
    }
    if (names[0] == NULL)
        return error_set(reterr, STATUS_NOT_FOUND, json_where(profiles),
                         "%s has no profile at all; \"%.40s\" is needed", chip->title, name);
    return error_set(reterr, STATUS_NOT_FOUND, where, "%s has no profile \"%.40s\"%s", chip->title,
                     name, name_offer(name, names, "; the nearest is \"", "\"", NULL).text);
}

static const char *const known_tpu[] = {
    "kind",       "name",        "title",        "aliases",        "hbm_capacity",  "hbm_rate",
    "math",       "vector_rate", "pcie_rate",    "profiles",       "vmem_capacity", "vmem_rate",
    "mxu_rows",   "mxu_columns", "mxu_count",    "core_count",     "ici_rate",      "hop_latency",
    "dcn_rate",   "pod_shape",   "host_shape",   "wrap_rule",      "wrap_length",   "slices",
    "name_units", "nic_latency", "pcie_latency", "switch_latency", "switch_ports",  "cable_latency",
    NULL};

static const char *const known_gpu[] = {"kind",
                                        "name",
                                        "title",
                                        "aliases",
                                        "hbm_capacity",
                                        "hbm_rate",
                                        "math",
                                        "vector_rate",
                                        "pcie_rate",
                                        "profiles",
                                        "l2_capacity",
                                        "l2_rate",
                                        "sm_count",
                                        "tile_inner",
                                        "tile_columns",
                                        "tensor_core_count",
                                        "sm_smem",
                                        "sm_registers",
                                        "sm_tmem",
                                        "host_gpus",
                                        "c2c_rate",
                                        "host_latency",
                                        "link_name",
                                        "nvlink_links",
                                        "nvlink_rate",
                                        "nvlink_generation",
                                        "nvlink_latency",
                                        "node_gpus",
                                        "nvswitch_count",
                                        "nvswitch_ports",
                                        "gpu_nics",
                                        "nic_rate",
                                        "leaf_rails",
                                        "nvswitch_reduce_rate",
                                        "nic_latency",
                                        "switch_ports",
                                        "cable_latency",
                                        "switch_latency",
                                        "switch_reduce_rate",
                                        NULL};

static enum status read_kind(struct json *document, struct chip *chip, struct error *reterr)
{
    static const char *const kinds[] = {"tpu", "gpu", NULL};
    struct json *value = NULL;
    uint32_t kind = 0;
    STATUS_TRY(json_need(document, "kind", &value, reterr));
    STATUS_TRY(json_choice(value, kinds, &kind, reterr));
    chip->kind = kind == 0 ? CHIP_TPU : CHIP_GPU;
    return STATUS_OK;
}

static enum status read_parts(struct json *document, struct chip *chip, struct error *reterr)
{
    STATUS_TRY(read_units(document, chip, reterr));
    if (chip->kind == CHIP_GPU) return read_gpu(document, chip, reterr);
    STATUS_TRY(read_tpu(document, chip, reterr));
    return read_grid(document, chip, reterr);
}

enum status chip_read(struct arena *arena, struct json *document, const char *profile,
                      const char *where_profile, struct chip *ret_chip, struct error *reterr)
{
    struct chip chip = {0};
    struct json *value = NULL;
    STATUS_TRY(json_as_object(document, reterr));
    STATUS_TRY(read_kind(document, &chip, reterr));
    STATUS_TRY(check_keys(document, chip.kind == CHIP_GPU ? known_gpu : known_tpu, reterr));
    STATUS_TRY(json_need(document, "name", &value, reterr));
    STATUS_TRY(json_as_string(value, &chip.name, reterr));
    if (chip.name[0] == '\0')
        return error_set(reterr, STATUS_INVALID, json_where(value), "a chip needs a name");
    STATUS_TRY(json_need(document, "title", &value, reterr));
    STATUS_TRY(json_as_string(value, &chip.title, reterr));
    STATUS_TRY(json_need(document, "aliases", &value, reterr));
    if (json_kind(value) != JSON_ARRAY || json_count(value) == 0) {
        return error_set(reterr, STATUS_INVALID, json_where(value),
                         "a chip needs at least one short name");
    }
    STATUS_TRY(json_as_string(json_at(value, 0), &chip.short_name, reterr));
    STATUS_TRY(read_parts(document, &chip, reterr));
    STATUS_TRY(read_profile(document, profile, where_profile, &chip, reterr));
    chip.profile = arena_text(arena, profile);
    if (chip.profile == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the chip's name");
    *ret_chip = chip;
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

struct analysis {
    struct arena *arena;
    struct chip_fact *fact;
    uint32_t count;
};

/* The numbers of one object; `prefix` is the path to it, "math/". */
static enum status facts_add(struct analysis *facts, struct json *object, const char *prefix,
                             struct error *reterr)
{
    const char *key = NULL;
    for (uint32_t i = 0; (key = json_key_at(object, i)) != NULL; i++) {
        struct json *value = NULL;
        struct json *member = json_take(object, key);
        if (json_kind(member) != JSON_OBJECT || json_take(member, "value") == NULL) continue;
        if (facts->count == CHIP_FACTS_MAX)
            return error_set(reterr, STATUS_LIMIT, json_where(object), "more than %d numbers",
                             CHIP_FACTS_MAX);
        struct chip_fact *fact = &facts->fact[facts->count++];
        STATUS_TRY(chip_number(object, key, &value, &fact->source, reterr));
        STATUS_TRY(value_text(facts->arena, value, &fact->value, reterr));
        fact->key = arena_format(facts->arena, "%s%s", prefix, key);
        if (fact->key == NULL)
            return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a text");
    }
    return STATUS_OK;
}

enum status chip_read_facts(struct arena *arena, struct json *document,
                            const struct chip_fact **ret_analysis, uint32_t *ret_count,
                            struct error *reterr)
{
    struct analysis facts = {arena, NULL, 0};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, CHIP_FACTS_MAX, sizeof *facts.fact, &memory, reterr));
    facts.fact = memory;
    STATUS_TRY(facts_add(&facts, document, "", reterr));
    STATUS_TRY(facts_add(&facts, json_take(document, "math"), "math/", reterr));
    struct json *profiles = json_take(document, "profiles");
    const char *key = NULL;
    for (uint32_t i = 0; (key = json_key_at(profiles, i)) != NULL; i++) {
        const char *prefix = arena_format(arena, "profiles/%s/", key);
        if (prefix == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a text");
        STATUS_TRY(facts_add(&facts, json_take(profiles, key), prefix, reterr));
    }
    *ret_analysis = facts.fact;
    *ret_count = facts.count;
    return STATUS_OK;
}
