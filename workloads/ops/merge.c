/*
 * A sum of inputs, each read once. Their gradients are that of the result. An input that wants it
 * in another format, as a way to experts does, gets a copy.
 */
#include "sim/graph/op.h"

static struct work copies(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *out = &graph->tensor[op->out[0]];
    uint64_t const elements = op_out_elements(sharded, op, 0);
    struct work work = {.math_format = graph->terms->formats.activations};
    for (uint8_t i = 0; i < op->in_count; i++) {
        enum format const wanted = graph->tensor[op->in[i]].gradient;
        if (wanted == out->gradient) continue;
        work.hbm_read_bytes += format_bytes(out->gradient, elements);
        work.hbm_write_bytes += format_bytes(wanted, elements);
    }
    return work;
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    struct op_bytes const none = {{0}};
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->in_count; i++) elements += op_in_elements(sharded, op, i);
    *ret_work =
        op_is_forward(pass) ? op_streamed(sharded, op, pass, none, elements) : copies(sharded, op);
}

const struct op_kind op_kind_merge = {
    .name = "merge",
    .help = "a sum of inputs",
    .source = "counted from the formulas",
    .notation = {.formula = "+"},
    .work = work,
    .passes_on = true,
    .computes_sums = true,
};
