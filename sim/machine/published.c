#include "sim/machine/published.h"

#include <stddef.h>

#include "sim/base/name.h"
#include "sim/base/status.h"
#include "sim/machine/totals.h"

#define QUANTITY_TABLE(X)                                                                          \
    X(NVSWITCHES, "NVSwitches of a node", false)                                                   \
    X(NVSWITCH_RATE, "NVSwitch ports", true)                                                       \
    X(NODE_RATE, "GPUs to NVSwitches", true)                                                       \
    X(GPU_EGRESS, "egress of a GPU", true)                                                         \
    X(NODE_EGRESS, "egress of a node", true)                                                       \
    X(GPUS, "GPUs", false)                                                                         \
    X(SWITCHES, "switches", false)                                                                 \
    X(LEAVES, "leaf switches", false)                                                              \
    X(SPINES, "spine switches", false)                                                             \
    X(CORES, "core switches", false)                                                               \
    X(LEAF_CABLES, "cables to leaves", false)                                                      \
    X(SPINE_CABLES, "cables to spines", false)                                                     \
    X(CORE_CABLES, "cables to cores", false)                                                       \
    X(SPINE_RATE, "all into spines", true)                                                         \
    X(BISECTION, "bisection", true)                                                                \
    X(POD_CHIPS, "chips of a pod", false)                                                          \
    X(HOST_CHIPS, "chips of a host", false)                                                        \
    X(CHIP_LINKS, "links of a chip", false)                                                        \
    X(LINK_RATE, "a link", true)                                                                   \
    X(LINKS_RATE, "all links of a chip", true)                                                     \
    X(DCN_RATE, "DCN of a chip", true)                                                             \
    X(SLICE_BISECTION, "bisection of the pod", true)

enum quantity {
#define X(name, text, rate) name,
    QUANTITY_TABLE(X)
#undef X
        QUANTITY_COUNT,
};

static const struct {
    const char *name;
    bool rate;
} quantities[] = {
#define X(name, text, rate) {text, rate},
    QUANTITY_TABLE(X)
#undef X
};

struct figure {
    const char *chip;
    uint32_t units; /* Its nodes, or chips of a whole pod; 0: any. */
    enum quantity quantity;
    uint64_t value;
    const char *source;
};

/* H100's own table counts the same switches for a node less, whose place its fabric manager takes.
 */
static const char superpod[] = "NVIDIA DGX SuperPOD reference architecture, table of B200";
static const char table_12_6[] = "book ch. 12, Table 12.6";
static const char table_12_7[] = "book ch. 12, Table 12.7";
static const char table_12_8[] = "book ch. 12, Table 12.8";
static const char table_12_9[] = "book ch. 12, Table 12.9";
static const char table_12_10[] = "book ch. 12, Table 12.10";
static const char beyond_node[] = "book ch. 12, Beyond the Node Level";
static const char bisection[] =
    "book ch. 12, Beyond the Node Level: full bisection, half of 128 nodes of 400 GB/s";
static const char specs[] = "book ch. 2, TPU Specs";
static const char cloud_v3[] = "Cloud TPU documentation, v3";
static const char cloud_v4[] = "Cloud TPU documentation, v4";
static const char cloud_v5e[] = "Cloud TPU documentation, v5e: 400 GB/s, both ways";
static const char cloud_v5e_pod[] = "Cloud TPU documentation, v5e";
static const char cloud_v5e_dcn[] = "Cloud TPU documentation, v5e: 6.4 Tb/s a pod";
static const char cloud_v5p[] = "Cloud TPU documentation, v5p: 1,200 GB/s, both ways";
static const char cloud_v5p_dcn[] = "Cloud TPU documentation, v5p: 50 Gb/s";
static const char cloud_v6e[] = "Cloud TPU documentation, v6e: 800 GB/s, both ways";
/* By NVIDIA, where its data sheets are not at hand. */
static const char tensorrt_h20[] =
    "NVIDIA/TensorRT-LLM auto_parallel/cluster_info.py at 16d2467e: 450 GB/s one way";
static const char systems_b300[] =
    "ai-dynamo/aiconfigurator systems/b300_sxm.yaml at 095f58a5: 100 GB/s a GPU one way";
static const char systems_gb300[] =
    "ai-dynamo/aiconfigurator systems/gb300.yaml at 095f58a5: 900 GB/s one way";
static const char cloud_7x[] = "Cloud TPU documentation, TPU7x";
static const char cloud_v6e_pod[] = "Cloud TPU documentation, v6e";

/* A row of the SuperPOD's table; nodes of eight GPUs. */
#define SUPERPOD(chip, nodes, leaves, spines, cores)                                               \
    {chip, nodes, LEAVES, leaves, superpod}, {chip, nodes, SPINES, spines, superpod},              \
        {chip, nodes, CORES, cores, superpod}, {chip, nodes, LEAF_CABLES, nodes * 8, superpod},    \
        {chip, nodes, SPINE_CABLES, nodes * 8, superpod},                                          \
    {                                                                                              \
        chip, nodes, CORE_CABLES, (cores) > 0 ? (nodes)*8 : 0, superpod                            \
    }

#define SUPERPODS(chip)                                                                            \
    SUPERPOD(chip, 64, 16, 8, 0), SUPERPOD(chip, 128, 32, 16, 0), SUPERPOD(chip, 256, 64, 32, 0),  \
        SUPERPOD(chip, 512, 128, 128, 64), SUPERPOD(chip, 1024, 256, 256, 128),                    \
        SUPERPOD(chip, 2048, 512, 512, 256)

static const uint64_t giga = 1000000000;

static const struct figure figures[] = {
    {"v100-sxm", 0, NVSWITCHES, 6, "NVIDIA NVSwitch technical overview: HGX-2"},
    {"a100-sxm", 0, NVSWITCHES, 6, "NVIDIA A100 whitepaper: DGX A100"},
    {"a100-sxm", 0, GPU_EGRESS, 300 * giga, table_12_6},
    {"a100-40gb", 0, NVSWITCHES, 6, "NVIDIA A100 whitepaper: DGX A100"},
    {"a100-40gb", 0, GPU_EGRESS, 300 * giga, table_12_6},
    {"h100-pcie", 0, GPU_EGRESS, 300 * giga, "NVIDIA H100 datasheet, PCIe: 600 GB/s, both ways"},
    {"h20-sxm", 0, GPU_EGRESS, 450 * giga, tensorrt_h20},
    {"mi300x", 0, GPU_EGRESS, 448 * giga, "AMD Instinct MI300X data sheet: 896 GB/s, both ways"},
    {"h100-sxm", 0, NVSWITCHES, 4, table_12_7},
    {"h100-sxm", 0, NVSWITCH_RATE, 6400 * giga, table_12_9},
    {"h100-sxm", 0, NODE_RATE, 3600 * giga, table_12_7},
    {"h100-sxm", 0, GPU_EGRESS, 450 * giga, table_12_6},
    {"h100-sxm", 0, NODE_EGRESS, 400 * giga, table_12_8},
    {"h100-sxm", 128, GPUS, 1024, table_12_7},
    {"h100-sxm", 128, SWITCHES, 560, beyond_node},
    SUPERPODS("h100-sxm"),
    {"h100-sxm", 128, SPINE_RATE, 51200 * giga, table_12_9},
    {"h100-sxm", 128, BISECTION, 25600 * giga, bisection},
    {"b200", 0, NVSWITCHES, 2, table_12_6},
    {"b200", 0, GPU_EGRESS, 900 * giga, table_12_6},
    {"b200", 0, NODE_EGRESS, 400 * giga, table_12_10},
    SUPERPODS("b200"),
    {"gb200-nvl72", 0, NVSWITCHES, 18, table_12_6},
    {"gb200-nvl72", 0, GPU_EGRESS, 900 * giga, table_12_6},
    {"gb200-nvl72", 0, NODE_EGRESS, 3600 * giga, table_12_10},
    {"gb200-nvl72", 8, GPUS, 576, beyond_node},
    {"b300", 0, GPU_EGRESS, 900 * giga, "NVIDIA DGX B300 datasheet: 1.8 TB/s, both ways"},
    {"b300", 0, NODE_EGRESS, 800 * giga, systems_b300},
    {"gb300-nvl72", 0, GPU_EGRESS, 900 * giga, systems_gb300},
    {"gb300-nvl72", 0, NODE_RATE, 65000 * giga, "NVIDIA GB300 NVL72: 130 TB/s, both ways"},
    {"tpu-v3", 0, POD_CHIPS, 1024, cloud_v3},
    {"tpu-v3", 1024, SLICE_BISECTION, 6400 * giga, cloud_v3},
    {"tpu-v4p", 0, POD_CHIPS, 4096, cloud_v4},
    {"tpu-v4p", 0, HOST_CHIPS, 4, specs},
    {"tpu-v4p", 4096, SLICE_BISECTION, 24000 * giga, cloud_v4},
    {"tpu-v5e", 0, POD_CHIPS, 256, cloud_v5e_pod},
    {"tpu-v5e", 0, HOST_CHIPS, 8, cloud_v5e_pod},
    {"tpu-v5e", 0, CHIP_LINKS, 4, cloud_v5e_pod},
    {"tpu-v5e", 0, LINKS_RATE, 200 * giga, cloud_v5e},
    {"tpu-v5e", 0, DCN_RATE, 3125000000, cloud_v5e_dcn},
    {"tpu-v5e", 256, SLICE_BISECTION, 1600 * giga, cloud_v5e_pod},
    {"tpu-v5p", 0, POD_CHIPS, 8960, specs},
    {"tpu-v5p", 0, HOST_CHIPS, 4, specs},
    {"tpu-v5p", 0, CHIP_LINKS, 6, specs},
    {"tpu-v5p", 0, LINK_RATE, 90 * giga, specs},
    {"tpu-v5p", 0, LINKS_RATE, 600 * giga, cloud_v5p},
    {"tpu-v5p", 0, DCN_RATE, 6250000000, cloud_v5p_dcn},
    {"tpu-v6e", 0, POD_CHIPS, 256, cloud_v6e_pod},
    {"tpu-v6e", 0, HOST_CHIPS, 8, cloud_v6e_pod},
    {"tpu-v6e", 0, CHIP_LINKS, 4, cloud_v6e_pod},
    {"tpu-v6e", 0, LINKS_RATE, 400 * giga, cloud_v6e},
    {"tpu-v6e", 256, SLICE_BISECTION, 3200 * giga, cloud_v6e_pod},
    {"tpu-7x", 0, POD_CHIPS, 9216, cloud_7x},
    {"tpu-7x", 0, HOST_CHIPS, 4, "Cloud TPU documentation, TPU7x: VMs of four chips"},
    {"tpu-7x", 0, LINKS_RATE, 600 * giga, "Cloud TPU documentation, TPU7x: 1,200 GB/s, both ways"},
    {"tpu-7x", 0, DCN_RATE, 12500000000, "Cloud TPU documentation, TPU7x: 100 Gb/s"},
};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

/* A GPU's node as it is sold, or a slice; with the figure's units. */
static bool is_about(const struct figure *figure, const struct machine *machine)
{
    const struct chip *chip = &machine->chip;
    if (!name_same(figure->chip, chip->name)) return false;
    if (chip->kind == CHIP_GPU) {
        uint32_t const gpus = machine->shape[0];
        return gpus == chip->network.node_chips &&
               (figure->units == 0 || figure->units == machine->chip_count / gpus);
    }
    for (uint32_t axis = 0; axis < chip->pod.axis_count && figure->units != 0; axis++)
        if (machine->shape[axis] != chip->pod.shape[axis]) return false;
    return true;
}

/* Of a tier of the network that a machine may not have. */
static struct tier_totals network_tier(const struct machine *machine, const char *name)
{
    struct tier_totals totals = {0};
    uint32_t const level = machine->level_count - 1;
    for (uint32_t tier = 0; tier < machine->level[level].tier_count; tier++)
        if (name_same(machine->level[level].tier[tier].name, name))
            totals_of_tier(machine, level, tier, &totals);
    return totals;
}

static uint64_t product(const uint32_t *length, uint32_t count)
{
    uint64_t all = 1;
    for (uint32_t i = 0; i < count; i++) all *= length[i];
    return all;
}

static uint64_t here_gpu(const struct machine *machine, enum quantity quantity)
{
    struct tier_totals node;
    totals_of_tier(machine, 0, 0, &node);
    if (quantity == NVSWITCHES) return machine->level[0].tier[0].switch_count;
    if (quantity == NVSWITCH_RATE) return node.switch_bytes_per_s / node.unit_count;
    if (quantity == NODE_RATE) return node.unit_bytes_per_s;
    if (quantity == LEAVES) return network_tier(machine, "leaf").switch_count;
    if (quantity == SPINES) return network_tier(machine, "spine").switch_count;
    if (quantity == CORES) return network_tier(machine, "core").switch_count;
    if (quantity == LEAF_CABLES) return network_tier(machine, "leaf").cable_count;
    if (quantity == SPINE_CABLES) return network_tier(machine, "spine").cable_count;
    if (quantity == CORE_CABLES) return network_tier(machine, "core").cable_count;
    SIM_ASSERT(quantity == SPINE_RATE);
    return network_tier(machine, "spine").cable_bytes_per_s;
}

static uint64_t here(const struct machine *machine, enum quantity quantity)
{
    const struct chip *chip = &machine->chip;
    struct machine_totals all;
    totals_of_machine(machine, &all);
    switch (quantity) {
    case GPU_EGRESS:
        return all.chip_egress_bytes_per_s;
    case NODE_EGRESS:
        return all.unit_egress_bytes_per_s;
    case GPUS:
        return machine->chip_count;
    case SWITCHES:
        return all.switch_count;
    case BISECTION:
        return all.bisection_bytes_per_s;
    case POD_CHIPS:
        return product(chip->pod.shape, chip->pod.axis_count);
    case HOST_CHIPS:
        return product(chip->pod.host_shape, chip->pod.axis_count);
    case CHIP_LINKS:
        return 2 * (uint64_t)chip->pod.axis_count;
    case LINK_RATE:
        return chip->ici_bytes_per_s;
    case LINKS_RATE:
        return 2 * chip->pod.axis_count * chip->ici_bytes_per_s;
    case DCN_RATE:
        return chip->dcn_bytes_per_s;
    case SLICE_BISECTION:
        return all.slice_bisection_bytes_per_s;
    case NVSWITCHES:
    case NVSWITCH_RATE:
    case NODE_RATE:
    case LEAVES:
    case SPINES:
    case CORES:
    case LEAF_CABLES:
    case SPINE_CABLES:
    case CORE_CABLES:
    case SPINE_RATE:
    case QUANTITY_COUNT:
        break;
    }
    return here_gpu(machine, quantity);
}

bool published_next(const struct machine *machine, uint32_t *index, struct published *ret)
{
    for (; *index < FIGURE_COUNT; ++*index) {
        const struct figure *figure = &figures[*index];
        if (!is_about(figure, machine)) continue;
        *ret = (struct published){
            .name = quantities[figure->quantity].name,
            .rate = quantities[figure->quantity].rate,
            .published = figure->value,
            .here = here(machine, figure->quantity),
            .source = figure->source,
        };
        if (ret->published == 0 && ret->here == 0) continue; /* No cores, as there should be. */
        ++*index;
        return true;
    }
    return false;
}
