/*
 * An MLP: In·W_in -> Tmp, Tmp·W_out -> Out; or gated (SwiGLU, Shazeer, arXiv 2002.05202), where Tmp
 * is silu(Gate)·Up, which the second matmul computes on the way. The bare model of the book has
 * nothing else; a decoder's has the norm before it.
 */
#include "workloads/blocks/mlp.h"

#include "sim/base/vector.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

/* What lies between an MLP's matmuls only these read. */
static tensor in_product(struct graph *g, tensor in, const char *weight, const char *text)
{
    enum format const between = g->terms->formats.matmuls;
    tensor const out = graph_product(g, in, weight, text);
    graph_set_formats(g, out, between, between);
    return out;
}

/* A function of each element that the second matmul computes on the way. */
static tensor fused_write(struct graph *g, const char *text, const char *formula,
                          struct graph_map map, uint8_t count, const tensor *in)
{
    struct graph_op *op = graph_op(g, &op_kind_map, "gate", count, in);
    op->formula = formula;
    op->fused = true;
    op->as.map = map;
    tensor const out = graph_result(g, text);
    graph_set_kept(g, out, GRAPH_REMAT_NEVER, GRAPH_REMAT_NEVER);
    return out;
}

static tensor gated_write(struct graph *g, const struct mlp_texts *texts, tensor in)
{
    struct graph_map map = {VECTOR_GATE, VECTOR_GATE_BACKWARD, .reads_inputs = true};
    graph_matmul(g, texts->name_gated);
    graph_set_names(g, "dIn", "dW_gate,up");
    tensor const gate = in_product(g, in, texts->weight_gate, texts->gate);
    tensor const up = in_product(g, in, texts->weight_up, texts->up);
    const char *formula = "silu(%) * %";
    if (texts->weighted) {
        formula = "g * silu(%) * %"; /* g: what the router gives the row. */
        map.flop += 1;
        map.flop_backward += VECTOR_ROW_DOT + 1;
    }
    return fused_write(g, texts->tmp, formula, map, 2, (const tensor[]){gate, up});
}

static tensor bare_write(struct graph *g, const struct mlp_texts *texts, tensor in)
{
    struct graph_map const map = {.flop = 1, .flop_backward = VECTOR_ROW_DOT + 1};
    graph_matmul(g, texts->name_bare);
    graph_set_names(g, "dIn", texts->d_weight_bare);
    tensor const tmp = in_product(g, in, texts->weight_in, texts->tmp);
    return texts->weighted ? fused_write(g, texts->tmp, "g * %", map, 1, &tmp) : tmp;
}

tensor mlp_write(struct graph *graph, const struct mlp_texts *texts, bool gated, tensor in)
{
    tensor const tmp = (gated ? gated_write : bare_write)(graph, texts, in);
    graph_set_framework(graph, tmp, GRAPH_FRAMEWORK_OUTPUT, graph->terms->formats.matmuls,
                        GRAPH_REMAT_NONE);
    graph_matmul(graph, texts->name_out);
    graph_set_names(graph, gated ? "dGate,dUp" : texts->d_tmp_bare, "dW_out");
    return graph_product(graph, tmp, texts->weight_out, texts->out);
}

static bool applies(const struct model *model, uint64_t layer)
{
    return layer < model_dense_layers(model);
}

static void write(struct graph *g, const struct model *model)
{
    static const struct mlp_texts texts = {
        .weight_in = "W_in[D_X, F_Y]",
        .weight_gate = "W_gate[D_X, F_Y]",
        .gate = "Gate[B_ZX, F_Y]",
        .weight_up = "W_up[D_X, F_Y]",
        .up = "Up[B_ZX, F_Y]",
        .tmp = "Tmp[B_ZX, F_Y]",
        .weight_out = "W_out[F_Y, D_X]",
        .out = "Out",
        .name_gated = "Gate,Up",
        .name_bare = "Tmp",
        .name_out = "Out",
        .d_tmp_bare = "dTmp",
        .d_weight_bare = "dW_in",
    };
    bool const normed = model->kind == MODEL_LLAMA;
    tensor in = normed ? graph_residual(g) : graph_block_input(g);
    if (normed) {
        graph_norm(g, "norm");
        in = graph_normed(g, in, "In");
        graph_set_linear(g, in);
    }
    tensor const out = mlp_write(g, &texts, model->matrices == 3, in);
    if (g->terms->policy.drops)
        graph_set_framework(g, out, GRAPH_FRAMEWORK_MASK, FORMAT_INT8, GRAPH_REMAT_NORMS);
    graph_block_output(g, out);
}

const struct block block_mlp = {
    .name = "MLP",
    .prefix = "mlp.",
    .source = "the book, chapter 5; Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202",
    .place = BLOCK_MIXES_CHANNELS,
    .bucket = "W_mlp",
    .couples = true,
    .applies = applies,
    .write = write,
};
