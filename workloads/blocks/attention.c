/*
 * Attention of whole heads: every head has its own Q, K and V, or groups of heads share K and V
 * (GQA, Ainslie et al., arXiv 2305.13245). Over tp heads are split; ranks that are more than there
 * are KV heads share them.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

static bool applies(const struct model *model, uint64_t layer)
{
    (void)layer;
    return model->kind == MODEL_LLAMA && model->latent.kv_rank == 0;
}

static void write(struct graph *g, const struct model *model)
{
    tensor const x = graph_residual(g);
    graph_norm(g, "norm");
    tensor const in = graph_normed(g, x, "In");
    graph_set_linear(g, in);

    graph_matmul(g, "QKV")->joined = true;
    tensor const q = graph_product(g, in, "W_Q[D_X, N_Y, H]", "Q[B_ZX, N_Y, H]");
    tensor const k = graph_product(g, in, "W_K[D_X, K_Y, H]", "K[B_ZX, K_Y, H]");
    tensor const v = graph_product(g, in, "W_V[D_X, K_Y, H]", "V[B_ZX, K_Y, H]");
    graph_set_kept(g, k, GRAPH_REMAT_BIG_MATMULS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, v, GRAPH_REMAT_BIG_MATMULS, GRAPH_REMAT_NORMS);

    struct graph_op *flash = graph_op(g, &op_kind_attention, "flash", 3, (const tensor[]){q, k, v});
    bool const turns = model->positions == 0;
    flash->as.attention.turned[0] = turns ? q : GRAPH_NONE;
    flash->as.attention.turned[1] = turns ? k : GRAPH_NONE;
    tensor const a = graph_result(g, "A[B_ZX, N_Y, H]");
    tensor const statistics = graph_statistic(g, "S[B_ZX, N_Y]");
    graph_set_kept(g, a, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, statistics, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);

    graph_matmul(g, "O");
    graph_block_output(g, graph_product(g, a, "W_O[N_Y, H, D_X]", "Out"));
}

const struct block block_attention = {
    .name = "attention",
    .prefix = "attention.",
    .source = "Vaswani et al., arXiv 1706.03762; the book, chapter 4, 4.1",
    .place = BLOCK_MIXES_TOKENS,
    .applies = applies,
    .write = write,
};
