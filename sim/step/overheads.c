#include "sim/step/overheads.h"

#include <stddef.h>

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

static const struct overhead table[] = {
    {PROGRAM_MEMORY_MASTER, "master weights",
     "4 bytes of each weight whose optimizer state lies here, with weights in a narrower format; "
     "FSDP keeps one copy: 4 bytes less the bytes of the format, of each weight of the shard",
     "Megatron-LM docs/source/api-guide/dist_optimizer.md at 50b073cc (6 + 12/d bytes); PyTorch "
     "torch/distributed/fsdp/_fully_shard/_fsdp_param.py (the sharded parameter keeps its format, "
     "param_dtype is the format of the gather)",
     false},
    {PROGRAM_MEMORY_MAIN_GRADIENTS, "main gradients",
     "4 bytes of each weight whose gradient is kept here, in place of the book's gradients, or 2 "
     "where `main_gradients` is bf16 or fp16; in Megatron-LM one buffer from the first step on, in "
     "FSDP always fp32, from the reduction to the update",
     "Megatron-LM docs/source/api-guide/dist_optimizer.md at 50b073cc; "
     "megatron/core/distributed/distributed_data_parallel.py (grad_reduce_in_fp32: fp32, otherwise "
     "the parameter's format); PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py "
     "(foreach_reduce ends in orig_dtype)",
     false},
    {PROGRAM_MEMORY_ACTIVATED, "activation outputs",
     "the output of SwiGLU or GELU, which the next matmul keeps in addition to the function's "
     "input; with remat, `norms` too, only until the matmul has read it",
     "Megatron-LM megatron/core/fusions/fused_bias_swiglu.py at 00caa53a (the function saves its "
     "input alone, and the next linear layer saves its own input); Korthikanti et al., arXiv "
     "2205.05198, 4.1; DeepSeek-V3, arXiv 2412.19437, 3.3.3 (`norms`)",
     false},
    {PROGRAM_MEMORY_MASKS, "dropout masks",
     "1 byte an element of the outputs of attention and MLP, where `attention_kernel` drops out",
     "Korthikanti et al., arXiv 2205.05198, 4.1", false},
    {PROGRAM_MEMORY_LOSS, "logits in fp32",
     "from the loss to the start of the backward pass, with the logits: 4 bytes a logit, which "
     "become the softmax in place (PyTorch's own cross entropy, neither fused nor compiled, keeps "
     "a "
     "second array; Transformer Engine's has none)",
     "Megatron-LM megatron/core/tensor_parallel/cross_entropy.py at 00611e6e", false},
    {PROGRAM_MEMORY_AUTOGRAD, "autograd gradients",
     "Megatron-LM: one gradient for each shape of a layer's matrices, in the weights' format, "
     "which "
     "autograd allocates although matmuls add to the main gradients; also of embedding and head "
     "while their gradients are computed",
     "TransformerEngine transformer_engine/pytorch/module/base.py (get_dummy_wgrad); Megatron-LM "
     "megatron/core/tensor_parallel/layers.py (grad_added_to_main_grad)",
     false},
    {PROGRAM_MEMORY_COPIES, "FSDP copies",
     "while weights are gathered: the output of the gather, before the copy to the parameters; "
     "while gradients are reduced: the input of the reduction, in the format of `gradients` "
     "(reduce_dtype)",
     "PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py "
     "(foreach_all_gather_copy_out, "
     "foreach_reduce)",
     false},
    {PROGRAM_MEMORY_NCCL, "NCCL buffers",
     "one communicator for each axis of the mesh and each group that reduces gradients: 9.19 MiB a "
     "channel (LL 0.5, LL128 4.69, Simple 4), 24 channels in a node and 16 across nodes; rings "
     "only",
     "NVIDIA/nccl src/init.cc (DEFAULT_BUFFSIZE, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE), "
     "src/include/device.h; \"coll channels\" in its logs on nodes of 8 A100 and H100",
     true},
    {PROGRAM_MEMORY_CUBLAS, "cuBLAS workspaces",
     "PyTorch's, 32 MiB from Hopper on and 8.125 before, 128 on MI300X, and Transformer Engine's, "
     "32 MiB and 4",
     "PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize); "
     "TransformerEngine transformer_engine/pytorch/module/base.py "
     "(get_cublas_workspace_size_bytes)",
     false},
    {PROGRAM_MEMORY_CONTEXT, "CUDA context",
     "0.47 GiB: the memory that PyTorch 2.1 takes on an A100 for a first tensor, with kernels "
     "loaded "
     "when they are used",
     "stas00/ml-engineering training/performance/README.md (Preloaded CUDA kernels memory usage)",
     true},
};
_Static_assert(sizeof table / sizeof *table == PROGRAM_MEMORY_CACHE - PROGRAM_OVERHEAD_FIRST,
               "each kind has its row");

const struct overhead *overhead_of(enum program_memory memory)
{
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].memory == memory) return &table[i];
    return NULL;
}

enum workload_memory workload_memory(const struct workload_plan *plan, const struct chip *chip)
{
    bool const measured = chip->kind == CHIP_GPU && !chip->is_ideal;
    if (plan->memory != WORKLOAD_MEMORY_DEFAULT) return plan->memory;
    return measured ? WORKLOAD_MEMORY_FRAMEWORK : WORKLOAD_MEMORY_BOOK;
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

uint64_t overheads_master_bytes(const struct ranks *ranks, uint64_t kept, uint64_t state)
{
    uint64_t const wide = format_bytes(FORMAT_FP32, kept);
    uint64_t const narrow = format_bytes(ranks->plan->formats.weights, kept);
    if (!overheads_count(ranks) || ranks_offloads_optimizer(ranks) || narrow >= wide) return 0;
    return overheads_of_fsdp(ranks) ? wide - narrow : format_bytes(FORMAT_FP32, state);
}

/* FSDP2 turns what it has reduced into the format of its shards, which is fp32. */
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
    return overheads_count(ranks) ? format_bytes(FORMAT_FP32, logits) : 0;
}

uint64_t overheads_gathered_bytes(const struct ranks *ranks, uint64_t elements)
{
    return overheads_of_fsdp(ranks) ? format_bytes(ranks->plan->formats.weights, elements) : 0;
}

/* What a reduction reads is what it sends. */
uint64_t overheads_reduced_bytes(const struct ranks *ranks, uint64_t elements)
{
    enum format const format = ranks->plan->formats.gradients;
    return overheads_of_fsdp(ranks) ? format_bytes(format, elements) : 0;
}

void overheads_bucket(const struct ranks *ranks, const struct bucket *bucket, uint64_t times,
                      uint64_t resident[PROGRAM_MEMORY_COUNT])
{
    uint64_t const kept = units_ceil_divide(bucket->elements, ranks->shards);
    uint64_t const state =
        units_ceil_divide(bucket->elements, ranks_replicas(ranks, bucket->experts)->state_shards);
    uint64_t const gradients = units_ceil_divide(
        bucket->elements, ranks_replicas(ranks, bucket->experts)->gradient_shards);
    resident[PROGRAM_MEMORY_MASTER] += times * overheads_master_bytes(ranks, kept, state);
    if (of_megatron(ranks) || ranks->gradients.resident)
        resident[PROGRAM_MEMORY_MAIN_GRADIENTS] +=
            times * overheads_gradient_bytes(ranks, gradients);
}

/* Matrices of a layer; of its experts, which are alike, one's. */
static uint64_t layer_shapes(const struct ranks *ranks, uint32_t kind)
{
    const struct ranks_layer *layer = &ranks->layer[kind];
    uint64_t elements = 0;
    for (uint32_t place = 0; place < MATRICES_MAX; place++) {
        bool const of_experts = (layer->expert_places >> place & 1) != 0;
        elements += layer->place_elements[place] / (of_experts ? ranks->experts.count : 1);
    }
    return elements;
}

/* Layers of both kinds have the same attention. */
static uint64_t autograd_elements(const struct ranks *ranks, const uint64_t *layers)
{
    uint64_t elements = 0;
    bool const both = layers[LAYER_DENSE] != 0 && layers[LAYER_MOE] != 0;
    for (uint32_t kind = 0; kind < LAYER_KINDS; kind++)
        if (layers[kind] != 0) elements += layer_shapes(ranks, kind);
    const struct ranks_layer *dense = &ranks->layer[LAYER_DENSE];
    for (uint32_t place = 0; both && place < MATRICES_MAX; place++)
        if (dense->mixer_places >> place & 1) elements -= dense->place_elements[place];
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
