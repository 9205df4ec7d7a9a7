/*
 * Latent attention (MLA). Tokens go down to a latent of Q and one of K and V; both are normed and
 * go up to the heads. Columns of K that are rotated by position come from the input itself, and are
 * the same for all heads. In small models Q has no latent and comes from the input, too.
 *
 * Over tp heads are split, and with them the weights of Up. Down and the norms are done by every
 * rank for all of its tokens: latents are thin. So the gradient of a latent is a sum over tp that
 * stays due.
 *
 * In inference so do prompts that attend to no earlier tokens. Only their latents stay in the
 * cache, and they read no row of the cache. Ranks of cp, which have a part of each prompt, gather
 * the latents, and each makes keys and values of all of them. What reads rows of the cache is in
 * mla_absorbed.c, and passes that have such prompts and decodes are there, too.
 */
#include "workloads/blocks/mla.h"

#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"
#include "workloads/blocks/attention.h"
#include "workloads/blocks/cached.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)terms;
    return model_has_mla(model);
}

/* A rank has Q of its own heads. */
static void query_write(struct graph *g, tensor in, bool apart, struct mla_latents *of)
{
    of->q = graph_product(g, in, apart ? "W_Q[D_WX, N_Y, Plain]" : "W_Q[D_WX, N_Y, H]",
                          apart ? "Q[B_ZXW, N_YW, Plain]" : "Q[B_ZXW, N_YW, H]");
    if (!apart) return;
    of->qr = graph_product(g, in, "W_QR[D_WX, N_Y, R]", "QR[B_ZXW, N_YW, R]");
    graph_set_joined(g, true);
}

struct mla_latents mla_down(struct graph *g, const struct model *model, bool apart)
{
    const struct graph_formats *formats = &g->terms->formats;
    const struct graph_joins *joins = &g->terms->policy.joins;
    bool const direct = model->mla.query_rank == 0;
    struct mla_latents of = {.lq = GRAPH_NONE, .q = GRAPH_NONE, .qr = GRAPH_NONE};
    tensor cq = GRAPH_NONE;
    tensor const in = graph_layer_input(g);
    graph_set_linear(g, in);
    tensor const cast = graph_cast(g, in, "Cast In");

    struct graph_op *down = graph_matmul(g, direct ? "Q,Down" : "Down");
    graph_set_names(g, "dIn", direct ? "dW_Q,down" : "dW_down");
    if (direct)
        query_write(g, cast, apart, &of);
    else
        cq = graph_product(g, cast, "W_DQ[D_WX, Cq]", "CQ[B_ZXW, Cq]");
    tensor const ckv = graph_product(g, cast, "W_DKV[D_WX, Ckv]", "CKV[B_ZXW, Ckv]");
    graph_set_joined(g, direct ? joins->all : joins->latents);
    of.kr = graph_product(g, cast, "W_KR[D_WX, R]", "KR[B_ZXW, R]");
    graph_set_joined(g, true);
    graph_set_columns_of_previous(g, down->weight[down->weight_count - 1]); /* W_DKV has both. */

    graph_norm(g, "LatentNorm");
    if (!direct) of.lq = graph_normed(g, cq, "LQ[B_ZXW, Cq]");
    of.lkv = graph_normed(g, ckv, "LKV[B_ZXW, Ckv]");
    if (!direct) graph_set_formats(g, of.lq, formats->matmuls, formats->activations);
    return of;
}

/* Columns that are rotated lie beside the latent, so that a row of the cache is one key. */
tensor mla_append(struct graph *g, const struct model *model, const struct mla_latents *of)
{
    bool const rotates = model_rotates(model);
    graph_rotating(g, &op_kind_append, "append", 2, (const tensor[]){of->lkv, of->kr},
                   graph_rotated(rotates ? of->kr : GRAPH_NONE, GRAPH_NONE));
    return graph_cached(g, "CLKV[Sc_ZXW, Key]");
}

void mla_prompts_gather(struct graph *g, const struct mla_latents *of, tensor ret_latents[2])
{
    static const char *const texts[] = {"GLKV[Sg_ZX, Ckv]", "GKR[Sg_ZX, R]"};
    cached_rows_gather(g, 2, (const tensor[]){of->lkv, of->kr}, texts, ret_latents);
}

tensor mla_prompts_attend(struct graph *g, const struct model *model, uint8_t count,
                          const tensor *heads)
{
    bool const some = g->terms->cache.makes_heads;
    bool const rotates = model_rotates(model);
    /* Of Q as many columns, and of a rank's own rows; K's are rotated as they come to the cache. */
    struct graph_rotated rotated =
        graph_rotated(rotates ? heads[count - 1] : GRAPH_NONE, GRAPH_NONE);
    rotated.ways = g->terms->cache.prompt_ways;
    graph_rotating(g, &op_kind_cached_attention, "attention", count, heads, rotated)->serves =
        some ? GRAPH_SERVES_PROMPTS : GRAPH_SERVES_ALL;
    return graph_result(g, some ? "AP[Bp_ZXW, N_YW, V]" : "A[B_ZXW, N_YW, V]");
}

static tensor prompts_write(struct graph *g, const struct model *model,
                            const struct mla_latents *of, const tensor heads[3])
{
    (void)mla_append(g, model, of);
    return mla_prompts_attend(g, model, 3, heads);
}

static tensor flash_write(struct graph *g, const struct model *model, const struct mla_latents *of,
                          const tensor heads[3])
{
    bool const rotates = model_rotates(model);
    /* Of Q as many columns as of R. */
    graph_rotating(g, &op_kind_attention, "flash", 3, heads,
                   graph_rotated(rotates ? heads[2] : GRAPH_NONE, rotates ? of->kr : GRAPH_NONE));
    tensor const a = graph_result(g, "A[B_ZXW, N_YW, V]");
    tensor const statistics = graph_statistic(g, "S[B_ZXW, N_YW]");
    graph_set_kept(g, a, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, statistics, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return a;
}

static void write(struct graph *g, const struct model *model)
{
    const struct graph_formats *formats = &g->terms->formats;
    bool const direct = model->mla.query_rank == 0;
    struct mla_latents const of = mla_down(g, model, /* apart= */ false);
    graph_set_formats(g, of.lkv, formats->matmuls, formats->activations);

    /* Ranks of cp attend to the tokens of all, whose latents are thin. */
    bool const gathers = g->terms->cache.is_there && g->terms->cache.prompt_ways > 1;
    tensor latents[] = {of.lkv, of.kr};
    if (gathers) mla_prompts_gather(g, &of, latents);

    tensor const lq = direct ? of.lq : graph_cast(g, of.lq, "Cast LQ");
    tensor const lkv = graph_cast(g, latents[0], "Cast LKV");
    /* They are many times as large as the latents, and come again from them. */
    graph_matmul(g, "Up");
    graph_set_names(g, "dLatent", "dW_up");
    tensor const q =
        direct ? of.q : graph_product(g, lq, "W_UQ[Cq_X, N_YW, H]", "Q[B_ZXW, N_YW, H]");
    tensor const kv = graph_product(g, lkv, "W_UKV[Ckv_X, N_YW, J]",
                                    gathers ? "KV[Sg_ZX, N_YW, J]" : "KV[B_ZXW, N_YW, J]");
    tensor const r =
        graph_copied(g, latents[1], gathers ? "R[Sg_ZX, N_YW, R]" : "R[B_ZXW, N_YW, R]");
    if (!direct) graph_set_kept(g, q, GRAPH_REMAT_NONE, GRAPH_REMAT_NONE);
    graph_set_kept(g, kv, GRAPH_REMAT_NONE, GRAPH_REMAT_NONE);

    tensor const heads[] = {q, kv, r};
    tensor const found =
        (g->terms->cache.is_there ? prompts_write : flash_write)(g, model, &of, heads);
    tensor const a = graph_cast(g, found, "Cast A");

    graph_matmul(g, "O");
    graph_set_names(g, "dA", "dW_O");
    graph_block_output(g, graph_product(g, a, "W_O[N_Y, V, D_WX]", "Out"));
}

static void dimensions(const struct model *model, struct graph_terms *terms)
{
    const struct model_mla *mla = &model->mla;
    uint64_t const made = mla->plain + model_value_width(model), key = mla->kv_rank + mla->rope;
    graph_dimension_plain(terms, "Cq", mla->query_rank, "columns of the latent of Q");
    graph_dimension_plain(terms, "Ckv", mla->kv_rank, "columns of the latent of K and V");
    graph_dimension_plain(terms, "R", mla->rope, "columns of a head that are rotated by position");
    graph_dimension_plain(terms, "J", made, "columns of a head's K and V that their latent gives");
    graph_dimension_plain(terms, "Plain", mla->plain, "columns of a head that are not rotated");
    graph_dimension_plain(terms, "Key", key, "columns of a row of the cache: Ckv and R");
}

const struct block block_mla = {
    .name = "latent attention",
    .prefix = "attention.",
    .help = "attention whose K and V come from one narrow array (MLA)",
    .source = "DeepSeek-V2, arXiv 2405.04434, 2.1",
    .place = BLOCK_MIXES_TOKENS,
    .bucket = "W_attention",
    .couples = true,
    .replaces = {&block_attention},
    .lacks = {[BLOCK_UNFUSED] = "latent attention (MLA)",
              [BLOCK_SHARED_IN_TRAINING] = "latent attention (MLA)"},
    .applies = applies,
    .write = write,
    .dimensions = dimensions,
    .explain = attention_explain,
};
