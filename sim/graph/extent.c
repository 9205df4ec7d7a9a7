#include "sim/graph/extent.h"

#include "sim/graph/op.h"

static const units_wide MOST = (units_wide)1 << 64;

/* Both are at most 2^64. */
static units_wide times(units_wide amount, units_wide by)
{
    if (amount >> 63 != 0 && by > 1) return MOST;
    units_wide const product = amount * by;
    return product < MOST ? product : MOST;
}

units_wide graph_extent_elements(const struct graph_sharded *sharded)
{
    const struct graph *graph = sharded->graph;
    uint32_t const weights_gathered = graph->terms->axis_x;
    units_wide sum = 0;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_tensor *at = &graph->tensor[t];
        uint32_t const gathered =
            sharded->gathered[t] | (at->role == GRAPH_WEIGHT ? weights_gathered : 0);
        uint32_t const parts = sharded->whole[t] != 0 ? sharded->whole[t] : 1;
        sum += times(graph_elements(graph, &at->at, gathered), parts);
        sum += times(graph_elements(graph, &at->gradient_at, gathered), parts);
    }
    return sum;
}

static units_wide work_extent(const struct work *work)
{
    units_wide sum = 0;
    for (uint32_t i = 0; i < work->matmul_count; i++) {
        const struct work_matmul *matmul = &work->matmul[i];
        units_wide const scores = times(matmul->rows, matmul->columns);
        sum += times(times(times(scores, matmul->inner), matmul->count), 2);
    }
    return sum;
}

static units_wide op_extent(const struct graph_sharded *sharded, uint8_t op, enum op_pass pass)
{
    struct work const work = op_work(sharded, &sharded->graph->op[op], pass);
    return work_extent(&work);
}

units_wide graph_extent_flop(const struct graph_sharded *sharded,
                             const struct graph_backward *backward, const struct graph_kept *kept)
{
    const struct graph *graph = sharded->graph;
    units_wide sum = 0;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        if (graph->op[i].fused) continue;
        sum += op_extent(sharded, i, OP_FORWARD);
        if (kept->again[i]) sum += op_extent(sharded, i, graph_again_pass(sharded, kept, i));
    }
    for (uint32_t i = 0; i < backward->count; i++)
        sum += op_extent(sharded, backward->gradient[i].op, backward->gradient[i].pass);
    return sum;
}
