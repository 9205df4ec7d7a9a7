/* What lies in the memory of a chip's host asks of the link to it: see lower_offload.c. */
#include "sim/step/counts_parts.h"

/* What is kept in the host's memory goes there and comes back once a step, or a microbatch. */
void counts_offload(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    bool const llama = local_is_llama(local);
    uint64_t const layers = plan->model.layers;
    if (local_offloads_optimizer(local)) {
        double const share = x->layer_elements / (x->step_elements > 0 ? x->step_elements : 1);
        counts->host_moment_bytes = counts->optimizer_bytes;
        counts->host_count += 2 * (layers + (llama ? UINT64_C(2) - local->tied : 0));
        counts->optimizer_bytes *= share;
        if (plan->accumulate == 1) counts->gradient_bytes *= share;
    }
    if (local_offloads_activations(local)) {
        double const moved = counts->activation_bytes / x->layers * (x->layers - 1);
        counts->host_activation_bytes = x->microbatches * moved;
        counts->host_count += 2 * plan->accumulate * (layers - 1);
        counts->activation_bytes *= 2 / x->layers;
    }
}
