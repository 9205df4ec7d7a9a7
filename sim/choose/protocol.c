#include "sim/choose/protocol.h"

#include <stddef.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/choose/channels.h"
#include "sim/collective/algorithm.h"

/* Rows and columns of NCCL's tables. */
enum measure_row { ROW_TREE, ROW_RING, ROW_NVLS, ROW_COUNT };
enum { LL, LL128, SIMPLE, CLASS_COUNT };
enum { MESSAGE_LL_BYTES = 16384 };          /* Of a message from rank to rank, at most. */
enum { NVLINK_FIRST = 2, GENERATIONS = 4 }; /* Volta, Ampere, Hopper, Blackwell. */
enum { CORRECTIONS = 23 };
enum { PAT_BASE_NS = 8000, PAT_RANK_NS = 2800 };
enum { PLATEAU_CHANNELS = 16, PLATEAU_BYTES = 64 };

static const int64_t ps_per_ns = 1000;

/* Nanoseconds. */
static const int64_t base_ns[ROW_COUNT][CLASS_COUNT] = {
    [ROW_TREE] = {6800, 14000, 8400},
    [ROW_RING] = {6600, 14000, 8400},
    [ROW_NVLS] = {0, 0, 0},
};
static const int64_t nvlink_ns[ROW_COUNT][CLASS_COUNT] = {
    [ROW_TREE] = {600, 1250, 4000},
    [ROW_RING] = {600, 1900, 3400},
    [ROW_NVLS] = {0, 0, 25000},
};
static const int64_t network_tree_nvls_ns = 20900;
static const int64_t network_ns[ROW_COUNT][CLASS_COUNT] = {
    [ROW_TREE] = {5000, 8500, 14000},
    [ROW_RING] = {2700, 4000, 14000},
    [ROW_NVLS] = {0, 0, 18000},
};

/* Megabytes a second that LL can move: of one node by generation; of two, and of more, by the make
 * of the CPU: Intel in DGX-2, DGX H100 and B200, AMD in DGX A100. */
static const uint64_t ll_mb_per_s[GENERATIONS][3] = {
    {39000, 39000, 20400},
    {87700, 22500, 19000},
    {141000, 39000, 20400},
    {282000, 39000, 20400},
};
static const int64_t post_ns[GENERATIONS] = {1000, 2000, 1000, 1000}; /* By the same. */

/* Megabytes a second that a channel of one node copies, in LL128 and Simple: the columns of one
 * node of perChMaxRingLL128Bws and perChMaxTreeBws (NVIDIA/nccl src/graph/tuning.cc at 5067397c).
 */
static const uint64_t channel_mb_per_s[GENERATIONS][CLASS_COUNT] = {
    {0, 20000, 26500}, {0, 20000, 24000}, {0, 36700, 38700}, {0, 40000, 70000}};
enum { CHUNK_BYTES = 512 << 10 }; /* Of a message from rank to rank by NVLink. */

/* Billionths of a wire's rate. */
static const uint64_t whole = UINT64_C(1000000000);
static const uint64_t nvls_share[GENERATIONS] = {0, 0, 850000000, 740000000};
static const uint64_t tree_share = 920000000, ring_ll128_share = 920000000;

/* Times within a node as measured, in millionths of NCCL's prediction, by generation. */
static const struct chip_nccl node_ppm[GENERATIONS] = {
    {1000000, 1000000, 1000000},
    {1780000, 1060000, 1000000},
    {1230000, 1000000, 1270000},
    {1910000, 1000000, 1400000},
};

/* Tenths, for sizes of 64 B, 128 B, ... */
static const uint8_t tree_tenths[CLASS_COUNT][CORRECTIONS] = {
    {10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10},
    {10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10},
    {9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9},
};

static const char *const names[PROTOCOL_COUNT + 1] = {
#define X(name, text) text,
    PROTOCOL_TABLE(X)
#undef X
};

const char *protocol_name(enum protocol protocol)
{
    SIM_ASSERT(protocol < PROTOCOL_COUNT);
    return names[protocol];
}

enum status protocol_find(const char *name, const char *where, enum protocol *ret_protocol,
                          struct error *reterr)
{
    uint32_t const found = name_find_any_case(name, names);
    *ret_protocol = (enum protocol)found;
    if (found < PROTOCOL_COUNT) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, where, "no protocol \"%.64s\"%s", name,
                     name_offer(name, names, "; did you mean \"", "\"?", NULL).text);
}

struct protocol_use protocol_use_of(const struct machine *machine,
                                    const struct plan_request *request, struct algorithm algorithm,
                                    bool registered)
{
    return (struct protocol_use){.machine = machine,
                                 .group = &request->group,
                                 .kind = request->kind,
                                 .algorithm = algorithm,
                                 .array_bytes = request->size_bytes,
                                 .registered = registered,
                                 .stands = PROTOCOL_STANDS_ALONE};
}

static bool is_nvlink(const struct machine *machine, uint32_t level)
{
    return machine->chip.kind == CHIP_GPU && level == 0;
}

void protocol_extent(const struct machine *machine, const struct group *group,
                     uint64_t *ret_node_count, uint64_t *ret_rank_count)
{
    *ret_node_count = 1;
    *ret_rank_count = group_rank_count(group);
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        if (dimension->switched && !is_nvlink(machine, machine->axis_level[dimension->axis]))
            *ret_node_count *= dimension->size;
    }
}

static enum measure_row row_of(const struct protocol_use *use)
{
    if (use->stands == PROTOCOL_STANDS_FOR_TREE) return ROW_TREE;
    if (use->stands != PROTOCOL_STANDS_ALONE) return ROW_RING;
    enum nccl_algorithm const like = primitive_family_nccl(algorithm_family(&use->algorithm));
    if (like == NCCL_NVLS) return ROW_NVLS;
    return like == NCCL_TREE && use->kind == COLLECTIVE_ALL_REDUCE ? ROW_TREE : ROW_RING;
}

static uint32_t generation_of(const struct machine *machine)
{
    uint32_t const generation = machine->chip.network.nvlink_generation;
    uint32_t const index = generation < NVLINK_FIRST ? 0 : generation - NVLINK_FIRST;
    return index < GENERATIONS ? index : GENERATIONS - 1;
}

/* The chip's own factors, where a stack has some. */
struct chip_nccl protocol_node_factors(const struct machine *machine)
{
    const struct chip_nccl *own = &machine->chip.kernels.nccl;
    struct chip_nccl factors = node_ppm[generation_of(machine)];
    if (own->latency_ppm != 0) factors.latency_ppm = own->latency_ppm;
    if (own->byte_ppm != 0) factors.byte_ppm = own->byte_ppm;
    if (own->nvls_ppm != 0) factors.nvls_ppm = own->nvls_ppm;
    return factors;
}

const char *protocol_refusal(const struct protocol_use *use, enum protocol protocol)
{
    if (protocol == PROTOCOL_NONE) return NULL;
    if (use->stands == PROTOCOL_STANDS_FOR_PAT && protocol != PROTOCOL_SIMPLE)
        return "is not what PAT is driven with; Simple is";
    if (use->machine->chip.kind != CHIP_GPU) return "is NCCL's, and these chips are no GPUs";
    if (row_of(use) != ROW_NVLS) return NULL;
    if (protocol != PROTOCOL_SIMPLE)
        return "is not what switches that add are driven with; Simple is";
    if (nvls_share[generation_of(use->machine)] == 0)
        return "has no constants for switches that add before Hopper";
    if (group_rank_count(use->group) <= 2)
        return "is not driven with switches that add for two GPUs; NCCL takes a ring";
    return NULL;
}

bool protocol_contends(const struct protocol_use *use)
{
    uint64_t nodes, ranks;
    protocol_extent(use->machine, use->group, &nodes, &ranks);
    if (row_of(use) == ROW_NVLS) return nodes == 1 || use->kind == COLLECTIVE_ALL_REDUCE;
    return row_of(use) != ROW_TREE || nodes > 1;
}

static bool is_half(enum collective_kind kind)
{
    return kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_REDUCE_SCATTER;
}

bool protocol_stands(const struct protocol_use *use)
{
    uint64_t nodes, ranks;
    protocol_extent(use->machine, use->group, &nodes, &ranks);
    if (nodes == 1) return false;
    switch (use->stands) {
    case PROTOCOL_STANDS_FOR_RING:
        return is_half(use->kind) || use->kind == COLLECTIVE_ALL_REDUCE;
    case PROTOCOL_STANDS_FOR_TREE:
        return use->kind == COLLECTIVE_ALL_REDUCE;
    case PROTOCOL_STANDS_FOR_PAT:
        return is_half(use->kind) && nodes == ranks;
    case PROTOCOL_STANDS_ALONE:
    case PROTOCOL_STANDS:
        return false;
    }
    return false;
}

bool protocol_is_taken(const struct protocol_use *use, enum protocol protocol)
{
    if (use->kind == COLLECTIVE_ALL_TO_ALL) return protocol != PROTOCOL_LL128;
    if (use->kind != COLLECTIVE_PERMUTE) return true;
    return protocol == (use->array_bytes <= MESSAGE_LL_BYTES ? PROTOCOL_LL : PROTOCOL_SIMPLE);
}

/* From one member to the farthest through a level, as the machine has it. */
static int64_t path_ps(const struct machine *machine, const struct group *group, uint32_t index)
{
    const struct level *level = &machine->level[index];
    uint32_t const from[MACHINE_AXES_MAX] = {0};
    uint32_t to[MACHINE_AXES_MAX] = {0};
    bool spans = false;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        if (machine->axis_level[dimension->axis] != index) continue;
        to[dimension->axis] = (dimension->size - 1) * dimension->stride;
        spans = true;
    }
    return spans ? level_way_ps(level, level_meeting_tier(level, from, to)) : 0;
}

/* NCCL counts whole MB/s. */
uint64_t protocol_level_mb_per_s(const struct machine *machine, uint32_t level)
{
    if (level >= machine->level_count) return 0;
    return level_bundle_bytes_per_s(&machine->level[level].tier[0]) / 1000000;
}

/* What NCCL calls the bandwidth of a ring: a GPU's NVLink, or all NICs of a node's members. */
static uint64_t ring_mb_per_s(const struct machine *machine, uint64_t nodes, uint64_t ranks)
{
    for (uint32_t i = 0; i < machine->level_count; i++) {
        if (is_nvlink(machine, i) != (nodes == 1)) continue;
        uint64_t const own = protocol_level_mb_per_s(machine, i);
        return nodes == 1 ? own : own * (ranks / nodes);
    }
    return 0;
}

/* The slower of NVLink and NICs where a ring goes over both. */
static uint64_t ring_pace_mb_per_s(const struct machine *machine, uint64_t nodes, uint64_t ranks)
{
    uint64_t const wire = ring_mb_per_s(machine, nodes, ranks);
    uint64_t const near = ranks > nodes ? ring_mb_per_s(machine, 1, ranks) : 0;
    return near != 0 && near < wire ? near : wire;
}

static uint32_t log2_floor(uint64_t value)
{
    uint32_t log = 0;
    while (value > 1) {
        value /= 2;
        log++;
    }
    return log;
}

/* The share of the wire's rate that NCCL reckons payload to get, in billionths. */
static uint64_t reckoned_share(const struct protocol_use *use, uint32_t class, uint64_t nodes,
                               uint64_t ranks)
{
    uint32_t const generation = generation_of(use->machine);
    uint64_t const wire = ring_mb_per_s(use->machine, nodes, ranks);
    uint64_t const ll = ll_mb_per_s[generation][nodes <= 2 ? nodes - 1 : 2];
    uint64_t const ll_share = wire > ll ? ll * whole / wire : whole;
    uint64_t share = whole;
    switch (row_of(use)) {
    case ROW_NVLS:
        return nvls_share[generation];
    case ROW_RING:
        if (class == LL) share = ll_share < whole / 2 ? ll_share : whole / 2;
        if (class == LL128) share = ring_ll128_share;
        if (use->stands == PROTOCOL_STANDS_FOR_PAT) share = whole * 3 / 4;
        break;
    case ROW_TREE:
        share = tree_share;
        if (class == LL) share = share * 10 / 38;
        if (class == LL && ll_share < share) share = ll_share;
        if (class == LL128) share = nodes == 1 ? share * 7 / 9 : share * 120 / 128;
        if (use->array_bytes >= 64 && log2_floor(use->array_bytes / 64) < CORRECTIONS)
            share = share * tree_tenths[class][log2_floor(use->array_bytes / 64)] / 10;
        break;
    case ROW_COUNT:
        SIM_ASSERT(false);
    }
    return share;
}

/* Whether kernels write to the arrays of others themselves. NCCL registers arrays of a graph. */
static bool is_direct(const struct protocol_use *use)
{
    return use->registered || use->machine->chip.launch.by == CHIP_LAUNCHES_GRAPH;
}

/* Whether NCCL sends the array around rings. */
static bool is_ring(const struct protocol_use *use)
{
    bool const rings = primitive_family_nccl(algorithm_family(&use->algorithm)) == NCCL_RING ||
                       use->stands == PROTOCOL_STANDS_FOR_RING;
    return rings && (is_half(use->kind) || use->kind == COLLECTIVE_ALL_REDUCE);
}

/* A channel of a ring takes a step more than it sends, in which it copies or adds what came last:
 * the time of all steps over the time of those that send, in billionths. */
static uint64_t ring_copies(const struct protocol_use *use, uint32_t class, uint64_t nodes,
                            uint64_t ranks)
{
    bool const skips = class == SIMPLE && use->kind != COLLECTIVE_REDUCE_SCATTER && is_direct(use);
    if (!is_ring(use) || (skips && nodes == 1) || class == LL || ranks < 2) return whole;
    uint64_t const steps = (use->kind == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (ranks - 1);
    uint64_t const wire = ring_pace_mb_per_s(use->machine, nodes, ranks) /
                          channels_of(use, class == SIMPLE ? PROTOCOL_SIMPLE : PROTOCOL_LL128);
    uint64_t const rate = channel_mb_per_s[generation_of(use->machine)][class];
    return whole + (wire < rate ? wire : rate) * whole / (rate * steps);
}

/* A receiver copies a chunk of a message once it has come whole, with half of a channel's threads:
 * the last one after the wire has carried everything. */
static int64_t last_chunk_ns(const struct protocol_use *use, uint32_t class, uint64_t nodes,
                             uint64_t ranks)
{
    bool const all = use->kind == COLLECTIVE_ALL_TO_ALL;
    if ((!all && use->kind != COLLECTIVE_PERMUTE) || class != SIMPLE || nodes > 1 || is_direct(use))
        return 0;
    uint64_t const message = all ? use->array_bytes / (ranks * ranks) : use->array_bytes;
    uint64_t const part = message / channels_of_peer(use, message);
    uint64_t const chunk = part < CHUNK_BYTES ? part : CHUNK_BYTES;
    return (int64_t)(chunk * 2000 / channel_mb_per_s[generation_of(use->machine)][SIMPLE]);
}

/* Whether the plan exchanges directly between nodes what NCCL sends along trees. */
static bool trees_are_exchanged(const struct protocol_use *use)
{
    enum nccl_algorithm const like = primitive_family_nccl(algorithm_family(&use->algorithm));
    return use->stands == PROTOCOL_STANDS_FOR_TREE ||
           (like == NCCL_NVLS && use->kind == COLLECTIVE_ALL_REDUCE);
}

/* The share that payload gets of a NIC, in billionths. NVLink's inefficiency is none of the NICs:
 * NCCL takes the slower of both. An inner node of a tree sends and gets an array twice, where an
 * exchange of M nodes sends it 2 (M-1)/M times; two nodes exchange halves in either. A ring through
 * N ranks leaves a node with (N-1)/N of what it gathers, a plan level by level sends (M-1)/M. */
static uint64_t far_share_of(const struct protocol_use *use, uint32_t class, uint64_t nodes,
                             uint64_t ranks)
{
    uint64_t share = row_of(use) == ROW_NVLS ? whole
                                             : reckoned_share(use, class, nodes, ranks) * whole /
                                                   ring_copies(use, class, nodes, ranks);
    if (nodes > 2 && trees_are_exchanged(use)) share = share * (nodes - 1) / nodes;
    bool const by_level = use->stands != PROTOCOL_STANDS_ALONE || !use->algorithm.flat;
    if (nodes > 1 && by_level && is_ring(use))
        share = share * (nodes - 1) / nodes * ranks / (ranks - 1);
    return share;
}

/* The share that payload gets of NVLink, in billionths. No factor sends faster than the wire. */
static uint64_t near_share_of(const struct protocol_use *use, uint32_t class, uint64_t nodes,
                              uint64_t ranks)
{
    uint64_t const share = reckoned_share(use, class, nodes, ranks);
    struct chip_nccl const factors = protocol_node_factors(use->machine);
    if (class == LL) return share;
    uint64_t const made = row_of(use) == ROW_NVLS ? share * PPM_ONE / factors.nvls_ppm
                                                  : share * PPM_ONE / factors.byte_ppm * whole /
                                                        ring_copies(use, class, nodes, ranks);
    return made < whole ? made : whole;
}

/* Rings across nodes that send whole buffers are slower once these are filled; in millionths. */
static int64_t plateau_ppm(const struct protocol_use *use, uint32_t class, uint64_t nodes,
                           uint64_t ranks)
{
    bool const holds = row_of(use) == ROW_RING && class == SIMPLE && nodes > 1 &&
                       use->kind == COLLECTIVE_ALL_REDUCE &&
                       use->array_bytes / (PLATEAU_CHANNELS * ranks) >= PLATEAU_BYTES;
    if (!holds) return PPM_ONE;
    return generation_of(use->machine) == 0 ? 1900000 : 1400000;
}

/* Latencies of a node in millionths of NCCL's: as measured, where kernels are launched singly. The
 * plateau and what is measured are both beyond the same table, and the larger one holds. */
static int64_t node_latency_ppm(const struct protocol_use *use, int64_t plateau)
{
    if (use->machine->chip.launch.by == CHIP_LAUNCHES_GRAPH) return plateau;
    int64_t const measured = protocol_node_factors(use->machine).latency_ppm;
    return plateau > PPM_ONE && plateau > measured ? plateau : measured;
}

/* Latencies of a collective, NCCL's and the machine's together. */
struct latencies {
    uint64_t nodes, ranks;
    int64_t begin_ps, near_ps, far_ps; /* To begin; of a message over NVLink, over the network. */
    int64_t plateau;                   /* Millionths. */
};

static struct latencies latencies_of(const struct protocol_use *use, uint32_t class)
{
    enum measure_row const row = row_of(use);
    struct latencies of = {.near_ps = 0};
    protocol_extent(use->machine, use->group, &of.nodes, &of.ranks);
    of.plateau = plateau_ppm(use, class, of.nodes, of.ranks);
    int64_t const near = node_latency_ppm(use, of.plateau);
    bool const rings = row == ROW_RING && of.nodes > 1;
    int64_t const post_ps = rings ? post_ns[generation_of(use->machine)] *
                                        (class == SIMPLE ? 3 : 1) * of.plateau * ps_per_ns / PPM_ONE
                                  : 0;
    enum measure_row const far = of.nodes == of.ranks && row == ROW_RING ? ROW_TREE : row;
    of.begin_ps = base_ns[row][class] * near * ps_per_ns / PPM_ONE;
    of.far_ps = network_ns[far][class] * of.plateau * ps_per_ns / PPM_ONE;
    if (row == ROW_NVLS) return of; /* NVLink's once for the collective. */
    of.near_ps = nvlink_ns[row][class] * near * ps_per_ns / PPM_ONE;
    if (of.near_ps < post_ps) of.near_ps = post_ps;
    return of;
}

/* What NCCL's steps in series take over nodes. */
static int64_t series_ps(const struct protocol_use *use, const struct latencies *of)
{
    int64_t const crossings = (int64_t)of->nodes - 1, doublings = log2_floor(of->nodes);
    int64_t const halves = use->kind == COLLECTIVE_ALL_REDUCE ? 2 : 1;
    if (use->stands == PROTOCOL_STANDS_FOR_PAT)
        return PAT_BASE_NS * ps_per_ns - of->begin_ps + doublings * of->far_ps * 2 / 7 +
               (int64_t)of->ranks * PAT_RANK_NS * ps_per_ns;
    switch (row_of(use)) {
    case ROW_RING:
        return halves * ((int64_t)(of->ranks - of->nodes) * of->near_ps + crossings * of->far_ps);
    case ROW_TREE:
        return 2 * ((int64_t)(of->ranks / of->nodes - 1) * of->near_ps + doublings * of->far_ps);
    case ROW_NVLS:
        return 2 * doublings * network_tree_nvls_ns * ps_per_ns;
    case ROW_COUNT:
        SIM_ASSERT(false);
    }
    return 0;
}

/* What steps take that NCCL has over nodes, and the plan has not. A tree's own messages are those
 * between nodes; in a node NCCL's trees are chains. */
static int64_t lacking_ps(const struct protocol_use *use, const struct latencies *of)
{
    bool const sums = use->kind == COLLECTIVE_ALL_REDUCE;
    enum nccl_algorithm const like = primitive_family_nccl(algorithm_family(&use->algorithm));
    bool const level_by_level = !use->algorithm.flat;
    bool const rings = like == NCCL_RING && level_by_level;
    bool const switches = like == NCCL_NVLS && sums;
    bool const trees = like == NCCL_TREE && sums && level_by_level;
    bool const stands = use->stands != PROTOCOL_STANDS_ALONE;
    if (of->nodes == 1 || (!sums && !is_half(use->kind)) ||
        (!stands && !rings && !switches && !trees))
        return 0;
    int64_t const members = (int64_t)(of->ranks / of->nodes), halves = sums ? 2 : 1;
    int64_t const near_steps = rings ? members - 1 : members > 1;
    int64_t far_steps = rings ? (int64_t)of->nodes - 1 : 1;
    if (trees && !stands) far_steps = log2_floor(of->nodes);
    int64_t const lacking =
        series_ps(use, of) - halves * (near_steps * of->near_ps + far_steps * of->far_ps);
    return lacking > 0 ? lacking : 0;
}

/* Bytes on the wire for a million of payload, of a share in billionths. */
static uint32_t wire_ppm_of(uint64_t share)
{
    return (uint32_t)((PPM_ONE * whole + share / 2) / share);
}

enum status protocol_make(const struct protocol_use *use, enum protocol protocol, const char *where,
                          struct plan_protocol *ret_protocol, struct error *reterr)
{
    *ret_protocol = (struct plan_protocol){.name = NULL};
    const char *refusal = protocol_refusal(use, protocol);
    if (refusal != NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, where, "%s %s", names[protocol], refusal);
    if (protocol == PROTOCOL_NONE || use->group->dimension_count == 0) return STATUS_OK;
    const struct machine *machine = use->machine;
    uint32_t const class = (uint32_t)protocol - PROTOCOL_LL;
    struct latencies const of = latencies_of(use, class);
    enum measure_row const row = row_of(use);
    struct plan_protocol made = {.name = names[protocol]};
    made.begin_ps = of.begin_ps + lacking_ps(use, &of) +
                    last_chunk_ns(use, class, of.nodes, of.ranks) * ps_per_ns;
    for (uint32_t level = 0; level < machine->level_count; level++) {
        int64_t const path = path_ps(machine, use->group, level);
        int64_t const message = is_nvlink(machine, level) ? of.near_ps : of.far_ps;
        made.message_ps[1 + level] = message > path ? message - path : 0;
        if (row == ROW_NVLS && is_nvlink(machine, level))
            made.begin_ps +=
                nvlink_ns[row][class] * node_latency_ppm(use, of.plateau) * ps_per_ns / PPM_ONE -
                path;
    }
    made.wire_ppm = wire_ppm_of(near_share_of(use, class, of.nodes, of.ranks));
    if (of.nodes > 1) made.far_ppm = wire_ppm_of(far_share_of(use, class, of.nodes, of.ranks));
    if (of.nodes > 1 && of.nodes == of.ranks) made.wire_ppm = made.far_ppm;
    if (made.far_ppm == made.wire_ppm) made.far_ppm = 0;
    *ret_protocol = made;
    return STATUS_OK;
}
