/* What lies in the memory of a chip's host asks of the link to it: see lower_offload.c. */
#include "tests/oracle/counts_parts.h"

/* What is kept in the host's memory goes there and comes back once a step, or a microbatch. */
void oracle_offload(const struct variables *x, struct workload_counts *counts)
{
    const struct ranks *ranks = x->ranks;
    const struct workload_plan *plan = ranks->plan;
    bool const llama = ranks_is_decoder(ranks);
    uint64_t const layers = plan->model.layers;
    if (ranks_offloads_optimizer(ranks)) {
        double const share = x->layer_elements / (x->step_elements > 0 ? x->step_elements : 1);
        counts->host.moment_bytes = counts->memory.optimizer_bytes;
        counts->host_copy_count += 2 * (layers + (llama ? UINT64_C(2) - ranks->tie.here : 0));
        counts->memory.optimizer_bytes *= share;
        if (plan->accumulate == 1) counts->memory.gradient_bytes *= share;
    }
    if (ranks_offloads_activations(ranks)) {
        double const moved = counts->memory.activation_bytes / x->layers * (x->layers - 1);
        counts->host.activation_bytes = x->microbatches * moved;
        counts->host_copy_count += 2 * plan->accumulate * (layers - 1);
        counts->memory.activation_bytes *= 2 / x->layers;
    }
}
