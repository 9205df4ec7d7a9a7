/*
 * machine_keys.c: the rows of `machine`.
 */
#include <stddef.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario_parts.h"

/* Slower by a million, or faster by a hundred for what-ifs. */
enum { FACTOR_LEAST_PPM = 1, FACTOR_MOST = 100, CLOCK_LEAST_PPM = 10000 };
enum { SWITCH_PORTS_MAX = 65536, NODE_NICS_MAX = 4096, OVERSUBSCRIPTION_MAX = 1000 };
/* The rate of a NIC is bounded as those of a chip's file are. */
enum { NIC_RATE_LEAST = 1000000 };
#define RATE_MOST INT64_C(1000000000000000)

static const char *const sharp_names[] = {"auto", "on", "off", NULL};
static const char *const policy_names[] = {
#define X(name, text, help) text,
    LEVEL_POLICY_TABLE(X)
#undef X
        NULL};

uint32_t scenario_axis_count(struct arena *arena, const struct machine_plan *plan)
{
    struct error unknown = {0};
    struct chip chip;
    const char *units = NULL;
    uint32_t axes = 1;
    bool const known = machine_chip(arena, plan, &chip, &units, &unknown) == STATUS_OK;
    if (known && chip.kind == CHIP_GPU) return plan->nodes == 0 ? 1 : 2;
    if (plan->shape != NULL) {
        for (const char *c = plan->shape; *c != '\0'; c++) axes += *c == 'x';
    } else {
        if (!known || units == NULL) return 0;
        axes = chip.pod.axis_count;
    }
    axes += plan->slices > 1;
    return axes <= MACHINE_AXES_MAX ? axes : 0;
}

/* Of the lists in machine_keys, whose base is the machine's plan. */
static uint32_t list_axis_count(const struct key_reader *reader)
{
    return scenario_axis_count(reader->arena, reader->base);
}

/* A chip is looked for beside the scenario first, as a model is. */
static enum status chip_file_read(const struct key_reader *reader, const char *where,
                                  struct machine_plan *plan, struct error *reterr)
{
    struct stat found;
    const char *path = NULL;
    STATUS_TRY(path_beside(reader->arena, reader->base_folder, plan->chip, &path, reterr));
    if (stat(path, &found) != 0)
        return error_set(reterr, STATUS_NOT_FOUND, where,
                         "there is no file \"%.80s\" that could describe a chip; `podsim list "
                         "chips` prints the names of the catalogue",
                         plan->chip);
    if (!S_ISREG(found.st_mode))
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.80s\" is a folder, not the file of a chip", plan->chip);
    plan->chip = plan->chip_path = path;
    return json_read_file(reader->arena, path, &plan->chip_document, reterr);
}

/* A name of the catalogue, the path of a file, or the chip itself. */
static enum status chip_settle(const struct key_reader *reader, struct json *chip,
                               struct error *reterr)
{
    struct machine_plan *plan = reader->base;
    plan->chip_document = NULL;
    plan->chip_path = NULL;
    if (json_kind(chip) == JSON_OBJECT) {
        struct json *name = NULL;
        STATUS_TRY(json_need(chip, "name", &name, reterr));
        plan->chip_document = chip;
        return json_as_string(name, &plan->chip, reterr);
    }
    if (json_kind(chip) != JSON_STRING)
        return error_set(reterr, STATUS_INVALID, json_where(chip),
                         "must be a chip's name such as \"h100-sxm\", the path of a chip's file "
                         "such as \"./my-chip.json\", or an object with what such a file holds");
    STATUS_TRY(json_as_string(chip, &plan->chip, reterr));
    return path_is(plan->chip) ? chip_file_read(reader, json_where(chip), plan, reterr) : STATUS_OK;
}

static void chip_write(struct json_writer *writer, const char *name,
                       const struct key_source *source)
{
    const struct machine_plan *plan = source->base;
    if (plan->chip_document != NULL && plan->chip_path == NULL)
        json_put_value(writer, name, plan->chip_document);
    else
        json_put_string(writer, name, plan->chip);
}

/* An override that changes nothing is a slip. */
static enum status link_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    if (member != NULL || json_take(reader->object, "rate") != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(reader->object),
                     "says neither \"rate\" nor \"latency\", so it changes nothing");
}

static enum status chip_override_settle(const struct key_reader *reader, struct json *member,
                                        struct error *reterr)
{
    if (member != NULL || json_take(reader->object, "math") != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(reader->object),
                     "says neither \"math\" nor \"hbm\", so it changes nothing");
}

/* Slices are joined by one switch until a tier of switches is named. */
static bool has_oversubscription(const struct key_source *source)
{
    const struct machine_tier_plan *tier = source->base;
    return source->scenario->machine.slices <= 1 || tier->oversubscription_ppm != 0;
}

static void oversubscription_write(struct json_writer *writer, const char *name,
                                   const struct key_source *source)
{
    const struct machine_tier_plan *tier = source->base;
    uint32_t const ppm = tier->oversubscription_ppm;
    json_put_real(writer, name, ppm == 0 ? 1 : (double)ppm / PPM_ONE);
}

#define AT(member) offsetof(struct machine_tier_plan, member)
static const struct key tier_keys[] = {
    {.name = "policy",
     .kind = KEY_CHOICE,
     .quiet = true,
     .at = AT(policy),
     .least = 1,
     .choices = policy_names,
     .preset_text = "as `policy`",
     .help = "which cable a flow takes in this tier"},
    {.name = "oversubscription",
     .kind = KEY_SHARE,
     .at = AT(oversubscription_ppm),
     .least = PPM_ONE,
     .most = INT64_C(1) * OVERSUBSCRIPTION_MAX * PPM_ONE,
     .shown = has_oversubscription,
     .write = oversubscription_write,
     .preset_text = "1",
     .help = "cables down for each cable up; the cables must be whole. Not of `core`"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct machine_network_plan, member)
static const struct key nvlink_keys[] = {
    {.name = "policy",
     .kind = KEY_CHOICE,
     .at = AT(nvlink_policy),
     .least = 1,
     .preset = 1,
     .choices = policy_names,
     .help = "which cable a flow takes within a node"},
    {.name = "sharp",
     .kind = KEY_CHOICE,
     .at = AT(nvlink_sharp),
     .choices = sharp_names,
     .help = "`sharp` of NVSwitches alone; `auto`: as `sharp`"},
    {.name = "latency",
     .kind = KEY_DURATION,
     .quiet = true,
     .at = AT(nvlink_latency_ps),
     .least = 1,
     .most = TIME_PS_PER_S,
     .preset_text = "the chip's",
     .help = "latency of NVLink"},
    {0},
};

const struct key network_keys[] = {
    {.name = "policy",
     .kind = KEY_CHOICE,
     .at = AT(policy),
     .least = 1,
     .preset = 1,
     .choices = policy_names,
     .help = "[which cable a flow takes](machine.md#nodes-slices-and-the-switches-between-them) in "
             "all levels beyond a node or slice"},
    {.name = "sharp",
     .kind = KEY_CHOICE,
     .at = AT(sharp),
     .choices = sharp_names,
     .help = "switches that reduce and multicast. `auto`: NVSwitches that can do so, InfiniBand "
             "does not; `on`: all that can"},
    {.name = "cable_latency",
     .kind = KEY_DURATION,
     .quiet = true,
     .at = AT(cable_latency_ps),
     .least = 1,
     .most = TIME_PS_PER_S,
     .preset_text = "the chip's",
     .help = "latency of a cable beyond a node or slice"},
    {.name = "switch_latency",
     .kind = KEY_DURATION,
     .quiet = true,
     .at = AT(switch_latency_ps),
     .least = 1,
     .most = TIME_PS_PER_S,
     .preset_text = "the chip's",
     .help = "latency of a switch beyond a node or slice"},
    {.name = "switch_ports",
     .kind = KEY_COUNT,
     .quiet = true,
     .at = AT(switch_ports),
     .least = 1,
     .most = SWITCH_PORTS_MAX,
     .preset_text = "the chip's",
     .help = "ports of a switch beyond a node or slice; a tree needs 4"},
    {.name = "nic_rate",
     .kind = KEY_RATE,
     .quiet = true,
     .at = AT(nic_bytes_per_s),
     .least = NIC_RATE_LEAST,
     .most = RATE_MOST,
     .preset_text = "the chip's",
     .help = "rate of a NIC and the cables behind it, one way, such as `25GB/s` or `200Gbit/s`; on "
             "a TPU of a host's NIC"},
    {.name = "node_nics",
     .kind = KEY_COUNT,
     .quiet = true,
     .at = AT(node_nics),
     .least = 1,
     .most = NODE_NICS_MAX,
     .when = "GPUs",
     .preset_text = "the chip's",
     .help = "NICs of a node: a multiple of its GPUs, or a part of them. GPUs that share a NIC "
             "reach it over PCIe, a separate tier `host`"},
    {.name = "nvlink",
     .kind = KEY_OBJECT,
     .members = nvlink_keys,
     .when = "GPUs",
     .help = "switches within a node"},
#define X(which, text)                                                                             \
    {.name = text,                                                                                 \
     .kind = KEY_OBJECT,                                                                           \
     .quiet = true,                                                                                \
     .at = AT(tier[MACHINE_##which]),                                                              \
     .members = tier_keys,                                                                         \
     .help = "a tier of switches beyond a node or slice"},
    MACHINE_TIER_TABLE(X)
#undef X
        {0},
};
#undef AT

#define AT(member) offsetof(struct machine_link_override, member)
static const struct key link_keys[] = {
    {.name = "from",
     .kind = KEY_CHIP,
     .needed = true,
     .at = AT(from),
     .help = "the chip it leaves"},
    {.name = "to", .kind = KEY_CHIP, .needed = true, .at = AT(to), .help = "its neighbour"},
    {.name = "rate",
     .kind = KEY_RATE,
     .quiet = true,
     .at = AT(bytes_per_s),
     .least = 1,
     .most = RATE_MOST,
     .preset_text = "unchanged",
     .help = "bytes a second"},
    {.name = "latency",
     .kind = KEY_DURATION,
     .quiet = true,
     .at = AT(latency_ps),
     .least = 1,
     .most = TIME_PS_PER_S,
     .settle = link_settle,
     .preset_text = "unchanged",
     .help = "latency of a hop"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct machine_chip_override, member)
static const struct key chip_override_keys[] = {
    {.name = "at",
     .kind = KEY_CHIPS,
     .needed = true,
     .at = AT(at),
     .help = "the chip; `\"*\"` is every coordinate"},
    {.name = "math",
     .kind = KEY_SHARE,
     .at = AT(math_ppm),
     .least = FACTOR_LEAST_PPM,
     .most = INT64_C(1) * FACTOR_MOST * PPM_ONE,
     .preset = PPM_ONE,
     .help = "factor of the rates of math"},
    {.name = "hbm",
     .kind = KEY_SHARE,
     .at = AT(hbm_ppm),
     .least = FACTOR_LEAST_PPM,
     .most = INT64_C(1) * FACTOR_MOST * PPM_ONE,
     .preset = PPM_ONE,
     .settle = chip_override_settle,
     .help = "factor of the rate of HBM"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct machine_plan, member)
static const struct key wrap_keys[] = {
#define X(axis, text)                                                                              \
    {.name = text,                                                                                 \
     .kind = KEY_MAYBE,                                                                            \
     .quiet = true,                                                                                \
     .at = AT(wrap[axis]),                                                                         \
     .preset = -1,                                                                                 \
     .preset_text = "by the product's rule",                                                       \
     .help = "wraparound of the axis"},
    X(0, "x") X(1, "y") X(2, "z")
#undef X
        {0},
};
_Static_assert(CHIP_AXES_MAX == 3, "each axis of a grid has a row");

const struct key machine_keys[] = {
    {.name = "chip",
     .kind = KEY_OWN,
     .needed = true,
     .settle = chip_settle,
     .write = chip_write,
     .values = "a name of `podsim list chips`, a product name such as `v5p-8192`, `v5e-256`, the "
               "path of a file, or an object",
     .help = "the chip. A product name gives the shape too. A path is relative to the scenario and "
             "names [your own chip](machine.md#your-own-chip); an object is the chip itself"},
    {.name = "shape",
     .kind = KEY_TEXT,
     .quiet = true,
     .at = AT(shape),
     .when = "TPUs",
     .values = "`\"16x16x16\"`, `\"4x4x8_twisted\"`",
     .preset_text = "needed for a TPU without a product name",
     .help = "lengths of the axes x, y, z"},
    {.name = "profile",
     .kind = KEY_TEXT,
     .at = AT(profile),
     .word = "ideal",
     .values = "`ideal`, `measured`",
     .help = "data-sheet rates, or scaled by measured efficiencies and with overheads"},
    {.name = "clock",
     .kind = KEY_SHARE,
     .at = AT(clock_ppm),
     .least = CLOCK_LEAST_PPM,
     .most = PPM_ONE,
     .preset = PPM_ONE,
     .help = "share of its clock that a power limit leaves to the chip: lowers rates of math"},
    {.name = "nodes",
     .kind = KEY_COUNT,
     .quiet = true,
     .at = AT(nodes),
     .least = 1,
     .most = MACHINE_CHIPS_MAX,
     .when = "GPUs",
     .preset_text = "one, without an axis `node`",
     .help = "nodes joined by InfiniBand"},
    {.name = "gpus",
     .kind = KEY_COUNT,
     .quiet = true,
     .at = AT(gpus),
     .least = 1,
     .most = MACHINE_CHIPS_MAX,
     .when = "GPUs",
     .values = "1 to 576",
     .preset_text = "the chip's node",
     .help = "chips of a node, the axis `gpu`"},
    {.name = "slices",
     .kind = KEY_COUNT,
     .quiet = true,
     .at = AT(slices),
     .least = 1,
     .most = MACHINE_CHIPS_MAX,
     .when = "TPUs",
     .preset_text = "1",
     .help = "the number of grids of that shape, joined by DCN; several grids make the axis "
             "`slice`"},
    {.name = "network",
     .kind = KEY_OBJECT,
     .at = AT(network),
     .members = network_keys,
     .has_table = true,
     .values = "`{\"policy\": \"hash\", \"leaf\": {\"oversubscription\": 2}}`",
     .preset_text = "the hardware's",
     .help = "switches: [below](#network)"},
    {.name = "unrealisable",
     .kind = KEY_FLAG,
     .at = AT(unrealisable),
     .help = "permits shapes that the product cannot be sliced into"},
    {.name = "wrap",
     .kind = KEY_OBJECT,
     .members = wrap_keys,
     .values = "`{\"x\": true}`",
     .preset_text = "by the product's rule",
     .when = "TPUs",
     .help = "wraparound of an axis; needs `unrealisable`"},
    {.name = "links",
     .kind = KEY_LIST,
     .at = AT(links),
     .count_at = AT(link_count),
     .size_bytes = sizeof(struct machine_link_override),
     .axis_count = list_axis_count,
     .most = MACHINE_OVERRIDES_MAX,
     .members = link_keys,
     .values =
         "`[{\"from\": [0,0,0], \"to\": [1,0,0], \"rate\": \"45GB/s\", \"latency\": \"2us\"}]`",
     .preset_text = "none",
     .when = "TPUs",
     .help = "overrides of single directed links"},
    {.name = "chips",
     .kind = KEY_LIST,
     .at = AT(chips),
     .count_at = AT(chip_count),
     .size_bytes = sizeof(struct machine_chip_override),
     .axis_count = list_axis_count,
     .most = MACHINE_OVERRIDES_MAX,
     .members = chip_override_keys,
     .values = "`[{\"at\": [3,\"*\",\"*\"], \"math\": 0.5, \"hbm\": 0.8}]`",
     .preset_text = "none",
     .help =
         "overrides of chips: factors of the rates of their math and HBM; above 1 is faster, up "
         "to 100"},
    {0},
};

enum status scenario_machine_read(struct arena *arena, struct json *object, const char *base_folder,
                                  struct machine_plan *ret_plan, struct error *reterr)
{
    struct key_reader const reader = {
        .arena = arena, .base_folder = base_folder, .object = object, .base = ret_plan};
    *ret_plan = (struct machine_plan){0};
    return keys_read(machine_keys, &reader, reterr);
}
