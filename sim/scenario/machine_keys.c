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
enum { POWER_MOST_W = 1000000 };
enum { SWITCH_PORTS_MAX = 65536, NODE_NICS_MAX = 4096, OVERSUBSCRIPTION_MAX = 1000 };
/* The rate of a NIC is bounded as those of a chip's file are. */
enum { NIC_RATE_LEAST = 1000000 };
#define RATE_MOST INT64_C(1000000000000000)

static const char *const any_names[] = {"*", NULL};
static const char *const sharp_names[] = {"auto", "on", "off", NULL};

/* `chip` and `units` NULL: not known. */
static uint32_t axis_count_of(const struct machine_plan *plan, const struct chip *chip,
                              const char *units)
{
    uint32_t axes = 1;
    if (chip != NULL && chip->kind == CHIP_GPU) return plan->nodes == 0 ? 1 : 2;
    if (plan->shape != NULL) {
        for (const char *c = plan->shape; *c != '\0'; c++) axes += *c == 'x';
    } else {
        if (chip == NULL || units == NULL) return 0;
        axes = chip->pod.axis_count;
    }
    axes += plan->slices > 1;
    return axes <= MACHINE_AXES_MAX ? axes : 0;
}

enum status scenario_axis_count(struct arena *arena, const struct machine_plan *plan,
                                uint32_t *ret_count, struct error *reterr)
{
    struct error unknown = {0};
    struct chip chip;
    const char *units = NULL;
    enum status const status = machine_chip(arena, plan, &chip, &units, &unknown);
    if (status == STATUS_NO_MEMORY) *reterr = unknown;
    if (status == STATUS_NO_MEMORY) return status;
    *ret_count = axis_count_of(plan, status == STATUS_OK ? &chip : NULL, units);
    return STATUS_OK;
}

/* Of the lists in machine_keys, whose base is the machine's plan. */
static enum status list_axis_count(const struct key_reader *reader, uint32_t *ret_count,
                                   struct error *reterr)
{
    return scenario_axis_count(reader->arena, reader->base, ret_count, reterr);
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
                         S_ISDIR(found.st_mode)
                             ? "\"%.80s\" is a folder, not the file of a chip"
                             : "\"%.80s\" is not a regular file, as the file of a chip must be",
                         plan->chip);
    plan->chip = plan->chip_path = path;
    return json_read_file(reader->arena, path, &plan->chip_document, reterr);
}

/* A name of the catalogue, the path of a file, or the chip itself. */
static enum status chip_kind_read(const struct key *row, const struct key_reader *reader,
                                  struct json *chip, struct error *reterr)
{
    struct machine_plan *plan = reader->base;
    (void)row;
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

static void chip_kind_write(struct json_writer *writer, const struct key *row,
                            const struct key_source *source)
{
    const struct machine_plan *plan = source->base;
    (void)row;
    if (plan->chip_document != NULL && plan->chip_path == NULL)
        json_write_value(writer, plan->chip_document);
    else
        json_write_string(writer, plan->chip);
}

static void chip_kind_schema(struct json_writer *writer, const struct key *row)
{
    static const char *const definitions[] = {"#/$defs/tpu", "#/$defs/gpu", NULL};
    (void)row;
    scenario_text_or_schema(writer, definitions);
}

static const struct key_kind chip_kind = {
    .read = chip_kind_read, .write = chip_kind_write, .waits = true, .schema = chip_kind_schema};

/* The name of a stack of the catalogue, or the path of a file, found as a chip's is. */
static enum status stack_kind_read(const struct key *row, const struct key_reader *reader,
                                   struct json *stack, struct error *reterr)
{
    struct machine_plan *plan = reader->base;
    const char *name = NULL;
    plan->stack = NULL;
    plan->stack_document = NULL;
    STATUS_TRY(key_text_or_word(row, stack, &name, reterr));
    if (name == row->word) return STATUS_OK;
    plan->stack = name;
    if (!path_is(plan->stack)) return STATUS_OK;
    STATUS_TRY(path_beside(reader->arena, reader->base_folder, plan->stack, &plan->stack, reterr));
    return json_read_file(reader->arena, plan->stack, &plan->stack_document, reterr);
}

static void stack_kind_write(struct json_writer *writer, const struct key *row,
                             const struct key_source *source)
{
    const struct machine_plan *plan = source->base;
    json_write_string(writer, plan->stack == NULL ? row->word : plan->stack);
}

static const struct key_kind stack_kind = {
    .read = stack_kind_read, .write = stack_kind_write, .waits = true, .type = "string"};

/* [3, "*", 0]: one number an axis. */
static enum status place_read(const struct key *row, const struct key_reader *reader,
                              struct json *array, struct error *reterr)
{
    uint32_t *const at = key_field(row, reader);
    uint32_t const known = reader->axis_count;
    if (array == NULL) return STATUS_OK;
    STATUS_TRY(
        key_array(array, known == 0 ? 1 : known, known == 0 ? MACHINE_AXES_MAX : known, reterr));
    for (uint32_t i = 0; i < json_count(array); i++) {
        struct json *element = json_at(array, i);
        uint32_t ignored = 0;
        int64_t coordinate = machine_any;
        if (row->choices != NULL && json_kind(element) == JSON_STRING)
            STATUS_TRY(json_choice(element, row->choices, &ignored, reterr));
        else
            STATUS_TRY(json_as_integer(element, 0, MACHINE_CHIPS_MAX - 1, &coordinate, reterr));
        at[i] = (uint32_t)coordinate;
    }
    return STATUS_OK;
}

static void place_write(struct json_writer *writer, const struct key *row,
                        const struct key_source *source)
{
    const uint32_t *const at = key_field_of(row, source);
    json_write_array(writer);
    for (uint32_t axis = 0; axis < source->axis_count; axis++) {
        if (at[axis] == machine_any)
            json_write_string(writer, any_names[0]);
        else
            json_write_unsigned(writer, at[axis]);
    }
    json_write_array_end(writer);
}

static void place_schema(struct json_writer *writer, const struct key *row)
{
    bool const may_be_any = row->choices != NULL;
    key_array_schema(writer, 1, MACHINE_AXES_MAX);
    key_types_schema(writer, "integer", may_be_any ? "string" : NULL);
    if (may_be_any) json_put_string(writer, "pattern", "^[*]$");
    json_put_integer(writer, "minimum", 0);
    json_put_integer(writer, "maximum", MACHINE_CHIPS_MAX - 1);
    json_write_object_end(writer);
}

/* uint32_t[MACHINE_AXES_MAX]: coordinates of a chip, or of many where the row has choices. */
static const struct key_kind place_kind = {
    .read = place_read, .write = place_write, .schema = place_schema};

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
    return shown_of(source)->machine.slices <= 1 || tier->oversubscription_ppm != 0;
}

static void oversubscription_write(struct json_writer *writer, const struct key_source *source)
{
    const struct machine_tier_plan *tier = source->base;
    uint32_t const ppm = tier->oversubscription_ppm;
    json_write_real(writer, ppm == 0 ? 1 : (double)ppm / PPM_ONE);
}

/* Of what is shown only where a scenario says it. */
#define LATENCY(text, field, ...)                                                                  \
    ROW(text, key_duration, field, .quiet = true, .least = 1, .most = TIME_PS_PER_S, __VA_ARGS__)
#define COUNT(text, field, high, ...)                                                              \
    ROW(text, key_count, field, .quiet = true, .least = 1, .most = (high), __VA_ARGS__)
#define FACTOR(text, field, ...)                                                                   \
    ROW(text, key_share, field, .least = FACTOR_LEAST_PPM,                                         \
        .most = INT64_C(1) * FACTOR_MOST * PPM_ONE, .preset = PPM_ONE, __VA_ARGS__)

#define ROW(...) KEY_ROW(struct machine_tier_plan, __VA_ARGS__)
static const struct key tier_keys[] = {
    ROW("policy", key_choice, policy, .quiet = true, .least = 1, .choices = level_policy_names,
        .preset_text = "as `policy` of `network`", .help = "which cable a flow takes in this tier"),
    ROW("oversubscription", key_share, oversubscription_ppm, .least = PPM_ONE,
        .most = INT64_C(1) * OVERSUBSCRIPTION_MAX * PPM_ONE, .shown = has_oversubscription,
        .write = oversubscription_write,
        .preset_text = "1; between slices none: any value adds tiers",
        .help = "cables down for each cable up; must give whole cables. Not for `core`"),
    {0},
};
#undef ROW

/* Of hosts between slices 0 is a time as any other. */
static enum status dcn_settle(const struct key_reader *reader, struct json *member,
                              struct error *reterr)
{
    static const struct {
        const char *name;
        enum machine_dcn_said said;
    } times[] = {{"dcn_begin", MACHINE_DCN_BEGIN},
                 {"dcn_message", MACHINE_DCN_MESSAGE},
                 {"dcn_spread", MACHINE_DCN_SPREAD}};
    struct machine_network_plan *plan = reader->base;
    (void)member;
    (void)reterr;
    plan->dcn_said = 0;
    for (uint32_t i = 0; reader->object != NULL && i < sizeof times / sizeof *times; i++)
        if (json_take(reader->object, times[i].name) != NULL)
            plan->dcn_said |= (uint32_t)times[i].said;
    return STATUS_OK;
}

static bool shows_begin(const struct key_source *source)
{
    const struct machine_network_plan *plan = source->base;
    return machine_dcn_says(plan, plan->dcn_begin_ps, MACHINE_DCN_BEGIN);
}

static bool shows_message(const struct key_source *source)
{
    const struct machine_network_plan *plan = source->base;
    return machine_dcn_says(plan, plan->dcn_message_ps, MACHINE_DCN_MESSAGE);
}

static bool shows_spread(const struct key_source *source)
{
    const struct machine_network_plan *plan = source->base;
    return machine_dcn_says(plan, plan->dcn_spread_ps, MACHINE_DCN_SPREAD);
}

#define ROW(...) KEY_ROW(struct machine_network_plan, __VA_ARGS__)
#define OF_HOSTS(text, field, ...)                                                                 \
    ROW(text, key_duration, field, .most = TIME_PS_PER_S, .when = "`slices`",                      \
        .preset_text = "the profile's", __VA_ARGS__)
static const struct key nvlink_keys[] = {
    ROW("policy", key_choice, nvlink_policy, .least = 1, .preset = 1, .choices = level_policy_names,
        .help = "which cable a flow takes within a node"),
    ROW("sharp", key_choice, nvlink_sharp, .choices = sharp_names,
        .help = "`sharp` of NVSwitches alone; `auto`: as `sharp`"),
    LATENCY("latency", nvlink_latency_ps, .preset_text = "the chip's", .help = "latency of NVLink"),
    {0},
};

const struct key network_keys[] = {
    ROW("policy", key_choice, policy, .least = 1, .preset = 1, .choices = level_policy_names,
        .help =
            "[which cable a flow takes](machine.md#nodes-slices-and-the-switches-between-them) in "
            "all levels beyond a node or slice"),
    ROW("sharp", key_choice, sharp, .choices = sharp_names,
        .help = "switches that reduce and multicast. `auto`: NVSwitches that can do so, InfiniBand "
                "does not; `on`: all that can"),
    LATENCY("cable_latency", cable_latency_ps, .preset_text = "the chip's",
            .help = "latency of a cable beyond a node or slice"),
    LATENCY("switch_latency", switch_latency_ps, .preset_text = "the chip's",
            .help = "latency of a switch beyond a node or slice"),
    OF_HOSTS("dcn_begin", dcn_begin_ps, .shown = shows_begin,
             .help = "time that hosts need for a collective [between "
                     "slices](machine.md#hosts-between-slices)"),
    OF_HOSTS("dcn_message", dcn_message_ps, .shown = shows_message,
             .help = "time that a host needs for each message of such a collective, one after the "
                     "other"),
    OF_HOSTS("dcn_spread", dcn_spread_ps, .shown = shows_spread, .settle = dcn_settle,
             .help = "mean of an exponential part of a host's time for such a collective; the "
                     "slowest host counts"),
    COUNT("switch_ports", switch_ports, SWITCH_PORTS_MAX,
          .preset_text = "the chip's; between slices none: any value adds tiers",
          .help = "ports of a switch beyond a node or slice; a tree needs 4"),
    ROW("nic_rate", key_rate, nic_bytes_per_s, .quiet = true, .least = NIC_RATE_LEAST,
        .most = RATE_MOST, .preset_text = "the chip's",
        .help =
            "rate of a NIC and the cables behind it, one way, such as `25GB/s` or `200Gbit/s`; for "
            "a TPU the NIC of its host"),
    COUNT("node_nics", node_nics, NODE_NICS_MAX, .when = "GPUs", .preset_text = "the chip's",
          .help = "NICs of a node: a multiple or a divisor of its GPUs. GPUs that share a NIC "
                  "reach it over PCIe, a separate tier `host`"),
    KEY("nvlink", key_object, .members = nvlink_keys, .when = "GPUs",
        .help = "switches within a node"),
#define X(which, text, cable)                                                                      \
    ROW(text, key_object, tier[MACHINE_##which], .quiet = true, .members = tier_keys,              \
        .help = "a tier of switches beyond a node or slice"),
    MACHINE_TIER_TABLE(X)
#undef X
        {0},
};
#undef ROW

#define ROW(...) KEY_ROW(struct machine_link_override, __VA_ARGS__)
static const struct key link_keys[] = {
    ROW("from", place_kind, from, .needed = true, .help = "the chip it leaves"),
    ROW("to", place_kind, to, .needed = true, .help = "its neighbour"),
    ROW("rate", key_rate, bytes_per_s, .quiet = true, .least = 1, .most = RATE_MOST,
        .preset_text = "unchanged", .help = "bytes a second"),
    LATENCY("latency", latency_ps, .settle = link_settle, .preset_text = "unchanged",
            .help = "latency of a hop"),
    {0},
};
#undef ROW

#define ROW(...) KEY_ROW(struct machine_chip_override, __VA_ARGS__)
static const struct key chip_override_keys[] = {
    ROW("at", place_kind, at, .choices = any_names, .needed = true,
        .help = "the chip; `\"*\"` is every coordinate"),
    FACTOR("math", math_ppm, .help = "factor of the rates of math"),
    FACTOR("hbm", hbm_ppm, .settle = chip_override_settle, .help = "factor of the rate of HBM"),
    {0},
};
#undef ROW

#define ROW(...) KEY_ROW(struct machine_plan, __VA_ARGS__)
static const struct key wrap_keys[] = {
#define X(axis, text)                                                                              \
    ROW(text, key_flag, wrap[axis], .quiet = true, .preset = -1,                                   \
        .preset_text = "by the product's rule", .help = "wraparound of the axis"),
    X(0, "x") X(1, "y") X(2, "z")
#undef X
        {0},
};
_Static_assert(CHIP_AXES_MAX == 3, "each axis of a grid has a row");

const struct key machine_keys[] = {
    KEY("chip", chip_kind, .needed = true,
        .values.words =
            "a name of `podsim list chips`, a product name such as `v5p-8192`, `v5e-256`, the "
            "path of a file, or an object",
        .help =
            "the chip. A product name gives the shape too. A path is relative to the scenario and "
            "names [your own chip](machine.md#your-own-chip); an object is the chip itself"),
    ROW("shape", key_text, shape, .quiet = true, .when = "TPUs", .values.example = "\"16x16x16\"",
        .preset_text = "the product's; needed for a TPU without a product name",
        .help = "lengths of the axes x, y, z; `\"4x4x8_twisted\"` is a twisted torus"),
    ROW("profile", key_text, profile, .word = "ideal", .values.words = "`ideal`, `measured`",
        .help = "data-sheet rates, or scaled by measured efficiencies and with overheads"),
    KEY("stack", stack_kind, .word = "none", .when = "`measured`",
        .values.words = "`none`, a name of `podsim list kernels`, or the path of a file",
        .help = "measured [kernels](kernels.md) of a software stack: products with weights and "
                "attention take times from its tables instead of the profile's rates"),
    ROW("hbm_gib", key_flag, hbm_gib,
        .help = "read the data sheet's GB of HBM as GiB: 16 GB are 17.18 GB. For capacities that "
                "are a whole number of GB"),
    ROW("clock", key_share, clock_ppm, .quiet = true, .least = CLOCK_LEAST_PPM, .most = PPM_ONE,
        .preset_text = "the stack's, else 1",
        .help = "share of its clock that a power limit leaves to the chip; scales rates of math"),
    ROW("clock_fp8", key_share, clock_fp8_ppm, .quiet = true, .least = CLOCK_LEAST_PPM,
        .most = PPM_ONE, .preset_text = "`clock`; without `clock` the stack's",
        .help = "share of its clock that is left to products in fp8, which draw more power"),
    ROW("power", key_power, power_w, .quiet = true, .least = 1, .most = POWER_MOST_W,
        .values.words = "a power such as `500W`", .preset_text = "the chip's", .when = "GPUs",
        .help = "limit of the [power](machine.md#power) of a chip, below which its clock falls"),
    COUNT("nodes", nodes, MACHINE_CHIPS_MAX, .when = "GPUs",
          .preset_text = "one, without an axis `node`", .help = "nodes joined by InfiniBand"),
    COUNT("gpus", gpus, MACHINE_CHIPS_MAX, .when = "GPUs", .values.words = "1 to 576",
          .preset_text = "the chip's node", .help = "chips of a node, the axis `gpu`"),
    COUNT("slices", slices, MACHINE_CHIPS_MAX, .when = "TPUs", .preset_text = "1",
          .help = "the number of grids of that shape, joined by DCN; several grids make the axis "
                  "`slice`"),
    ROW("network", key_object, network, .members = network_keys, .has_table = true,
        .values.example = "{\"policy\": \"hash\", \"leaf\": {\"oversubscription\": 2}}",
        .preset_text = "the hardware's", .help = "[switches](#network) and their cables"),
    ROW("unrealisable", key_flag, unrealisable,
        .help = "permits shapes that the product cannot be sliced into"),
    KEY("wrap", key_object, .members = wrap_keys, .values.example = "{\"x\": true}",
        .preset_text = "by the product's rule", .when = "TPUs",
        .help = "wraparound of an axis; needs `unrealisable`"),
    ROW("links", key_list, links,
        .elements = {offsetof(struct machine_plan, link_count),
                     sizeof(struct machine_link_override), list_axis_count},
        .most = MACHINE_OVERRIDES_MAX, .members = link_keys,
        .values.example =
            "[{\"from\": [0,0,0], \"to\": [1,0,0], \"rate\": \"45GB/s\", \"latency\": \"2us\"}]",
        .preset_text = "none", .when = "TPUs", .help = "overrides of single directed links"),
    ROW("chips", key_list, chips,
        .elements = {offsetof(struct machine_plan, chip_count),
                     sizeof(struct machine_chip_override), list_axis_count},
        .most = MACHINE_OVERRIDES_MAX, .members = chip_override_keys,
        .values.example = "[{\"at\": [3,\"*\",\"*\"], \"math\": 0.5, \"hbm\": 0.8}]",
        .preset_text = "none",
        .help =
            "overrides of chips: factors of the rates of their math and HBM; above 1 is faster, up "
            "to 100"),
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
