/* A copy in another format. Where input and result have the same, there is none. */
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *in = &graph->tensor[op->in[0]], *out = &graph->tensor[op->out[0]];
    bool const same =
        op_is_forward(pass) ? in->format == out->format : in->gradient == out->gradient;
    uint64_t const elements = op_out_elements(sharded, op, 0);
    *ret_work = (struct work){.math_format = graph->terms->formats.activations};
    if (same) return;
    ret_work->hbm_read_bytes =
        format_bytes(op_is_forward(pass) ? in->format : out->gradient, elements);
    ret_work->hbm_write_bytes =
        format_bytes(op_is_forward(pass) ? out->format : in->gradient, elements);
}

const struct op_kind op_kind_cast = {
    .name = "cast",
    .help = "an array in another format",
    .source = "counted from the formulas",
    .notation = {.formula = "%", .casts = true},
    .work = work,
    .passes_on = true,
};
