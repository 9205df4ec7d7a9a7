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

static tensor gated_write(struct graph *g, const struct mlp_texts *texts, tensor in)
{
    enum format const between = g->terms->formats.matmuls;
    graph_matmul(g, texts->name_gated);
    tensor const gate = graph_product(g, in, texts->weight_gate, texts->gate);
    tensor const up = graph_product(g, in, texts->weight_up, texts->up);
    graph_set_formats(g, gate, between, between);
    graph_set_formats(g, up, between, between);

    struct graph_op *map = graph_op(g, &op_kind_map, "gate", 2, (const tensor[]){gate, up});
    map->fused = true;
    map->as.map = (struct graph_map){VECTOR_GATE, VECTOR_GATE_BACKWARD, .reads_inputs = true};
    tensor const product = graph_result(g, texts->product);
    graph_set_kept(g, product, GRAPH_REMAT_NEVER, GRAPH_REMAT_NEVER);
    return product;
}

static tensor bare_write(struct graph *g, const struct mlp_texts *texts, tensor in)
{
    enum format const between = g->terms->formats.matmuls;
    graph_matmul(g, texts->name_bare);
    tensor const tmp = graph_product(g, in, texts->weight_up, texts->up);
    graph_set_formats(g, tmp, between, between);
    return tmp;
}

tensor mlp_write(struct graph *graph, const struct mlp_texts *texts, bool gated, tensor in)
{
    tensor const tmp = (gated ? gated_write : bare_write)(graph, texts, in);
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
