/*
 * A product of two activations, head by head: scores of queries with keys, or of these weights with
 * values. Rows of the left operand are queries, the right one has a row for each key. Each gradient
 * is a product of its own.
 *
 * Masks are applied in other kernels, so the whole square is computed whatever they hide.
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/graph/op.h"

static uint64_t columns_of(const struct graph *graph, tensor of)
{
    const struct sharding *at = &graph->tensor[of].at;
    return at->dimension[at->dimension_count - 1].size;
}

static const struct sharding_dimension *heads_of(const struct graph *graph,
                                                 const struct graph_op *op)
{
    return &graph->tensor[op->in[0]].at.dimension[1];
}

static struct work_matmul product(const struct graph *graph, const struct graph_op *op,
                                  enum op_pass pass)
{
    const struct graph_sequence *sequence = &graph->terms->sequence;
    uint64_t const left = columns_of(graph, op->in[0]), right = columns_of(graph, op->in[1]);
    uint64_t const out = columns_of(graph, op->out[0]);
    struct work_matmul of = {sequence->queries, left, out, 0};
    if (pass == OP_LEFT_GRADIENT) of = (struct work_matmul){sequence->queries, out, left, 0};
    if (pass == OP_RIGHT_GRADIENT)
        of = (struct work_matmul){sequence->keys, sequence->queries, right, 0};
    of.count = sharding_local_size(&graph->terms->mesh, heads_of(graph, op)) * sequence->count;
    return of;
}

/* Whether the result has the columns of the right operand, as weighed values have; else it has its
 * rows, as scores have. */
static bool gives_columns(const struct graph *graph, const struct graph_op *op)
{
    const struct sharding *right = &graph->tensor[op->in[1]].at,
                          *out = &graph->tensor[op->out[0]].at;
    return strcmp(right->dimension[right->dimension_count - 1].name,
                  out->dimension[out->dimension_count - 1].name) == 0;
}

/* One kernel has all heads. The inner side of both operands is contiguous in Q times K and in the
 * gradient of P; the right operand's columns are in P times V and in the gradient of Q; of dK and
 * dV rows are contracted. A measured product says so as gradients of linear layers do. */
static void batched_set(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                        struct work *work)
{
    bool const columns = gives_columns(graph, op), is_left = pass == OP_LEFT_GRADIENT;
    struct work_matmul *of = &work->matmul[0];
    struct work_matmul const as = *of;
    work->batched = 1;
    work->kernel = WORK_KERNEL_FORWARD;
    if (pass == OP_RIGHT_GRADIENT) {
        work->kernel = WORK_KERNEL_WEIGHT;
        work->result = graph->terms->formats.activations;
        *of = (struct work_matmul){as.inner, as.columns, as.rows, as.count};
    } else if (columns != is_left) {
        work->kernel = WORK_KERNEL_INPUT;
        *of = (struct work_matmul){as.rows, as.columns, as.inner, as.count};
    }
}

/* Both inputs, or the other one and the result's gradient. */
static void bytes_add(const struct graph_sharded *sharded, const struct graph_op *op,
                      enum op_pass pass, struct op_bytes *read, struct op_bytes *written)
{
    uint8_t const own = pass == OP_RIGHT_GRADIENT;
    if (op_is_forward(pass)) {
        op_bytes_ins(sharded, op, false, read);
        op_bytes_outs(sharded, op, false, written);
    } else {
        op_bytes_outs(sharded, op, true, read);
        op_bytes_in(sharded, op, own == 0, false, read);
        op_bytes_in(sharded, op, own, true, written);
    }
}

static uint64_t useful_flop(const struct graph *graph, const struct graph_op *op, uint64_t flop)
{
    const struct graph_dimension *heads =
        graph_dimension_of(graph->terms, heads_of(graph, op)->name);
    return (uint64_t)((units_wide)flop * heads->useful / heads->padded);
}

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    bool const again = op_is_forward(pass) && pass != OP_FORWARD;
    struct op_bytes read = {{0}}, written = {{0}};
    bytes_add(sharded, op, pass, &read, &written);
    *ret_work = (struct work){
        .matmul = {product(graph, op, pass)},
        .matmul_count = 1,
        .math_format = graph->terms->formats.activations,
        .vector_flop = pass == OP_RIGHT_GRADIENT ? 0 : op_rotated_flop(graph, op),
        .hbm_read_bytes = op_bytes_sum(&read),
        .hbm_write_bytes = op_bytes_sum(&written),
    };
    if (graph->terms->policy.names_kernels) batched_set(graph, op, pass, ret_work);
    if (!again) ret_work->useful_flop = useful_flop(graph, op, work_matmul_flop(ret_work));
}

static void spare(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                  struct op_spare *ret_spare)
{
    struct work of;
    bool const again = op_is_forward(pass) && pass != OP_FORWARD;
    work(sharded, op, pass, &of);
    *ret_spare = (struct op_spare){.padding = again ? 0 : work_matmul_flop(&of) - of.useful_flop};
}

static uint8_t reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX])
{
    (void)graph;
    ret_reads[0] = op->in[pass == OP_LEFT_GRADIENT];
    return 1;
}

const struct op_kind op_kind_dot = {
    .name = "dot",
    .help = "a product of two activations, head by head; each gradient is one too",
    .source = "Vaswani et al., arXiv 1706.03762, 3.2.1",
    .work = work,
    .reads = reads,
    .spare = spare,
    .inputs_apart = true,
};
