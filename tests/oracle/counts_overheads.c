/* What frameworks hold on top of what the book counts: overheads.h, by formulas. */
#include "sim/step/overheads.h"
#include "tests/oracle/counts_parts.h"

enum { FP32 = 4 };

/* Whether frameworks keep masks of dropout for the backward pass. */
static bool keeps_masks(const struct local *local)
{
    enum workload_remat const remat = local->plan->remat;
    return (remat == WORKLOAD_REMAT_NONE || remat == WORKLOAD_REMAT_NORMS) &&
           !local_offloads_activations(local);
}

/* The same of what activation functions give. */
static bool keeps_outputs(const struct local *local)
{
    return local->plan->remat == WORKLOAD_REMAT_NONE && keeps_masks(local);
}

static uint64_t mask_bytes(const struct local *local)
{
    return local->plan->attention_kernel == WORKLOAD_KERNEL_DROPOUT ? local->block_shard : 0;
}

void oracle_overheads_saved(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    double const product = x->tmp / (1 + x->gated) * x->m;
    if (!overheads_count(local) || !local_is_llama(local)) return;
    if (keeps_outputs(local))
        counts->activation_bytes += x->dense * product + oracle_experts_products(x) * x->m;
    if (keeps_masks(local))
        counts->activation_bytes += (x->layers + x->dense) * (double)mask_bytes(local);
}

void oracle_overheads(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    uint64_t const layers[LOCAL_KINDS] = {local_layer_count(local, LOCAL_DENSE),
                                          local_layer_count(local, LOCAL_EXPERTS)};
    uint64_t resident[PROGRAM_MEMORY_COUNT] = {0};
    if (!overheads_count(local)) return;
    double const kept =
        oracle_share(x, local->shards, false) + oracle_share(x, local->shards, true);
    double gradients = oracle_share(x, local->gradient_shards, false);
    if (x->sparse > 0) gradients += oracle_share(x, local->experts.gradient_shards, true);
    counts->gradient_bytes =
        local->copies * gradients * format_bits(overheads_gradient_format(local)) / 8;
    bool const wide = x->w >= FP32 || local_offloads_optimizer(local);
    if (!wide)
        counts->master_bytes = overheads_of_fsdp(local) ? local->copies * kept * (FP32 - x->w)
                                                        : oracle_state_elements(x) * FP32;
    overheads_chip(local, layers, resident);
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
        counts->fixed_bytes += (double)resident[kind];
}
