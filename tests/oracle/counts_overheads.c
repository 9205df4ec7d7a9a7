/* What frameworks hold on top of what the book counts: overheads.h, by formulas. */
#include "sim/step/overheads.h"
#include "tests/oracle/counts_parts.h"

enum { FP32 = 4 };

/* Whether frameworks keep masks of dropout for the backward pass. */
static bool keeps_masks(const struct ranks *ranks)
{
    enum graph_remat const remat = ranks->plan->remat;
    return (remat == GRAPH_REMAT_NONE || remat == GRAPH_REMAT_NORMS) &&
           !ranks_offloads_activations(ranks);
}

/* The same of what activation functions give. */
static bool keeps_outputs(const struct ranks *ranks)
{
    return ranks->plan->remat == GRAPH_REMAT_NONE && keeps_masks(ranks);
}

static uint64_t mask_bytes(const struct ranks *ranks)
{
    return ranks->plan->attention.kernel == WORKLOAD_KERNEL_DROPOUT ? ranks_block_shard(ranks) : 0;
}

void oracle_overheads_saved(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    double const product = x->mlp.tmp / (1 + x->mlp.gated) * x->bytes.m;
    if (!overheads_count(ranks) || !ranks_is_decoder(ranks)) return;
    if (keeps_outputs(ranks))
        counts->memory.activation_bytes +=
            x->dense * product + oracle_experts_products(x) * x->bytes.m;
    if (keeps_masks(ranks))
        counts->memory.activation_bytes += (x->layers + x->dense) * (double)mask_bytes(ranks);
}

void oracle_overheads(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    uint64_t layers[LAYER_KINDS_MAX] = {0};
    uint64_t resident[PROGRAM_MEMORY_COUNT] = {0};
    if (!overheads_count(ranks)) return;
    double const kept =
        oracle_share(x, ranks->shards, false) + oracle_share(x, ranks->shards, true);
    double gradients = oracle_share(x, ranks->replicas.gradient_shards, false);
    if (x->sparse > 0) gradients += oracle_share(x, ranks->experts.replicas.gradient_shards, true);
    counts->memory.gradient_bytes =
        ranks->model_replicas * gradients * format_bits(overheads_gradient_format(ranks)) / 8;
    bool const wide = x->bytes.w >= FP32 || ranks_offloads_optimizer(ranks);
    if (!wide)
        counts->memory.master_bytes = overheads_of_fsdp(ranks)
                                          ? ranks->model_replicas * kept * (FP32 - x->bytes.w)
                                          : oracle_state_elements(x) * FP32;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
        layers[kind] = ranks_layer_count(ranks, kind);
    overheads_chip(ranks, layers, resident);
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
        counts->held_anyway.fixed_bytes += (double)resident[kind];
}
