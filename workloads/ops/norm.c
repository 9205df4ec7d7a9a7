/*
 * RMS norms in one kernel. With the sum of the residual stream fused, it writes that sum as well,
 * and backward the stream's gradient is added, as is that of an input that other parts read too.
 * Where chips of tp have parts of a row, they add up its squares, one number a token and chip. The
 * sum travels with an AllGather of the row, or on its own where none follows; it is not counted.
 * A norm that `sums_rows`, as that of whole queries and keys, lets each step of a layer wait for
 * the sum: there an AllReduce of one fp32 a row is counted, and a second kernel, which reads the
 * rows once more. Norms of queries and keys may rotate them by position (rope), which their
 * gradient rotates back.
 */
#include <stdio.h>

#include "sim/base/vector.h"
#include "sim/graph/op.h"

/* Results that only products read are in the format of these. */
static uint64_t narrowed(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->out_count; i++)
        if (op_narrows(graph, graph->terms->formats.activations, graph->tensor[op->out[i]].format))
            elements += op_out_elements(sharded, op, i);
    return elements;
}

/* The sum of the stream is a kernel before that of the norm, and that of gradients one behind it.
 */
static bool sums_apart(const struct graph *graph)
{
    const struct fusion *fusion = graph->terms->policy.fusion;
    return fusion != NULL && fusion->sums_apart;
}

/* Bytes of a stream that a norm's own kernel adds up, where the stream is in fp32. */
static void fused_sum_add(const struct graph *graph, enum op_pass pass, uint64_t elements,
                          struct work *work)
{
    const struct graph_policy *policy = &graph->terms->policy;
    if (policy->autocast != AUTOCAST_WIDE || policy->fusion->autocast == NULL) return;
    struct function_pass const sum = policy->fusion->autocast->sum_fused[!op_is_forward(pass)];
    work->hbm_read_bytes += sum.read_bytes * elements;
    work->hbm_write_bytes += sum.write_bytes * elements;
}

static enum recipe_array cast_as(const struct graph *graph)
{
    return graph->terms->policy.casts.norms_belong ? RECIPE_NORMED : RECIPE_FOUND;
}

/* Mesh axes that parts of a row lie on, where a collective adds the parts up. */
static uint32_t row_axes(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *at = &graph->tensor[op->out[0]].at;
    struct sharding row = *at;
    if (!op->sums_rows) return 0;
    row.dimension_count = 0;
    for (uint32_t d = 1; d < at->dimension_count; d++) /* The first has the tokens. */
        row.dimension[row.dimension_count++] = at->dimension[d];
    return sharding_axes(&row);
}

/* A number of each row: the sum over its columns that this rank has. */
static struct sharding sums_of(const struct graph *graph, const struct graph_op *op, bool gradient)
{
    struct sharding sums = graph->tensor[op->out[0]].at;
    sums.dimension_count = 2;
    sums.dimension[1] = (struct sharding_dimension){.name = "Row", .size = op->out_count};
    (void)snprintf(sums.name, sizeof sums.name, gradient ? "dSums" : "Sums");
    return sums;
}

/* Over tp, and over tp_d where parts of rows lie there too. Whoever reads what the op makes waits
 * for the sums. */
static uint8_t moves(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX])
{
    const struct graph *graph = sharded->graph;
    uint32_t const axes = row_axes(graph, op);
    bool const gradient = !op_is_forward(pass);
    const tensor *made = gradient ? op->in : op->out;
    uint8_t count = 0;
    if (axes == 0) return 0;
    struct op_move move = {
        .kind = COLLECTIVE_ALL_REDUCE,
        .format = FORMAT_FP32,
        .sums = sums_of(graph, op, gradient),
        .name = op->name,
        .apart = true,
    };
    move.bytes = format_bytes(FORMAT_FP32, graph_elements(graph, &move.sums, 0));
    for (uint8_t i = 0; i < (gradient ? op->in_count : op->out_count); i++) {
        op_move_reads(&move, made[i], gradient, /* full= */ false);
        op_move_writes(&move, made[i], gradient, /* full= */ false);
    }
    if ((axes & graph->terms->axis_y) != 0) {
        ret_moves[count] = move;
        ret_moves[count].sums.unreduced |= axes & graph->terms->axis_w; /* It comes next. */
        ret_moves[count++].axis = OP_AXIS_TP;
    }
    if ((axes & graph->terms->axis_w) != 0) {
        ret_moves[count] = move;
        ret_moves[count++].axis = OP_AXIS_TP_D;
    }
    return count;
}

/* The kernel of the sum drops elements of what it adds to the stream, and writes a mask. Backward a
 * kernel of its own reads the stream's gradient and the mask. */
static void dropout_add(enum op_pass pass, uint64_t elements, struct work *work)
{
    bool const forward = op_is_forward(pass);
    work->vector_flop += VECTOR_DROPOUT * elements;
    *(forward ? &work->hbm_write_bytes : &work->hbm_read_bytes) += elements; /* The mask. */
    if (forward) return;
    work->hbm_read_bytes += 2 * elements;
    work->hbm_write_bytes += 2 * elements;
    work->kernel_count++;
}

/* The kernel of the sum reads two arrays and writes one. */
static void sum_add(const struct graph *graph, enum op_pass pass, uint64_t elements, uint64_t bytes,
                    struct work *work)
{
    struct work const alone = *work;
    op_function(graph, WORK_FUNCTION_SUM, pass, elements, work);
    if (graph->terms->policy.drops) dropout_add(pass, elements, work);
    /* What is more than the norm alone moves, and what the norm counted of the sum. */
    uint64_t const more =
        work->hbm_read_bytes + work->hbm_write_bytes - alone.hbm_read_bytes - alone.hbm_write_bytes;
    work->sum_bytes = more + (op_is_forward(pass) ? 2 : 1) * bytes;
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    bool const stream = graph_fused(graph, op->in[0]) != NULL;
    bool const summed = stream && pass != OP_AGAIN_ALONE && graph_reads_first(graph, op, op->in[0]);
    const struct graph_tensor *in = &graph->tensor[op->in[0]];
    bool const adds = stream || in->shared; /* The stream's gradient. */
    struct op_bytes out = {{0}};
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->out_count; i++) elements += op_out_elements(sharded, op, i);
    op_bytes_outs(sharded, op, false, &out);
    uint64_t const bytes = format_bytes(in->format, elements);
    struct work work = {.math_format = graph->terms->formats.activations};
    if (op_is_forward(pass)) {
        work.vector_flop = (summed ? VECTOR_NORM : VECTOR_NORM_ALONE) * elements;
        work.vector_flop += narrowed(sharded, op);
        work.hbm_read_bytes = (summed ? 2 : 1) * bytes;
        work.hbm_write_bytes = (summed ? bytes : 0) + op_bytes_sum(&out);
    } else {
        work.vector_flop = (adds ? VECTOR_NORM_BACKWARD : VECTOR_NORM_ALONE_BACKWARD) * elements;
        work.hbm_read_bytes = (adds ? 3 : 2) * bytes;
        work.hbm_write_bytes = bytes;
    }
    work.vector_flop += op_rotated_flop(graph, op);
    if (row_axes(graph, op) != 0) {
        work.hbm_read_bytes += (op_is_forward(pass) ? 1 : 2) * bytes;
        work.kernel_count += graph->terms->policy.fusion != NULL;
    }
    op_norm(graph, op, pass, elements, &work);
    bool const sums = op_is_forward(pass) ? summed : adds;
    if (sums && graph->terms->policy.fusion != NULL) fused_sum_add(graph, pass, elements, &work);
    if (sums_apart(graph) && sums) sum_add(graph, pass, elements, bytes, &work);
    *ret_work = work;
}

static uint8_t reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX])
{
    (void)graph;
    (void)pass;
    for (uint8_t i = 0; i < op->in_count; i++) ret_reads[i] = op->in[i];
    return op->in_count;
}

const struct op_kind op_kind_norm = {
    .name = "norm",
    .help = "RMS norm, with the residual sum where that is fused; its gradient gives the weight's",
    .source = "counted from the formulas; the book, chapter 4, 4.2.4",
    .notation = {.formula = "Norm(%)",
                 .remark_split = "its row sums are not counted",
                 .remark_sum = "with the next norm"},
    .work = work,
    .reads = reads,
    .moves = moves,
    .cast_as = cast_as,
    .computes_sums = true,
};
