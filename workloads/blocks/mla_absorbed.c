/*
 * Latent attention of a pass that attends to earlier tokens: the cache holds latents, and no keys
 * or values of heads. The matrices that would bring a latent up to the heads are absorbed: the one
 * of keys is multiplied with Q, so that a query is scored against the latent itself, and the one of
 * values with what the scores weigh. All heads then read the same rows, once.
 *
 * In a pass with decodes, prompts without earlier tokens attend as in a pass of their own, to keys
 * and values of all heads. What goes down, the queries and O are products of all tokens. The
 * matrices that bring latents up are read by two kernels: by the product that makes keys and values
 * of the prompts' latents, and by the products that absorb them for the decodes. They lie in HBM
 * once: in vLLM W_UK and W_UV are views of the weights of kv_b_proj (forward_mha, forward_mqa and
 * process_weights_after_loading of its mla/common.py). Where those are narrower than 16 bits vLLM
 * holds wide copies, too, which are not counted.
 *
 * Over tp heads are split, and each rank computes all latents of its sequences.
 */
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"
#include "workloads/blocks/cached.h"
#include "workloads/blocks/mla.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    return model_has_mla(model) && terms->cache.is_there && !terms->cache.begins;
}

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

static const char weight_of_keys[] = "W_UK[N_YW, Plain, Ckv_X]",
                  weight_of_values[] = "W_UV[N_YW, Ckv_X, V]";

/* Columns of Q, and those that are rotated. */
struct queries {
    tensor plain, rotated;
};

static struct queries queries_write(struct graph *g, const struct mla_latents *of)
{
    if (of->lq == GRAPH_NONE) return (struct queries){of->q, of->qr};
    graph_matmul(g, "Up");
    tensor const q = graph_product(g, of->lq, "W_UQ[Cq_X, N_YW, Plain]", "Q[B_ZXW, N_YW, Plain]");
    tensor const r = graph_product(g, of->lq, "W_QR[Cq_X, N_YW, R]", "QR[B_ZXW, N_YW, R]");
    return (struct queries){q, r};
}

/* --- All tokens attend to latents --- */

static tensor all_write(struct graph *g, const struct model *model, const struct mla_latents *of,
                        struct queries queries)
{
    graph_batched_matmul(g, "AbsorbK");
    tensor const ql = graph_product(g, queries.plain, weight_of_keys, "QL[B_ZXW, N_YW, Ckv]");
    graph_op(g, &op_kind_concat, "Query", 2, (tensor[]){ql, queries.rotated});
    tensor const query = graph_result(g, "Query[B_ZXW, N_YW, Key]");
    struct cached_rows const rows = {
        .count = 1, .own_count = 2, .cached = {mla_append(g, model, of)}, .own = {of->lkv, of->kr}};
    tensor const al = cached_attention(g, &texts, query, GRAPH_NONE, &rows);
    graph_batched_matmul(g, "AbsorbV");
    return graph_product(g, al, weight_of_values, "A[B_ZXW, N_YW, V]");
}

/* --- Prompts to heads, decodes to latents --- */

static tensor rows_write(struct graph *g, const char *name, tensor of, const char *text)
{
    enum format const format = g->tensor[of].format;
    graph_op(g, &op_kind_slice, name, 1, &of);
    tensor const rows = graph_result(g, text);
    graph_set_formats(g, rows, format, format);
    return rows;
}

/* Matrices that bring latents up to heads. */
struct ups {
    tensor keys, values;
};

static tensor prompts_write(struct graph *g, const struct model *model,
                            const struct mla_latents *of, struct queries queries,
                            struct ups *ret_ups)
{
    bool const gathers = g->terms->cache.prompt_ways > 1;
    tensor latents[2];
    graph_op(g, &op_kind_concat, "QueryP", 2, (tensor[]){queries.plain, queries.rotated});
    tensor const query = graph_result(g, "QP[Bp_ZXW, N_YW, H]");
    if (gathers) {
        mla_prompts_gather(g, of, latents);
    } else {
        latents[0] = rows_write(g, "LatentP", of->lkv, "LKVP[Bp_ZXW, Ckv]");
        latents[1] = rows_write(g, "RotatedP", of->kr, "KRP[Bp_ZXW, R]");
    }
    struct graph_op *up = graph_matmul(g, "UpKV");
    tensor const k = graph_product(g, latents[0], weight_of_keys,
                                   gathers ? "K[Sg_ZX, N_YW, Plain]" : "K[Bp_ZXW, N_YW, Plain]");
    tensor const v = graph_product(g, latents[0], weight_of_values,
                                   gathers ? "V[Sg_ZX, N_YW, V]" : "V[Bp_ZXW, N_YW, V]");
    graph_set_all_joined(g);
    tensor const r =
        graph_copied(g, latents[1], gathers ? "R[Sg_ZX, N_YW, R]" : "R[Bp_ZXW, N_YW, R]");
    *ret_ups = (struct ups){up->weight[0], up->weight[1]};
    return mla_prompts_attend(g, model, 4, (tensor[]){query, k, v, r});
}

static tensor decodes_write(struct graph *g, tensor latents, struct queries queries, struct ups ups)
{
    tensor const q = rows_write(g, "QD", queries.plain, "QD[Bd_ZXW, N_YW, Plain]");
    graph_batched_matmul(g, "AbsorbK");
    tensor const ql = graph_product_again(g, q, ups.keys, "QL[Bd_ZXW, N_YW, Ckv]");
    graph_op(g, &op_kind_concat, "Query", 2, (tensor[]){ql, queries.rotated});
    tensor const query = graph_result(g, "Query[Bd_ZXW, N_YW, Key]");
    tensor const al = cached_answers_attention(
        g, &texts, query, &(struct cached_rows){.count = 1, .cached = {latents}});
    graph_batched_matmul(g, "AbsorbV");
    return graph_product_again(g, al, ups.values, "AD[Bd_ZXW, N_YW, V]");
}

static tensor kinds_write(struct graph *g, const struct model *model, const struct mla_latents *of,
                          struct queries queries)
{
    struct ups ups;
    tensor const latents = mla_append(g, model, of);
    tensor const prompts = prompts_write(g, model, of, queries, &ups);
    tensor const decodes = decodes_write(g, latents, queries, ups);
    graph_op(g, &op_kind_concat, "Found", 2, (tensor[]){decodes, prompts});
    return graph_result(g, "A[B_ZXW, N_YW, V]");
}

static void write(struct graph *g, const struct model *model)
{
    const struct graph_formats *formats = &g->terms->formats;
    bool const makes_heads = g->terms->cache.makes_heads;
    struct mla_latents const of = mla_down(g, model, /* apart= */ true);
    /* Only products and the append to the cache read the latents then. */
    if (makes_heads) graph_set_formats(g, of.lkv, formats->matmuls, formats->activations);
    struct queries const queries = queries_write(g, &of);
    tensor const a = (makes_heads ? kinds_write : all_write)(g, model, &of, queries);
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
    .replaces = {&block_mla},
    .applies = applies,
    .write = write,
};
