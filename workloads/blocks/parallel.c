/*
 * Attention and MLP side by side: both read the stream as it comes into the layer, and the sum of
 * what they give is added to it. They share one norm, or have one each, or none.
 *
 * With one input their in-projections are one op, without a stack one product: In is gathered over
 * tp once, and so is the sum of both gradients of it reduced once. Their out-projections are one
 * product in any case: what a rank of tp has of both is a part of one sum, which one reduction
 * ends. No gradient reads either result.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"
#include "workloads/blocks/attention.h"
#include "workloads/blocks/mlp.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)terms;
    return model->parallel;
}

static void write(struct graph *g, const struct model *model)
{
    const struct mlp_texts *mlp = &mlp_texts_dense;
    struct mlp_shape const shape = {.gated = model->matrices == 3, .biased = model->biases.mlp};
    bool const gated = shape.gated;
    bool const shares = model->norms.one_for_both || model->norms.none_before;
    tensor const input = graph_layer_input(g);
    graph_set_linear(g, input);
    tensor const in = graph_cast(g, input, "Cast In");
    struct mlp_hidden hidden = {.count = 0};

    graph_matmul(g, !shares ? "QKV" : gated ? "QKV,Gate,Up" : "QKV,Tmp");
    graph_set_names(g, "dIn", shares ? "dW_in" : "dW_QKV");
    struct attention_heads const heads = attention_products(g, model, in);
    if (shares) hidden = mlp_products(g, mlp, shape, in);
    if (g->terms->policy.joins.all) graph_set_all_joined(g);
    tensor const a = graph_cast(g, attention_between(g, model, heads), "Cast A");

    if (!shares) {
        graph_norm(g, "MlpNorm");
        tensor const normed = graph_normed(g, g->stream, "MlpIn");
        graph_set_linear(g, normed);
        tensor const mlp_in = graph_cast(g, normed, "Cast MlpIn");
        graph_matmul(g, gated ? mlp->name_gated : mlp->name_bare);
        graph_set_names(g, "dMlpIn", "dW_mlp");
        hidden = mlp_products(g, mlp, shape, mlp_in);
    }
    tensor const tmp = graph_cast(g, mlp_activated(g, mlp, &hidden), "Cast Tmp");

    graph_matmul(g, "Out");
    graph_set_names(g, gated ? "dA,dGate,dUp" : "dA,dTmp", "dW_out");
    tensor const out = graph_product(g, a, "W_O[N_Y, H, D_WX]", "Out");
    graph_set_biased(g, model->biases.o);
    graph_product_added(g, tmp, mlp->weight_out);
    graph_set_biased(g, model->biases.mlp);
    if (g->terms->policy.drops)
        graph_set_framework(g, out, GRAPH_FRAMEWORK_MASK, FORMAT_INT8, GRAPH_REMAT_NORMS);
    graph_block_output(g, out);
}

const struct block block_parallel = {
    .name = "parallel",
    .prefix = "parallel.",
    .help = "attention and MLP side by side, after one norm or one each",
    .source = "GPT-J, Wang and Komatsuzaki 2021; PaLM, arXiv 2204.02311, 2; GPT-NeoX-20B, arXiv "
              "2204.06745, 2.2",
    .place = BLOCK_MIXES_TOKENS,
    .bucket = "W_layer",
    .mixes_both = true,
    .couples = true,
    .replaces = {&block_attention, &block_mlp},
    .applies = applies,
    .write = write,
    .explain = attention_explain,
};
