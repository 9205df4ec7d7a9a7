/*
 * An MLP: In·W_in -> Tmp, Tmp·W_out -> Out; or gated (SwiGLU, Shazeer, arXiv 2002.05202), where Tmp
 * is silu(Gate)·Up, which the second matmul computes on the way. The bare model of the book has
 * nothing else; a decoder's has the norm before it.
 */
#include "workloads/blocks/mlp.h"

#include "sim/base/vector.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/workload/model.h"

/* One in-projection, or two. Returns how many results they have. */
static uint8_t in_write(struct graph *g, const struct mlp_texts *texts, bool gated, tensor in,
                        tensor ret_out[2])
{
    enum format const between = g->terms->formats.matmuls;
    uint8_t count = 0;
    graph_matmul(g, gated ? texts->name_gated : texts->name_bare);
    if (gated) ret_out[count++] = graph_product(g, in, texts->weight_gate, texts->gate);
    ret_out[count++] = graph_product(g, in, texts->weight_up, texts->up);
    for (uint8_t i = 0; i < count; i++) graph_set_formats(g, ret_out[i], between, between);
    return count;
}

/* What the second matmul multiplies, where that is not what the first gives. */
static tensor between_write(struct graph *g, const struct mlp_texts *texts, uint8_t count,
                            const tensor *in)
{
    bool const gated = count == 2;
    struct graph_map map = {.reads_inputs = gated};
    if (gated) map.flop = VECTOR_GATE, map.flop_backward = VECTOR_GATE_BACKWARD;
    if (texts->weighted) map.flop += 1, map.flop_backward += VECTOR_ROW_DOT + 1;
    struct graph_op *op = graph_op(g, &op_kind_map, "gate", count, in);
    op->fused = true;
    op->as.map = map;
    tensor const product = graph_result(g, texts->product);
    graph_set_kept(g, product, GRAPH_REMAT_NEVER, GRAPH_REMAT_NEVER);
    return product;
}

tensor mlp_write(struct graph *graph, const struct mlp_texts *texts, bool gated, tensor in)
{
    tensor between[2];
    uint8_t const count = in_write(graph, texts, gated, in, between);
    bool const plain = !gated && !texts->weighted;
    tensor const tmp = plain ? between[0] : between_write(graph, texts, count, between);
    graph_matmul(graph, texts->name_out);
    return graph_product(graph, tmp, texts->weight_out, texts->out);
}

static bool applies(const struct model *model, uint64_t layer)
{
    return layer < model_dense_layers(model);
}

static void write(struct graph *g, const struct model *model)
{
    static const struct mlp_texts texts = {
        .weight_gate = "W_gate[D_X, F_Y]",
        .gate = "Gate[B_ZX, F_Y]",
        .weight_up = "W_in[D_X, F_Y]",
        .up = "Up[B_ZX, F_Y]",
        .product = "Tmp[B_ZX, F_Y]",
        .weight_out = "W_out[F_Y, D_X]",
        .out = "Out",
        .name_gated = "Gate,Up",
        .name_bare = "Tmp",
        .name_out = "Out",
    };
    bool const normed = model->kind == MODEL_LLAMA;
    tensor in = normed ? graph_residual(g) : graph_block_input(g);
    if (normed) {
        graph_norm(g, "norm");
        in = graph_normed(g, in, "In");
        graph_set_linear(g, in);
    }
    graph_block_output(g, mlp_write(g, &texts, model->matrices == 3, in));
}

const struct block block_mlp = {
    .name = "MLP",
    .prefix = "mlp.",
    .source = "the book, chapter 5; Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202",
    .place = BLOCK_MIXES_CHANNELS,
    .applies = applies,
    .write = write,
};
