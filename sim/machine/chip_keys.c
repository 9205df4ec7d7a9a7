/*
 * chip_keys.c: the rows of a chip's file.
 */
#include "sim/machine/chip_keys.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/units.h"

enum { COUNT_MOST = 4096, HOST_CHIPS_MAX = 64, NODE_CHIPS_MAX = 576, NAMES_MAX = 16 };

static enum status math_settle(const struct key_reader *reader, struct json *math,
                               struct error *reterr)
{
    (void)reader;
    if (json_count(math) != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(math),
                     "a chip needs the rate of a number format, such as \"bf16\"");
}

/* The first name is the one that products' names begin with. */
static enum status aliases_settle(const struct key_reader *reader, struct json *names,
                                  struct error *reterr)
{
    struct chip_file *file = reader->base;
    return json_as_string(json_at(names, 0), &file->chip.short_name, reterr);
}

/* A price is of a day, which its source says. */
static enum status price_settle(const struct key_reader *reader, struct json *member,
                                struct error *reterr)
{
    struct chip_file *file = reader->base;
    if (member == NULL) return STATUS_OK;
    return json_as_string(json_take(member, "source"), &file->chip.price.source, reterr);
}

/* Of GPUs, in the order of enum chip_maker. */
static const char *const gpu_makers[] = {"nvidia", "amd", NULL};
_Static_assert(CHIP_NVIDIA + 1 == CHIP_AMD && CHIP_AMD + 1 == CHIP_MAKERS, "makers of GPUs last");

static enum status shape_read(const struct key *row, const struct key_reader *reader,
                              struct json *value, struct error *reterr)
{
    const char *text = NULL;
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(json_as_string(value, &text, reterr));
    return shape_parse(text, json_where(value), key_field(row, reader), reterr);
}

/* struct shape: "16x16x16" */
static const struct key_kind shape_kind = {.read = shape_read,
                                           .type = "string",
                                           .pattern = "^[0-9]+(x[0-9]+){0,2}(_twisted)?$",
                                           .values = "lengths such as `4x4x8`"};

/* A host holds a box of the pod's chips. */
static enum status host_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    const struct chip_file *file = reader->base;
    const struct shape *pod = &file->pod, *host = &file->host;
    const char *where = json_where(json_take(member, "value"));
    char text[SHAPE_TEXT_BYTES];
    if (host->axis_count > pod->axis_count || host->twisted || pod->twisted)
        return error_set(reterr, STATUS_INVALID, where, "is no box of chips of a pod of %s",
                         shape_text(text, pod));
    if (shape_chip_count(host) > HOST_CHIPS_MAX)
        return error_set(reterr, STATUS_INVALID, where, "%llu chips are above the maximum of %d",
                         (unsigned long long)shape_chip_count(host), HOST_CHIPS_MAX);
    return STATUS_OK;
}

static enum status slices_settle(const struct key_reader *reader, struct json *member,
                                 struct error *reterr)
{
    struct chip_file *file = reader->base;
    struct chip_pod *pod = &file->chip.pod;
    struct json *slices = json_take(member, "value");
    pod->slice_count = json_count(slices);
    for (uint32_t i = 0; i < pod->slice_count; i++) {
        const char *text = NULL;
        struct shape shape;
        STATUS_TRY(json_as_string(json_at(slices, i), &text, reterr));
        STATUS_TRY(shape_parse(text, json_where(slices), &shape, reterr));
        if (shape.axis_count != file->pod.axis_count)
            return error_set(reterr, STATUS_INVALID, json_where(slices),
                             "%s does not have the pod's %u axes", text, file->pod.axis_count);
        memcpy(pod->slice[i], shape.length, sizeof pod->slice[i]);
    }
    return STATUS_OK;
}

/* Without a switch each GPU has as many links to each other one of its node. */
static enum status links_settle(const struct key_reader *reader, struct json *member,
                                struct error *reterr)
{
    const struct chip_file *file = reader->base;
    const struct chip_network *network = &file->chip.network;
    uint32_t const others = network->node_chips - 1;
    if (network->nvswitch_count != 0) return STATUS_OK;
    if (others > 0 && network->nvlink_count % others == 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(json_take(member, "value")),
                     "%u links cannot be dealt evenly to the %u other GPUs of a node; with "
                     "switches \"nvswitch_count\" and \"nvswitch_ports\" are needed",
                     network->nvlink_count, others);
}

/* A profile's capacity is of the same memory as the data sheet's, less what a driver keeps. Where
 * one of the two was changed in a copied file, the other was forgotten. */
static enum status capacity_settle(const struct key_reader *reader, struct json *member,
                                   struct error *reterr)
{
    enum { PERCENT_APART_MAX = 15 };
    static const char key[] = "hbm_capacity";
    const struct chip_file *file = reader->whole;
    const struct chip_profile *profile = reader->base;
    uint64_t const sheet = file->chip.hbm_capacity_bytes, bytes = profile->hbm_capacity_bytes;
    uint64_t const apart = bytes > sheet ? bytes - sheet : sheet - bytes;
    const char *own = NULL, *of_sheet = NULL;
    if (member == NULL || apart * 100 <= sheet * PERCENT_APART_MAX) return STATUS_OK;
    struct json *const value = json_take(member, "value");
    STATUS_TRY(json_as_string(value, &own, reterr));
    STATUS_TRY(
        json_as_string(json_take(json_take(file->document, key), "value"), &of_sheet, reterr));
    return error_set(reterr, STATUS_INVALID, json_where(value),
                     "%.40s is more than %d %% apart from %.40s, the chip's own \"%s\", whose "
                     "memory it is; change both, or leave this one out",
                     own, PERCENT_APART_MAX, of_sheet, key);
}

static enum status idle_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    const struct chip_file *file = reader->base;
    const struct chip_power *power = &file->chip.core.power;
    if (member == NULL || power->idle_w < power->most_w) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(json_take(member, "value")),
                     "%llu W without work leave nothing of the %llu W of \"power\"",
                     (unsigned long long)power->idle_w, (unsigned long long)power->most_w);
}

static enum status profiles_read(const struct key *row, const struct key_reader *reader,
                                 struct json *profiles, struct error *reterr)
{
    struct chip_file *file = reader->base;
    struct key_reader inner = *reader;
    void *memory = NULL;
    const char *name = NULL;
    STATUS_TRY(json_as_object(profiles, reterr));
    STATUS_TRY(
        arena_try(reader->arena, json_count(profiles), sizeof *file->profiles, &memory, reterr));
    file->profiles = memory;
    for (; (name = json_key_at(profiles, file->profile_count)) != NULL; file->profile_count++) {
        inner.object = json_take(profiles, name);
        inner.base = &file->profiles[file->profile_count];
        file->profiles[file->profile_count].name = name;
        STATUS_TRY(keys_read(row->members, &inner, reterr));
    }
    return STATUS_OK;
}

static void profiles_schema(struct json_writer *writer, const struct key *row)
{
    key_types_schema(writer, "object", NULL);
    json_put_object(writer, "additionalProperties");
    keys_schema(writer, row->members);
    json_write_object_end(writer);
}

/* Objects with the members of the row, each under the name of a profile. */
static const struct key_kind profiles_kind = {
    .read = profiles_read, .waits = true, .schema = profiles_schema};

#define NEEDED .needed = true
#define OPTIONAL .preset_text = "none"

/* Of a number: name, kind, field, bounds, and what else it says. */
#define NUMBER(text, of, field, low, high, ...)                                                    \
    ROW(text, of, field, .has_source = true, .least = (low), .most = (high), __VA_ARGS__)
#define COUNT(text, field, high, ...) NUMBER(text, key_integer, field, 1, high, __VA_ARGS__)
#define BYTES(text, field, ...)                                                                    \
    NUMBER(text, key_bytes, field, INT64_C(1) << 10, INT64_C(1) << 50, __VA_ARGS__)
#define RATE(text, field, ...)                                                                     \
    NUMBER(text, key_rate, field, 1000000, INT64_C(1000000000000000), __VA_ARGS__)
#define FLOPS(text, field, ...)                                                                    \
    NUMBER(text, key_flop_rate, field, 1000000000, INT64_C(1000000000000000000), __VA_ARGS__)
#define LATENCY(text, field, ...) NUMBER(text, key_duration, field, 1, TIME_PS_PER_S, __VA_ARGS__)

#define ROW(...) KEY_ROW(struct chip_profile, __VA_ARGS__)
#define SHARE(text, field, of)                                                                     \
    COUNT(text, field, PPM_ONE, NEEDED, .help = "share of " of " that is reached, in millionths")
#define OVERHEAD(text, field, of)                                                                  \
    NUMBER(text, key_duration, field, 0, TIME_PS_PER_S, NEEDED,                                    \
           .help = "time that " of " takes longer")
#define PROFILE_KEYS(link, of)                                                                     \
    SHARE("math_ppm", math_ppm, "the rates of `math`"),                                            \
        SHARE("vector_ppm", vector_ppm, "`vector_rate`"), SHARE("hbm_ppm", hbm_ppm, "`hbm_rate`"), \
        SHARE(link, link_ppm, of), SHARE("nic_ppm", nic_ppm, "the rate of a NIC"),                 \
        OVERHEAD("op_overhead", op_overhead_ps, "each compute op"),                                \
        OVERHEAD("message_overhead", message_overhead_ps, "each message over a link")

#define TIME_OF_TPU(text, field, what)                                                             \
    NUMBER(text, key_duration, field, 0, TIME_PS_PER_S, .quiet = true, .preset_text = "0ps",       \
           .help = what)
const struct key chip_tpu_profile_keys[] = {
    PROFILE_KEYS("ici_ppm", "`ici_rate`"),
    TIME_OF_TPU("async_overhead", async_overhead_ps,
                "time that start and end of an asynchronous collective of weights or their "
                "gradients take from compute"),
    TIME_OF_TPU("dcn_begin", dcn_begin_ps, "time of hosts for a collective between slices"),
    TIME_OF_TPU("dcn_message", dcn_message_ps,
                "time of a host for each message of a collective between slices"),
    TIME_OF_TPU("dcn_spread", dcn_spread_ps,
                "mean of the exponential part of that time; the slowest host counts"),
    {0},
};
const struct key chip_gpu_profile_keys[] = {
    BYTES("hbm_capacity", hbm_capacity_bytes, .preset_text = "the chip's",
          .settle = capacity_settle, .help = "HBM that the driver leaves"),
    PROFILE_KEYS("nvlink_ppm", "`nvlink_rate`"),
    {0},
};
#undef ROW

#define ROW(...) KEY_ROW(struct chip_file, __VA_ARGS__)
static const struct key math_keys[] = {
#define X(format, text, nccl, bits)                                                                \
    FLOPS(text, chip.math_peak_flop_per_s[FORMAT_##format], OPTIONAL, .help = "rate of matmuls"),
    FORMAT_MATH_TABLE(X)
#undef X
        {0},
};

static const char *const tpu_names[] = {"tpu", NULL}, *const gpu_names[] = {"gpu", NULL};
static const char *const wrap_rules[] = {"full-axis", "cubes", NULL};
_Static_assert(CHIP_WRAP_FULL_AXIS == 0 && CHIP_WRAP_CUBES == 1, "names of rules in their order");

#define TEXT(text, field, ...) ROW(text, key_text, field, .values.words = "text", __VA_ARGS__)
#define HEAD_KEYS(names)                                                                           \
    TEXT("name", chip.name, NEEDED, .least = 1, .help = "what reports call the chip"),             \
        KEY("kind", key_choice, NEEDED, .choices = names, .help = "what kind of chip it is"),      \
        TEXT("title", chip.title, NEEDED, .help = "the name in a sentence"),                       \
        KEY("aliases", key_words, NEEDED, .least = 1, .most = NAMES_MAX, .settle = aliases_settle, \
            .values.words = "texts", .help = "short names; product names begin with the first"),   \
        BYTES("hbm_capacity", chip.hbm_capacity_bytes, NEEDED, .help = "capacity of HBM"),         \
        RATE("hbm_rate", chip.kernels.sheet_hbm_bytes_per_s, NEEDED, .help = "rate of HBM")

#define PRICE_KEY                                                                                  \
    NUMBER("price", key_price, chip.price.usd_per_h_ppm, 1, INT64_C(1000000000), OPTIONAL,         \
           .settle = price_settle, .values.words = "`1.2USD/h`, up to `1000USD/h`",                \
           .help = "what renting a chip costs; the source says whose price it is, and of when")

#define WATTS(text, field, ...)                                                                    \
    NUMBER(text, key_power, field, 1, 1000000, .values.words = "1W to 1MW", __VA_ARGS__)

#define MATH_KEYS                                                                                  \
    KEY("math", key_object, NEEDED, .members = math_keys, .settle = math_settle,                   \
        .values.words =                                                                            \
            "`bf16`, `fp16`, `fp32`, `fp8`, `int8`, `int4`, `fp4`: 1GFLOP/s to 1000PFLOP/s",       \
        .help = "rate of matmuls in each number format that the chip has, one at least"),          \
        FLOPS("vector_rate", chip.vector_flop_per_s, NEEDED,                                       \
              .help = "rate of vector units or CUDA cores, fp32")

#define LAUNCH_KEY                                                                                 \
    LATENCY("graph_launch", chip.launch.graph_ps, OPTIONAL,                                        \
            .help = "time of the smallest op among the ops of a graph; without it `run.launch` "   \
                    "cannot be `graph`")

#define PCIE_KEY                                                                                   \
    RATE("pcie_rate", chip.pcie_bytes_per_s, NEEDED, .help = "rate to the host over PCIe, one way")

/* What a network of switches behind the NICs is made of. */
#define NETWORK_KEYS(...)                                                                          \
    LATENCY("nic_latency", chip.network.nic_latency_ps, __VA_ARGS__,                               \
            .help = "latency from the GPU or the TPU's host onto the cable"),                      \
        LATENCY("cable_latency", chip.network.cable_latency_ps, __VA_ARGS__,                       \
                .help = "latency of a cable of the network"),                                      \
        NUMBER("switch_ports", key_integer, chip.network.switch_ports, 4, 65536, __VA_ARGS__,      \
               .help = "ports of a switch of the network"),                                        \
        LATENCY("switch_latency", chip.network.switch_latency_ps, __VA_ARGS__,                     \
                .help = "latency of a switch of the network, from port to port")

#define PROFILES_KEY(of, below)                                                                    \
    KEY("profiles", profiles_kind, NEEDED, .members = of,                                          \
        .values.words = "an object for each profile",                                              \
        .help = "[measured shares](#" below ") of these rates, and overheads")

const struct key chip_tpu_keys[] = {
    HEAD_KEYS(tpu_names),
    BYTES("vmem_capacity", chip.vmem_capacity_bytes, NEEDED, .help = "capacity of VMEM"),
    RATE("vmem_rate", chip.vmem_bytes_per_s, NEEDED, .help = "rate of VMEM"),
    MATH_KEYS,
    COUNT("mxu_rows", chip.mxu.rows, COUNT_MOST, NEEDED,
          .help = "rows of an MXU: inner dimensions are padded to multiples"),
    COUNT("mxu_columns", chip.mxu.columns, COUNT_MOST, NEEDED,
          .help = "columns of an MXU: outer dimensions are padded to multiples"),
    COUNT("mxu_count", chip.mxu.count, COUNT_MOST, NEEDED, .help = "MXUs of the chip"),
    COUNT("core_count", chip.core.count, COUNT_MOST, NEEDED, .help = "TensorCores of the chip"),
    RATE("ici_rate", chip.ici_peak_bytes_per_s, NEEDED, .help = "rate of an ICI link, one way"),
    LATENCY("hop_latency", chip.hop_latency_ps, NEEDED, .help = "latency of an ICI link"),
    PCIE_KEY,
    RATE("dcn_rate", chip.dcn_bytes_per_s, NEEDED,
         .help = "the chip's share of its host's NIC, one way"),
    LATENCY("pcie_latency", chip.network.host_latency_ps, NEEDED, .help = "latency to the host"),
    NETWORK_KEYS(NEEDED),
    LAUNCH_KEY,
    ROW("pod_shape", shape_kind, pod, .has_source = true, NEEDED, .help = "the largest slice"),
    ROW("host_shape", shape_kind, host, .has_source = true, NEEDED, .settle = host_settle,
        .help = "the box of chips that a host has, up to 64"),
    BYTES("host_memory", chip.network.host_bytes, OPTIONAL,
          .help = "memory of a host, which its chips share. No run is refused because of it"),
    ROW("wrap_rule", key_choice, chip.pod.wrap_rule, .has_source = true, NEEDED,
        .choices = wrap_rules,
        .help = "`full-axis`: an axis of `wrap_length` wraps around; `cubes`: all axes, if all are "
                "multiples of it"),
    COUNT("wrap_length", chip.pod.wrap_length, COUNT_MOST, NEEDED,
          .help = "the length in `wrap_rule`"),
    KEY("slices", key_words, .has_source = true, NEEDED, .most = CHIP_SLICES_MAX,
        .settle = slices_settle, .values.words = "up to 16 shapes",
        .help = "slices that are sold; of `cubes` the smaller ones"),
    COUNT("name_units", chip.pod.name_units, NAMES_MAX, NEEDED,
          .help = "what product names count for a chip: `v5p-8192` has 4,096 chips of 2"),
    PRICE_KEY,
    PROFILES_KEY(chip_tpu_profile_keys, "a-profile-of-a-tpu"),
    {0},
};

const struct key chip_gpu_keys[] = {
    HEAD_KEYS(gpu_names),
    BYTES("l2_capacity", chip.vmem_capacity_bytes, NEEDED, .help = "capacity of L2"),
    RATE("l2_rate", chip.vmem_bytes_per_s, NEEDED, .help = "rate of L2"),
    MATH_KEYS,
    COUNT("sm_count", chip.core.count, COUNT_MOST, NEEDED, .help = "SMs of the chip"),
    COUNT("tensor_core_count", chip.mxu.count, 65536, NEEDED, .help = "tensor cores of the chip"),
    COUNT("tile_inner", chip.mxu.rows, COUNT_MOST, NEEDED,
          .help = "inner dimensions are padded to multiples"),
    COUNT("tile_columns", chip.mxu.columns, COUNT_MOST, NEEDED,
          .help = "outer dimensions are padded to multiples"),
    BYTES("sm_smem", chip.core.smem_bytes, NEEDED, .help = "shared memory and L1 of an SM"),
    BYTES("sm_registers", chip.core.register_bytes, NEEDED, .help = "registers of an SM"),
    BYTES("sm_tmem", chip.core.tmem_bytes, OPTIONAL, .help = "tensor memory of an SM"),
    COUNT("host_gpus", chip.network.host_chips, HOST_CHIPS_MAX, NEEDED, .help = "GPUs of a CPU"),
    PCIE_KEY,
    RATE("c2c_rate", chip.network.c2c_bytes_per_s, OPTIONAL,
         .help = "rate to the CPU's memory over NVLink-C2C, one way"),
    LATENCY("host_latency", chip.network.host_latency_ps, NEEDED, .help = "latency to the host"),
    LAUNCH_KEY,
    ROW("maker", key_choice, chip.network.maker, .least = CHIP_NVIDIA, .preset = CHIP_NVIDIA,
        .choices = gpu_makers, .help = "whose words reports use, and whose libraries take memory"),
    TEXT("link_name", chip.network.link_name, .word = "NVLink",
         .help = "what joins the GPUs of a node"),
    COUNT("nvlink_generation", chip.network.nvlink_generation, 16, NEEDED,
          .help = "generation of the links"),
    COUNT("nvlink_links", chip.network.nvlink_count, 256, NEEDED, .settle = links_settle,
          .help = "links of a GPU; without switches a multiple of the other GPUs of a node"),
    RATE("nvlink_rate", chip.network.nvlink_peak_bytes_per_s, NEEDED,
         .help = "rate of a link, one way"),
    LATENCY("nvlink_latency", chip.network.nvlink_latency_ps, NEEDED,
            .help = "latency from a GPU to the middle of its switch"),
    COUNT("node_gpus", chip.network.node_chips, NODE_CHIPS_MAX, NEEDED, .help = "GPUs of a node"),
    COUNT("nvswitch_count", chip.network.nvswitch_count, 1024, NEEDED, .with = "nvswitch_ports",
          .help = "switches of a node. Without them each GPU has links to each other GPU"),
    NUMBER("nvswitch_ports", key_integer, chip.network.nvswitch_ports, 2, 4096, NEEDED,
           .with = "nvswitch_count", .help = "ports of such a switch"),
    FLOPS("nvswitch_reduce_rate", chip.network.nvswitch_flop_per_s, OPTIONAL,
          .with = "nvswitch_count", .help = "rate at which such a switch adds, fp32 (SHARP)"),
    COUNT("gpu_nics", chip.network.nic_count, HOST_CHIPS_MAX, NEEDED, .with = "nic_rate",
          .help = "NICs of a GPU"),
    RATE("nic_rate", chip.network.nic_peak_bytes_per_s, OPTIONAL,
         .help = "rate of a NIC, one way. Without it a machine has one node"),
    COUNT("leaf_rails", chip.network.leaf_rails, 64, NEEDED, .with = "nic_rate",
          .help = "GPUs of a node that share a leaf"),
    NETWORK_KEYS(NEEDED, .with = "nic_rate"),
    FLOPS("switch_reduce_rate", chip.network.switch_flop_per_s, OPTIONAL, .with = "nic_rate",
          .help = "rate at which a switch of the network adds, fp32 (SHARP)"),
    WATTS("power", chip.core.power.most_w, OPTIONAL,
          .help = "limit of the power of a GPU with its memory. Without it `machine.power` cannot "
                  "be less"),
    WATTS("idle_power", chip.core.power.idle_w, NEEDED, .with = "power", .settle = idle_settle,
          .help = "power without work, which does not follow the clock"),
    PRICE_KEY,
    PROFILES_KEY(chip_gpu_profile_keys, "a-profile-of-a-gpu"),
    {0},
};
