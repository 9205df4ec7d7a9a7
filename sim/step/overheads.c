#include "sim/step/overheads.h"

#include "sim/base/units.h"
#include "sim/step/ranks.h"

/* Blocks of memory that no formula gives, in bytes. */
enum {
    MIB = 1 << 20,

    /* A channel's receive buffers of the three protocols: lines of 16 bytes, 8 a thread; 120
     * elements of 8 bytes a thread; each for 8 steps. */
    NCCL_LL = 8 * 512 * 8 * 16,
    NCCL_LL128 = 120 * 640 * 8 * 8,
    NCCL_SIMPLE = 4 * MIB,
    NCCL_CHANNEL = NCCL_LL + NCCL_LL128 + NCCL_SIMPLE,
    NCCL_CHANNELS_NODE = 24,
    NCCL_CHANNELS_NODES = 16,

    CUBLAS_HOPPER = 32 * MIB, /* And Blackwell; */
    CUBLAS_OLDER = 2 * 4 * MIB + MIB / 8,
    HIPBLASLT = 128 * MIB,
    ENGINE_HOPPER = 32 * MIB, /* Transformer Engine's own. */
    ENGINE_OLDER = 4 * MIB,
    NVLINK_HOPPER = 4, /* Generation. */

    CONTEXT = 481 * MIB, /* 0.47 GiB. */
};

enum workload_memory workload_memory(const struct workload_plan *plan, const struct chip *chip)
{
    bool const measured = chip->kind == CHIP_GPU && !chip->is_ideal;
    if (plan->software.memory != WORKLOAD_MEMORY_DEFAULT) return plan->software.memory;
    return measured ? WORKLOAD_MEMORY_FRAMEWORK : WORKLOAD_MEMORY_BOOK;
}

enum workload_protocols workload_protocols(const struct workload_plan *plan,
                                           const struct chip *chip)
{
    bool const has_stack = chip->kind == CHIP_GPU && chip->kernels.stack != NULL;
    if (plan->software.protocols != WORKLOAD_PROTOCOLS_DEFAULT) return plan->software.protocols;
    return has_stack ? WORKLOAD_PROTOCOLS_NCCL : WORKLOAD_PROTOCOLS_NONE;
}

enum workload_collective_cores workload_collective_cores(const struct workload_plan *plan,
                                                         const struct chip *chip)
{
    bool const conveys = workload_protocols(plan, chip) == WORKLOAD_PROTOCOLS_NCCL;
    if (plan->software.collective_cores != WORKLOAD_COLLECTIVE_CORES_DEFAULT)
        return plan->software.collective_cores;
    return conveys && chip->kernels.stack != NULL ? WORKLOAD_COLLECTIVE_CORES_NCCL
                                                  : WORKLOAD_COLLECTIVE_CORES_NONE;
}

enum shard_kernels workload_shards(const struct workload_plan *plan, const struct chip *chip)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    const struct fusion *fusion = stack == NULL ? NULL : stack->between.fusion;
    if (plan->software.shards != SHARD_KERNELS_DEFAULT) return plan->software.shards;
    return fusion == NULL || fusion->shards == SHARD_KERNELS_DEFAULT ? SHARD_KERNELS_NONE
                                                                     : fusion->shards;
}

enum product_joins workload_joins(const struct workload_plan *plan, const struct chip *chip)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    if (plan->software.joins != PRODUCT_JOINS_DEFAULT) return plan->software.joins;
    return stack == NULL || stack->between.fusion == NULL ? PRODUCT_JOINS_QKV
                                                          : stack->between.fusion->joins;
}

bool workload_clips(const struct workload_plan *plan, const struct chip *chip)
{
    bool const offloads = plan->kept.offload == WORKLOAD_OFFLOAD_OPTIMIZER ||
                          plan->kept.offload == WORKLOAD_OFFLOAD_BOTH;
    if (workload_serves(plan)) return false;
    if (plan->software.clips >= 0) return plan->software.clips == 1;
    return chip->kernels.stack != NULL && !offloads;
}

bool overheads_count(const struct ranks *ranks)
{
    return !ranks_serves(ranks) &&
           workload_memory(ranks->plan, &ranks->machine->chip) == WORKLOAD_MEMORY_FRAMEWORK;
}

bool overheads_of_fsdp(const struct ranks *ranks)
{
    return overheads_count(ranks) && ranks->shards > 1;
}

static bool of_megatron(const struct ranks *ranks)
{
    return overheads_count(ranks) && ranks->shards == 1;
}

/* Where neither a key nor a stack names a framework, the rows are FSDP2's. */
static const struct shard_copies *copies_of(const struct ranks *ranks)
{
    bool const named =
        ranks_fusion(ranks) != NULL || ranks->plan->software.shards != SHARD_KERNELS_DEFAULT;
    return shard_copies_of(named ? workload_shards(ranks->plan, &ranks->machine->chip)
                                 : SHARD_KERNELS_FSDP2);
}

bool overheads_of_wide_shards(const struct ranks *ranks)
{
    return overheads_of_fsdp(ranks) && copies_of(ranks)->wide;
}

static uint64_t master_bytes(const struct ranks *ranks, uint64_t kept, uint64_t state)
{
    uint64_t const wide = format_bytes(FORMAT_FP32, kept);
    uint64_t const narrow = format_bytes(ranks->plan->formats.weights, kept);
    if (!overheads_count(ranks) || ranks_offloads_optimizer(ranks) || narrow >= wide) return 0;
    return overheads_of_wide_shards(ranks) ? wide - narrow : format_bytes(FORMAT_FP32, state);
}

/* FSDP2 casts what it has reduced to the format of its shards, which is fp32. */
enum format overheads_gradient_format(const struct ranks *ranks)
{
    return overheads_of_fsdp(ranks) ? FORMAT_FP32 : ranks->plan->formats.main_gradients;
}

uint64_t overheads_gradient_bytes(const struct ranks *ranks, uint64_t elements)
{
    return overheads_count(ranks) ? format_bytes(overheads_gradient_format(ranks), elements) : 0;
}

uint64_t overheads_autograd_bytes(const struct ranks *ranks, uint64_t elements)
{
    return of_megatron(ranks) ? format_bytes(ranks->plan->formats.weights, elements) : 0;
}

uint64_t overheads_loss_bytes(const struct ranks *ranks, uint64_t logits)
{
    const struct loss_kernels *fused = loss_kernels_of(ranks->plan->software.loss);
    if (!overheads_count(ranks)) return 0;
    return fused == NULL ? format_bytes(FORMAT_FP32, logits) : fused->kept_bytes * logits;
}

uint64_t overheads_gathered_bytes(const struct ranks *ranks, uint64_t elements)
{
    const struct shard_copies *copies = copies_of(ranks);
    enum format const format = ranks->plan->formats.weights;
    bool const stays = copies->tensors_stay && ranks->plan->gather == WORKLOAD_GATHER_TENSOR;
    uint64_t const own = units_ceil_divide(elements, ranks->shards);
    if (!overheads_of_fsdp(ranks) || stays) return 0;
    if (copies->gathers == SHARD_ARRAY_SHARD)
        return format_bits(format) == 16 ? format_bytes(format, own) : 0;
    return copies->gathers == SHARD_ARRAY_ALL ? format_bytes(format, elements) : 0;
}

/* What a reduction reads is what it sends. */
uint64_t overheads_reduced_bytes(const struct ranks *ranks, uint64_t elements)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    enum shard_array const reduces = copies_of(ranks)->reduces;
    bool const cast = format_bits(formats->gradients) != format_bits(formats->weights);
    if (!overheads_of_fsdp(ranks) || reduces == SHARD_ARRAY_NONE) return 0;
    if (reduces == SHARD_ARRAY_CAST && !cast) return 0;
    return format_bytes(formats->gradients, elements);
}

void overheads_bucket(const struct ranks *ranks, const struct bucket_shares *shares, uint64_t times,
                      uint64_t resident[PROGRAM_MEMORY_COUNT])
{
    resident[PROGRAM_MEMORY_MASTER] += times * master_bytes(ranks, shares->kept, shares->state);
    if (of_megatron(ranks) || ranks->gradients.resident)
        resident[PROGRAM_MEMORY_MAIN_GRADIENTS] +=
            times * overheads_gradient_bytes(ranks, shares->gradients);
}

/* Half of a layer has the matrices that mix tokens, the other half all others. */
static bool half_has(const struct ranks_layer *layer, bool mixes_tokens, uint32_t place)
{
    return (layer->mixer_places >> place & 1) == mixes_tokens;
}

/* Elements of the matrices of half of a layer; of experts, which are alike, one's. */
static uint64_t half_elements(const struct ranks *ranks, const struct ranks_layer *layer,
                              bool mixes_tokens)
{
    uint64_t elements = 0;
    for (uint32_t place = 0; place < MATRICES_MAX; place++) {
        bool const of_experts = (layer->expert_places >> place & 1) != 0;
        if (half_has(layer, mixes_tokens, place))
            elements += layer->place_elements[place] / (of_experts ? ranks->experts.count : 1);
    }
    return elements;
}

static bool halves_equal(const struct ranks_layer *one, const struct ranks_layer *other,
                         bool mixes_tokens)
{
    bool equal = true;
    for (uint32_t place = 0; place < MATRICES_MAX; place++) {
        bool const has = half_has(one, mixes_tokens, place);
        uint32_t const of_experts = (one->expert_places ^ other->expert_places) >> place & 1;
        equal = equal && has == half_has(other, mixes_tokens, place);
        equal = equal && (!has || (of_experts == 0 &&
                                   one->place_elements[place] == other->place_elements[place]));
    }
    return equal;
}

/* Matrices of different sizes, of all kinds of layers that the chip has. */
static uint64_t autograd_elements(const struct ranks *ranks, const uint64_t *layers)
{
    uint64_t elements = 0;
    for (uint32_t i = 0; i < 2 * ranks->kinds.count; i++) {
        uint32_t const kind = i / 2;
        bool const mixes_tokens = i % 2 == 0;
        bool met = layers[kind] == 0;
        for (uint32_t before = 0; before < kind; before++)
            met = met || (layers[before] != 0 &&
                          halves_equal(&ranks->layer[before], &ranks->layer[kind], mixes_tokens));
        if (!met) elements += half_elements(ranks, &ranks->layer[kind], mixes_tokens);
    }
    return elements;
}

static uint64_t communicator_bytes(const struct machine *machine, const struct group *group)
{
    bool across = false;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        across = across || machine->axis_level[group->dimension[d].axis] != 0;
    uint64_t const channels = across ? NCCL_CHANNELS_NODES : NCCL_CHANNELS_NODE;
    return group->dimension_count == 0 ? 0 : channels * NCCL_CHANNEL;
}

/* An axis of its own is no second communicator of the group that it alone makes up. */
static uint64_t nccl_bytes(const struct ranks *ranks)
{
    static const enum mesh_role roles[] = {MESH_TP, MESH_CP, MESH_EP, MESH_FSDP, MESH_PP};
    const struct mesh_axis *axis = ranks->mesh->axis;
    const struct group *replicas = &ranks->replicas.group;
    const struct group *experts = &ranks->experts.replicas.group;
    bool alone = true;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        bytes += communicator_bytes(ranks->machine, &axis[roles[i]].group);
        alone = alone && !group_equal(replicas, &axis[roles[i]].group);
    }
    if (alone) bytes += communicator_bytes(ranks->machine, replicas);
    if (ranks->experts.replicas.count > 1 && !group_equal(experts, replicas))
        bytes += communicator_bytes(ranks->machine, experts);
    return bytes;
}

static uint64_t workspace_bytes(const struct chip *chip)
{
    bool const hopper = chip->network.nvlink_generation >= NVLINK_HOPPER;
    if (chip->network.maker == CHIP_AMD) return HIPBLASLT + ENGINE_HOPPER;
    return hopper ? CUBLAS_HOPPER + ENGINE_HOPPER : CUBLAS_OLDER + ENGINE_OLDER;
}

void overheads_chip(const struct ranks *ranks, const uint64_t *layers,
                    uint64_t resident[PROGRAM_MEMORY_COUNT])
{
    if (!overheads_count(ranks)) return;
    resident[PROGRAM_MEMORY_AUTOGRAD] +=
        overheads_autograd_bytes(ranks, autograd_elements(ranks, layers));
    resident[PROGRAM_MEMORY_NCCL] += nccl_bytes(ranks);
    resident[PROGRAM_MEMORY_CUBLAS] += workspace_bytes(&ranks->machine->chip);
    resident[PROGRAM_MEMORY_CONTEXT] += CONTEXT;
}
