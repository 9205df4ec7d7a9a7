/*
 * An MLP: In·W_in -> Tmp, Tmp·W_out -> Out; or gated (SwiGLU, Shazeer, arXiv 2002.05202), where Tmp
 * is silu(Gate)·Up, which the second matmul computes on the way. The bare model of the book has
 * nothing else; a decoder's has the norm before it, or reads the residual stream.
 *
 * BitNet b1.58 norms Tmp (arXiv 2504.12285, 2; Wang et al., arXiv 2210.06423). No number of a row
 * is normed before all of the row are there, so a kernel of its own computes Tmp for the norm.
 * Ranks of tp have some columns of a row, and add up its squares.
 *
 * Apertus has xIELU in the place of GELU (Huang and Schlag, arXiv 2411.13010): p·x² + x/2 above 0,
 * n·(exp(min(x, e)) - 1 - x) + x/2 below, where e is a little less than 0. p and n are weights of
 * the layer, whose gradients are sums over all of Tmp, and over tp, which is not counted.
 */
#include "workloads/blocks/mlp.h"

#include "sim/base/vector.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

/* FLOP of xIELU: square, · p; min, exp - 1, difference, · n; the one by the sign; · 1/2, sum.
 * Backward: the slope above 0 (1), and below (3); the one by the sign, sum, · dy; for the gradients
 * of p and n the square, the difference, the one by the sign, · dy, sum. */
enum { XIELU_FLOP = 9, XIELU_BACKWARD_FLOP = 12 };

/* What lies between an MLP's matmuls only these read. */
static tensor in_product(struct graph *g, tensor in, const char *weight, bool biased,
                         const char *text)
{
    enum format const between = g->terms->formats.matmuls;
    tensor const out = graph_product(g, in, weight, text);
    graph_set_biased(g, biased);
    graph_set_formats(g, out, between, between);
    return out;
}

struct mlp_hidden mlp_products(struct graph *graph, const struct mlp_texts *texts,
                               struct mlp_shape shape, tensor in)
{
    bool const biased = shape.biased;
    if (!shape.gated)
        return (struct mlp_hidden){{in_product(graph, in, texts->weight_in, biased, texts->tmp)},
                                   1};
    tensor const gate = in_product(graph, in, texts->weight_gate, biased, texts->gate);
    tensor const up = in_product(graph, in, texts->weight_up, biased, texts->up);
    graph_set_joined(graph, graph->terms->policy.joins.gate);
    return (struct mlp_hidden){{gate, up}, 2};
}

static bool norms_inside(const struct graph *g, const struct mlp_texts *texts)
{
    return texts->normed != NULL && g->terms->model->norms.inside;
}

/* Experts have other functions. */
static bool has_xielu(const struct graph *g, const struct mlp_texts *texts)
{
    return texts == &mlp_texts_dense && g->terms->model->xielu;
}

/* The function between the matmuls, which lies in memory where a norm reads it. */
static tensor function_write(struct graph *g, const struct mlp_texts *texts, const char *formula,
                             const struct graph_map *map, const struct mlp_hidden *hidden,
                             const char *text)
{
    if (!norms_inside(g, texts))
        return graph_function(g, "gate", formula, map, hidden->count, hidden->of, text);
    struct graph_op *op = graph_op(g, &op_kind_map, "gate", hidden->count, hidden->of);
    op->formula = formula;
    op->as.map = *map;
    return graph_result(g, text);
}

/* g: what the router gives a row. */
static tensor gated_write(struct graph *g, const struct mlp_texts *texts,
                          const struct mlp_hidden *hidden)
{
    struct graph_map map = {VECTOR_GATE, VECTOR_GATE_BACKWARD, WORK_FUNCTION_GATE,
                            .reads_inputs = true};
    if (texts->weighted) {
        map.flop += 1;
        map.flop_backward += VECTOR_ROW_DOT + 1;
    }
    return function_write(g, texts, texts->weighted ? "g * silu(%) * %" : "silu(%) * %", &map,
                          hidden, texts->tmp);
}

/* xIELU, in one kernel where functions have kernels of their own. */
static tensor xielu_write(struct graph *g, const struct mlp_texts *texts,
                          const struct mlp_hidden *hidden)
{
    struct graph_map const map = {XIELU_FLOP, XIELU_BACKWARD_FLOP, WORK_FUNCTION_ACTIVATION,
                                  .reads_inputs = true};
    graph_vector(g, "Alphas[Sign]", /* whole= */ true);
    return function_write(g, texts, "xielu(%)", &map, hidden, texts->activated);
}

/* GELU or its like. Its FLOP are few beside the matmuls', so only where it has a kernel of its own
 * is it there for its bytes. */
static tensor bare_write(struct graph *g, const struct mlp_texts *texts,
                         const struct mlp_hidden *hidden)
{
    struct graph_map map = {.function = WORK_FUNCTION_ACTIVATION};
    if (has_xielu(g, texts)) return xielu_write(g, texts, hidden);
    if (texts->weighted) {
        map.flop = 1;
        map.flop_backward = VECTOR_ROW_DOT + 1;
    }
    if (graph_functions_apart(g) || norms_inside(g, texts)) {
        map.flop += VECTOR_FUNCTION;
        map.flop_backward += VECTOR_FUNCTION_BACKWARD;
        map.reads_inputs = true;
        return function_write(g, texts, texts->weighted ? "g * act(%)" : "act(%)", &map, hidden,
                              texts->activated);
    }
    if (!texts->weighted) return hidden->of[0];
    return graph_function(g, "gate", "g * %", &map, 1, hidden->of, texts->tmp);
}

tensor mlp_activated(struct graph *graph, const struct mlp_texts *texts,
                     const struct mlp_hidden *hidden)
{
    tensor const tmp = (hidden->count == 2 ? gated_write : bare_write)(graph, texts, hidden);
    if (norms_inside(graph, texts)) {
        graph_norm(graph, "TmpNorm")->sums_rows = true;
        return graph_normed_by(graph, tmp, texts->weight_normed, texts->normed);
    }
    if (graph_functions_apart(graph)) return tmp; /* It is there anyway. */
    graph_set_framework(graph, tmp, GRAPH_FRAMEWORK_OUTPUT, graph->terms->formats.matmuls,
                        GRAPH_REMAT_NONE);
    return tmp;
}

tensor mlp_write(struct graph *graph, const struct mlp_texts *texts, struct mlp_shape shape,
                 tensor in)
{
    tensor const cast = graph_cast(graph, in, texts->cast_in);
    graph_matmul(graph, shape.gated ? texts->name_gated : texts->name_bare);
    graph_set_names(graph, "dIn", shape.gated ? "dW_gate,up" : texts->d_weight_bare);
    struct mlp_hidden const hidden = mlp_products(graph, texts, shape, cast);
    tensor const tmp = graph_cast(graph, mlp_activated(graph, texts, &hidden), texts->cast_tmp);
    graph_matmul(graph, texts->name_out);
    const char *const d_tmp = shape.gated ? "dGate,dUp" : texts->d_tmp_bare;
    graph_set_names(graph, norms_inside(graph, texts) ? "dNormed" : d_tmp, "dW_out");
    tensor const out = graph_product(graph, tmp, texts->weight_out, texts->out);
    graph_set_biased(graph, shape.biased);
    return out;
}

const struct mlp_texts mlp_texts_dense = {
    .weight_in = "W_in[D_WX, F_Y]",
    .weight_gate = "W_gate[D_WX, F_Y]",
    .gate = "Gate[B_ZX, F_Y]",
    .weight_up = "W_up[D_WX, F_Y]",
    .up = "Up[B_ZX, F_Y]",
    .tmp = "Tmp[B_ZX, F_Y]",
    .activated = "Act[B_ZX, F_Y]",
    .weight_normed = "w_Normed[F_Y]",
    .normed = "Normed[B_ZX, F_Y]",
    .weight_out = "W_out[F_Y, D_WX]",
    .out = "Out",
    .name_gated = "Gate,Up",
    .name_bare = "Tmp",
    .name_out = "Out",
    .d_tmp_bare = "dTmp",
    .d_weight_bare = "dW_in",
    .cast_in = "Cast In",
    .cast_tmp = "Cast Tmp",
};

static void write(struct graph *g, const struct model *model)
{
    bool const normed = model->kind == MODEL_DECODER;
    tensor const in = normed ? graph_layer_input(g) : graph_block_input(g);
    if (normed) graph_set_linear(g, in);
    struct mlp_shape const shape = {.gated = model->matrices == 3, .biased = model->biases.mlp};
    tensor const out = mlp_write(g, &mlp_texts_dense, shape, in);
    if (g->terms->policy.drops)
        graph_set_framework(g, out, GRAPH_FRAMEWORK_MASK, FORMAT_INT8, GRAPH_REMAT_NORMS);
    graph_block_output(g, out);
}

static void dimensions(const struct model *model, struct graph_terms *terms)
{
    (void)model;
    struct graph_dimension *sign = graph_dimension_set(terms, "Sign", 2, 2);
    sign->counted = GRAPH_COUNTED_MLP;
    sign->meaning = "weights of xIELU, one above 0 and one below";
}

const struct block block_mlp = {
    .name = "MLP",
    .prefix = "mlp.",
    .help = "two matrices, or three with a gate",
    .source = "the book, chapter 5; Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202; "
              "xIELU, Huang and Schlag, arXiv 2411.13010",
    .place = BLOCK_MIXES_CHANNELS,
    .bucket = "W_mlp",
    .couples = true,
    .write = write,
    .dimensions = dimensions,
};
