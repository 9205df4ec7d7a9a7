/* Weights that modules which predict further tokens gather and whose gradients they reduce, besides
 * their layers', which are counted with the model's. */
#include "sim/step/counts_parts.h"

void counts_predictors(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    uint64_t const modules = plan->accumulate * local->predictors;
    if (local->predictors == 0) return;
    if (local->shards > 1) {
        /* The projection as a layer; the embedding for each lookup. */
        struct workload_traffic *shards = &counts->role[local->shard_role];
        shards->gather_bytes +=
            (double)modules * (2 * (double)local->predictor_elements + x->vocabulary) * x->w;
        shards->gather_count += 3 * modules;
    }
    /* An embedding that both ends use is reduced by the passes of each, unless once for all. */
    bool const shared = local->pp > 1 && local->ends_meet;
    if (shared && local->shards > 1) {
        counts->role[local->shard_role].scatter_bytes += x->microbatches * x->vocabulary * x->g;
        counts->role[local->shard_role].scatter_count += plan->accumulate;
    }
    if (shared && local->replicas > 1 && !local->reduce_last) {
        counts->role[MESH_DP].scatter_bytes += x->microbatches * x->vocabulary * x->g;
        counts->role[MESH_DP].scatter_count += plan->accumulate;
    }
}
