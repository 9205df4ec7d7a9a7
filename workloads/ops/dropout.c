/* Elements are dropped at random, and the others scaled. The mask, one byte an element, is kept for
 * the gradient. */
#include "sim/base/vector.h"
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *in = &graph->tensor[op->in[0]], *out = &graph->tensor[op->out[0]];
    const struct graph_tensor *mask = &graph->tensor[op->out[1]];
    bool const forward = op_is_forward(pass);
    uint64_t const elements = op_out_elements(sharded, op, 0);
    uint64_t const mask_bytes = format_bytes(mask->format, elements);
    *ret_work = (struct work){
        .math_format = graph->terms->formats.activations,
        .vector_flop = VECTOR_DROPOUT * elements,
        .hbm_read_bytes = format_bytes(forward ? in->format : out->gradient, elements),
        .hbm_write_bytes = format_bytes(forward ? out->format : in->gradient, elements),
    };
    *(forward ? &ret_work->hbm_write_bytes : &ret_work->hbm_read_bytes) += mask_bytes;
}

static uint8_t reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX])
{
    (void)graph;
    (void)pass;
    ret_reads[0] = op->out[1];
    return 1;
}

const struct op_kind op_kind_dropout = {
    .name = "dropout",
    .help = "elements are dropped, by a mask that is kept",
    .source = "Srivastava et al., JMLR 15 (2014), 1929-1958",
    .notation = {.formula = "Dropout(%)"},
    .work = work,
    .reads = reads,
};
