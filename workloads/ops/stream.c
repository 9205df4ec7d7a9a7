/*
 * The residual stream as a block reads it that has no norm before it (OLMo 2): a kernel of its own
 * adds the result of the block before to the stream. Products read the sum where it lies, so the
 * result takes no more bytes, unless it has another format. Backward the gradient of the stream is
 * added to the gradient of the block's input.
 */
#include "sim/graph/op.h"

/* Whether the stream was kept, so that a repetition adds nothing up. */
static bool is_there(const struct graph *graph, const struct graph_op *op, enum op_pass pass)
{
    return pass != OP_FORWARD && graph->tensor[op->in[0]].saved;
}

static struct work forward(const struct graph_sharded *sharded, const struct graph_op *op,
                           enum op_pass pass)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *stream = &graph->tensor[op->in[0]],
                              *out = &graph->tensor[op->out[0]];
    bool const adds = !is_there(graph, op, pass), copies = out->format != stream->format;
    uint64_t const elements = op_out_elements(sharded, op, 0);
    uint64_t const summed = adds ? elements : 0, copied = copies ? elements : 0;
    struct op_bytes read = {{0}};
    if (adds) op_bytes_ins(sharded, op, false, &read);
    return (struct work){
        .math_format = graph->terms->formats.activations,
        .vector_flop = summed + (op_narrows(graph, stream->format, out->format) ? copied : 0),
        .hbm_read_bytes = adds ? op_bytes_sum(&read) : format_bytes(stream->format, copied),
        .hbm_write_bytes = format_bytes(stream->format, summed) + format_bytes(out->format, copied),
    };
}

static struct work backward(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    uint64_t const elements = op_out_elements(sharded, op, 0);
    enum format const format = graph->tensor[op->in[0]].gradient;
    return (struct work){
        .math_format = graph->terms->formats.activations,
        .vector_flop = elements,
        .hbm_read_bytes = format_bytes(graph->tensor[op->out[0]].gradient, elements) +
                          format_bytes(format, elements),
        .hbm_write_bytes = format_bytes(format, elements),
    };
}

/* A stack's kernel for it is that of its sums, which has no bytes but these. */
static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    *ret_work = op_is_forward(pass) ? forward(sharded, op, pass) : backward(sharded, op);
    if (sharded->graph->terms->policy.fusion == NULL || !op_has_work(ret_work)) return;
    ret_work->kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_SUM;
    ret_work->kernel_count = 1;
}

/* A sum apart from norms is a kernel of PyTorch's own, which writes 16 bits. A compiler's is like
 * that of a norm. */
static enum recipe_array cast_as(const struct graph *graph)
{
    const struct graph_policy *policy = &graph->terms->policy;
    bool const apart = policy->fusion != NULL && policy->fusion->sums_apart;
    return policy->casts.norms_belong && !apart ? RECIPE_NORMED : RECIPE_FOUND;
}

const struct op_kind op_kind_stream = {
    .name = "stream",
    .help = "the sum of the residual stream, where no norm computes it",
    .source = "Hugging Face transformers modeling_olmo2.py (Olmo2DecoderLayer); counted from the "
              "formulas",
    .notation = {.formula = "%", .remark_sum = "by a kernel of its own"},
    .work = work,
    .cast_as = cast_as,
    .computes_sums = true,
    .lies_in_input = true,
};
