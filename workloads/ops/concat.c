/* Inputs side by side: they are written there, and nothing is done for it. */
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    (void)op;
    (void)pass;
    *ret_work = (struct work){.math_format = sharded->graph->terms->formats.activations};
}

const struct op_kind op_kind_concat = {
    .name = "concat",
    .help = "inputs side by side",
    .source = "no work: results of kernels are written to their part of an array",
    .work = work,
    .reads = op_reads_nothing,
    .passes_on = true,
};
