/*
 * Rows that come to a chip are copied for each of its experts that wants them and lie by expert; or
 * rows of experts are added up where they are one token's. Each is the gradient of the other.
 */
#include "sim/graph/op.h"

/* Kernels of a stack that trains, by the elements of the rows of experts. Software that serves has
 * one kernel. */
static void kernels_set(const struct graph *graph, const struct graph_op *op, bool backward,
                        uint64_t rows, struct work *work)
{
    const struct fusion *fusion = graph->terms->policy.fusion;
    bool const sums = op->as.sort.sums;
    if (fusion == NULL || graph->terms->cache.is_there || !op_has_work(work)) return;
    struct function_pass const made = fusion_permute(fusion, sums, backward);
    work->hbm_read_bytes += made.read_bytes * rows;
    work->hbm_write_bytes += made.write_bytes * rows;
    work->kernel_count =
        made.kernels + fusion_permute_each(fusion, sums, backward) * graph->terms->experts_held;
    work->kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_PERMUTE;
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes const none = {{0}};
    bool const backward = !op_is_forward(pass), sums = op->as.sort.sums != backward;
    uint64_t const summed =
        backward ? op_out_elements(sharded, op, 0) : op_in_elements(sharded, op, 0);
    *ret_work = op_streamed(sharded, op, pass, none, sums ? summed : 0);
    uint64_t const rows =
        op->as.sort.sums ? op_in_elements(sharded, op, 0) : op_out_elements(sharded, op, 0);
    kernels_set(sharded->graph, op, backward, rows, ret_work);
}

const struct op_kind op_kind_sort = {
    .name = "sort",
    .help = "rows in the order of their experts, or the sum of each token's "
            "results",
    .source = "counted from the formulas",
    .notation = {.formula = "$(%)"},
    .work = work,
};
