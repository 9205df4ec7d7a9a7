/* What lies in the memory of a chip's host asks of the link to it: see lower_offload.c. */
#include "tests/oracle/counts_parts.h"

/* Of what ranks split, the part of the last layer: of one with experts, with these. */
static double last_share(const struct variables *x, uint32_t shards, uint32_t of_experts)
{
    bool const sparse = x->sparse > 0;
    double const own = (sparse ? x->sparse_elements : x->layer_elements) / shards +
                       (sparse ? x->expert_elements / of_experts : 0);
    double const all =
        x->step_elements / shards + (sparse ? x->sparse * x->expert_elements / of_experts : 0);
    return all > 0 ? own / all : 1;
}

/* What the last layer saves: what a model of this layer alone would. */
static double last_kept(const struct variables *x)
{
    struct variables last = *x;
    struct workload_counts counts = {0};
    last.layers = 1;
    last.sparse = x->sparse > 0;
    last.dense = !(x->sparse > 0);
    oracle_latent(&last, &counts);
    oracle_experts(&last, &counts);
    return counts.memory.activation_bytes + oracle_saved_bytes(&last);
}

/* What is kept in the host's memory goes there and comes back once a step, or a microbatch. */
void oracle_offload(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    bool const llama = ranks_is_decoder(ranks);
    uint64_t const layers = plan->model.layers;
    if (ranks_offloads_optimizer(ranks)) {
        const struct replicas *dense = &ranks->replicas, *experts = &ranks->experts.replicas;
        counts->host.moment_bytes = counts->memory.optimizer_bytes;
        counts->host_copy_count += 2 * (layers + (llama ? UINT64_C(2) - ranks->tie.here : 0));
        counts->memory.optimizer_bytes *= last_share(x, dense->state_shards, experts->state_shards);
        if (plan->accumulate == 1)
            counts->memory.gradient_bytes *=
                last_share(x, dense->gradient_shards, experts->gradient_shards);
    }
    if (ranks_offloads_activations(ranks)) {
        double const kept = last_kept(x);
        counts->host.activation_bytes = x->microbatches * (counts->memory.activation_bytes - kept);
        counts->host_copy_count += 2 * plan->accumulate * (layers - 1);
        counts->memory.activation_bytes = 2 * kept;
    }
}
