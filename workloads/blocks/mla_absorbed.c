/*
 * Latent attention of a pass that attends to earlier tokens: the cache holds latents, and no keys
 * or values of heads. The matrices that would bring a latent up to the heads are absorbed: the one
 * of keys is multiplied with Q, so that a query is scored against the latent itself, and the one of
 * values with what the scores weigh. All heads then read the same rows, once.
 *
 * Over tp heads are split, and each rank computes all latents of its sequences. Where ranks keep a
 * part of them each, prompts without earlier tokens attend to them as they were computed.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"
#include "workloads/blocks/cached.h"
#include "workloads/blocks/mla.h"

static bool applies(const struct graph_terms *terms, const struct model *model, uint64_t layer)
{
    (void)layer;
    return model->kind == MODEL_DECODER && model->latent.kv_rank != 0 && terms->cache.is_there &&
           !terms->cache.begins;
}

static tensor with_cache_write(struct graph *g, const struct mla_latents *of, tensor query,
                               tensor latents)
{
    static const struct cached_texts texts = {
        .query = "Query",
        .found = "AL",
        .query_width = "Key",
        .found_width = "Ckv",
        .axes = "ZXW",
        .head_axes = "YW",
        .gathered = {"GKV[Sg_ZX, Key]"},
        .gathered_own = {"GLKV[Sg_ZX, Ckv]", "GKR[Sg_ZX, R]"},
        .result = "AL[B_ZXW, N_YW, Ckv]",
    };
    return cached_attention(
        g, &texts, query, GRAPH_NONE,
        &(struct cached_rows){
            .count = 1, .own_count = 2, .cached = {latents}, .own = {of->lkv, of->kr}});
}

static void write(struct graph *g, const struct model *model)
{
    struct mla_latents const of = mla_down(g, model, /* apart= */ true);
    tensor q = of.q, r = of.qr;
    if (of.lq != GRAPH_NONE) {
        graph_matmul(g, "Up");
        q = graph_product(g, of.lq, "W_UQ[Cq_X, N_YW, Plain]", "Q[B_ZXW, N_YW, Plain]");
        r = graph_product(g, of.lq, "W_QR[Cq_X, N_YW, R]", "QR[B_ZXW, N_YW, R]");
    }
    graph_matmul(g, "AbsorbK");
    tensor const ql = graph_product(g, q, "W_UK[N_YW, Plain, Ckv_X]", "QL[B_ZXW, N_YW, Ckv]");
    graph_op(g, &op_kind_concat, "Query", 2, (tensor[]){ql, r});
    tensor const query = graph_result(g, "Query[B_ZXW, N_YW, Key]");
    tensor const al = with_cache_write(g, &of, query, mla_append(g, model, &of));

    graph_matmul(g, "AbsorbV");
    tensor const a = graph_product(g, al, "W_UV[N_YW, Ckv_X, V]", "A[B_ZXW, N_YW, V]");
    graph_matmul(g, "O");
    graph_block_output(g, graph_product(g, a, "W_O[N_Y, V, D_WX]", "Out"));
}

const struct block block_mla_absorbed = {
    .name = "absorbed latent attention",
    .prefix = "attention.",
    .help = "latent attention over a cache of latents, of which no keys or values are made",
    .source = "DeepSeek-V2, arXiv 2405.04434, 2.1.2; DeepSeek-V3, arXiv 2412.19437, 2.1.1",
    .place = BLOCK_MIXES_TOKENS,
    .bucket = "W_attention",
    .couples = true,
    .applies = applies,
    .write = write,
};
