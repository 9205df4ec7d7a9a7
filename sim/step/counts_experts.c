/* What a layer's experts ask of one chip that its graph does not know: where tokens go, which are
 * dropped, and units of weights. */
#include "sim/step/counts_parts.h"

uint64_t counts_sparse_units(const struct letters *x)
{
    const struct workload_plan *plan = x->local->plan;
    if (x->sparse == 0) return 0;
    if (plan->gather == WORKLOAD_GATHER_LAYER) return 2;
    if (plan->gather == WORKLOAD_GATHER_BLOCK) return 3;
    return counts_attention_units(x) + 1 +
           plan->model.matrices * (plan->model.experts.shared != 0 ? 2 : 1);
}

uint64_t counts_expert_units(const struct letters *x)
{
    const struct workload_plan *plan = x->local->plan;
    if (x->sparse == 0) return 0;
    return plan->gather == WORKLOAD_GATHER_TENSOR ? plan->model.matrices : 1;
}

/* The graph's bytes are of the rows of all ranks; where routing is drawn, of all that might travel.
 */
void counts_exchange(const struct letters *x, uint64_t count, double bytes,
                     struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct local_experts *experts = &local->experts;
    struct workload_traffic *exchange = &counts->role[MESH_EP];
    bool const drawn = experts->drawn.expert_count != 0;
    uint64_t const rows = drawn ? experts->ranks * local->rows : experts->exchanged;
    double const row_bytes = bytes / (double)rows;
    exchange->all_to_all_count += count;
    exchange->all_to_all_bytes += (double)experts->exchanged * row_bytes;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
        exchange->crossing_bytes[d] += (double)experts->crossing[d] * row_bytes;
}

/* Tokens that are dropped are not what the step is for. */
void counts_experts(const struct letters *x, struct workload_counts *counts)
{
    const struct local *local = x->local;
    const struct workload_plan *plan = local->plan;
    const struct local_experts *experts = &local->experts;
    const struct model_experts *model = &plan->model.experts;
    if (x->sparse == 0) return;
    double const all = x->rows * (double)model->top_k * experts->ranks;
    double const each = (double)(local->width * experts->columns * plan->model.matrices);
    counts->experts_width = (double)experts->kept / x->rows * (double)model->width;
    counts->rows_assigned = x->sparse * (double)plan->batch_tokens * (double)model->top_k;
    counts->rows_dropped = counts->rows_assigned * (double)experts->dropped / all;
    counts->parameter_flop -= 6 * counts->rows_dropped * each * local->tp;
}
