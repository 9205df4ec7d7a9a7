/*
 * Attention of whole heads: every head has its own Q, K and V, or groups of heads share K and V
 * (GQA, Ainslie et al., arXiv 2305.13245). Over tp heads are split; ranks that are more than there
 * are KV heads share them.
 *
 * Between the projections it is one kernel (flash), or kernels of its own for scores, their softmax
 * and what they weigh (Megatron-LM before flash attention); in inference, of new tokens with the
 * cache. Ranks that share sequences gather all keys and values, pass them round (ring), or
 * exchange their parts of sequences for some heads of whole ones, and back (Ulysses).
 *
 * Queries and keys may be normed, head by head, before they are rotated by position: Qwen3 has one
 * weight for each column of a head (arXiv 2505.09388), Command R+ one for each column of each head.
 * Hunyuan-Large rotates them first, which costs the same. Ranks of tp have whole heads; the sum of
 * the gradients of weights that their heads share is not counted. OLMo 2 norms all heads together
 * (arXiv 2501.00656), so ranks of tp add up the squares of a row. BitNet b1.58 does so with what
 * attention gives, before O (Wang et al., arXiv 2210.06423).
 *
 * A layer may have no keys and values of its own: its queries attend to the cache of a layer before
 * (cross-layer attention, Brandon et al., arXiv 2405.12981).
 */
#include "workloads/blocks/attention.h"

#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"
#include "workloads/blocks/cached.h"
#include "workloads/ops/attention_scores.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)terms;
    return model->kind == MODEL_DECODER;
}

/* One kernel; scores never lie in HBM. */
static tensor flash_write(struct graph *g, const struct attention_heads *heads, const char *text,
                          const char *rows)
{
    bool const rings = g->terms->sequence.rings;
    graph_rotating(g, rings ? &op_kind_ring_attention : &op_kind_attention, "flash", 3,
                   (const tensor[]){heads->q, heads->k, heads->v}, heads->rotated);
    tensor const a = graph_result(g, text);
    tensor const statistics = graph_statistic(g, rows);
    graph_set_kept(g, a, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, statistics, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return a;
}

/* Parts of sequences become some of the heads of whole ones. */
static struct attention_heads to_heads_write(struct graph *g, const struct attention_heads *heads)
{
    struct attention_heads some = *heads;
    graph_op(g, &op_kind_ulysses, "Ulysses", 3, (const tensor[]){heads->q, heads->k, heads->v});
    some.q = graph_result(g, "QC[Bc_ZX, N_YC, H]");
    some.k = graph_result(g, "KC[Bc_ZX, Kc_YC, H]");
    some.v = graph_result(g, "VC[Bc_ZX, Kc_YC, H]");
    graph_set_kept(g, some.q, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, some.k, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, some.v, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return some;
}

static tensor from_heads_write(struct graph *g, tensor a)
{
    graph_op(g, &op_kind_ulysses, "Ulysses back", 1, &a);
    tensor const back = graph_result(g, "A[B_ZX, N_Y, H]");
    graph_set_kept(g, back, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return back;
}

/* One kernel for whole sequences, with some of the heads: they go there and come back. */
static tensor ulysses_write(struct graph *g, const struct attention_heads *heads)
{
    struct attention_heads const some = to_heads_write(g, heads);
    return from_heads_write(g, flash_write(g, &some, "AC[Bc_ZX, N_YC, H]", "S[Bc_ZX, N_YC]"));
}

static tensor dropped_write(struct graph *g, tensor p)
{
    graph_op(g, &op_kind_dropout, "dropout", 1, &p);
    tensor const dropped = graph_result(g, "Dropped[B_ZX, N_Y, T]");
    tensor const mask = graph_statistic(g, "Mask[B_ZX, N_Y, T]");
    graph_set_formats(g, mask, FORMAT_INT8, FORMAT_INT8);
    graph_set_kept(g, dropped, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    graph_set_kept(g, mask, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return dropped;
}

/* Scores that a kernel of its own caps: c·tanh(s/c) (Gemma 2, arXiv 2408.00118, 2). Its gradient
 * reads the result. */
static tensor capped_write(struct graph *g, const struct attention_score_flop *flop, tensor s)
{
    if (flop->cap == 0) return s;
    graph_op(g, &op_kind_map, "Cap", 1, &s)->as.map = (struct graph_map){
        .flop = flop->cap, .flop_backward = flop->cap_backward, .reads_result = true};
    tensor const capped = graph_result(g, "Capped[B_ZX, N_Y, T]");
    graph_set_kept(g, capped, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return capped;
}

/* Kernels of its own; what the softmax gives lies in HBM until the backward pass. */
static tensor scores_write(struct graph *g, const struct attention_heads *heads)
{
    struct attention_score_flop const flop = attention_score_flop(g->terms);
    struct graph_op *scores =
        graph_rotating(g, &op_kind_dot, "S", 2, (tensor[]){heads->q, heads->k}, heads->rotated);
    scores->formula = "% *_H %";
    tensor const s = capped_write(g, &flop, graph_result(g, "S[B_ZX, N_Y, T]"));
    struct graph_op *softmax = graph_op(g, &op_kind_map, "P", 1, &s);
    softmax->formula = "Softmax(%)";
    softmax->as.map = (struct graph_map){
        .flop = flop.softmax, .flop_backward = flop.softmax_backward, .reads_result = true};
    graph_set_names(g, flop.cap != 0 ? "dCapped" : "dS", NULL);
    tensor const p = graph_result(g, "P[B_ZX, N_Y, T]");
    graph_set_kept(g, p, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    tensor const weights = g->terms->policy.drops ? dropped_write(g, p) : p;
    struct graph_op *sums = graph_rotating(g, &op_kind_dot, "A", 2, (tensor[]){weights, heads->v},
                                           graph_rotated(GRAPH_NONE, GRAPH_NONE));
    sums->gradients.right_first = true;
    graph_set_names(g, "dP", NULL);
    sums->formula = "% *_T %";
    tensor const a = graph_result(g, "A[B_ZX, N_Y, H]");
    graph_set_kept(g, a, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return a;
}

/* New tokens attend to the cache, where their own keys and values lie too. */
static tensor with_cache_write(struct graph *g, const struct attention_heads *heads)
{
    static const struct cached_texts texts = {
        .query = "Q",
        .found = "A",
        .query_width = "H",
        .found_width = "H",
        .axes = "ZXW",
        .head_axes = "Y",
        .gathered = {"GK[Sg_ZX, K_Y, H]", "GV[Sg_ZX, K_Y, H]"},
        .gathered_own = {"GK[Sg_ZX, K_Y, H]", "GV[Sg_ZX, K_Y, H]"},
        .result = "A[B_ZXW, N_YW, H]",
    };
    bool const rings = g->terms->sequence.rings, own = g->terms->cache.own_rows;
    bool const borrows = g->terms->layer.borrows;
    if (!borrows)
        graph_rotating(g, &op_kind_append, "append", 2, (const tensor[]){heads->k, heads->v},
                       graph_rotated(heads->rotated.of[1], GRAPH_NONE));
    tensor (*const cached)(struct graph *, const char *) = borrows ? graph_borrowed : graph_cached;
    struct cached_rows rows = {
        .count = 2, .own_count = borrows ? 0 : 2, .gathers_own = true, .own = {heads->k, heads->v}};
    rows.cached[0] = cached(g, "CK[Sc_ZXW, K_YW, H]");
    rows.cached[1] = cached(g, "CV[Sc_ZXW, K_YW, H]");
    if (!rings) return cached_attention(g, &texts, heads->q, heads->rotated.of[0], &rows);
    struct attention_heads const round = {heads->q, own ? heads->k : rows.cached[0],
                                          own ? heads->v : rows.cached[1],
                                          graph_rotated(heads->rotated.of[0], GRAPH_NONE)};
    return flash_write(g, &round, "A[B_ZX, N_Y, H]", "S[B_ZX, N_Y]");
}

/* The same with Ulysses: the cache lies by heads, too. */
static tensor ulysses_with_cache_write(struct graph *g, const struct attention_heads *heads)
{
    struct attention_heads const some = to_heads_write(g, heads);
    graph_rotating(g, &op_kind_append, "append", 2, (const tensor[]){some.k, some.v},
                   graph_rotated(heads->rotated.of[1], GRAPH_NONE));
    tensor const keys = graph_cached(g, "CK[Sc_ZX, Kc_YC, H]");
    tensor const values = graph_cached(g, "CV[Sc_ZX, Kc_YC, H]");
    graph_rotating(g, &op_kind_cached_attention, "attention", 3,
                   (const tensor[]){some.q, keys, values},
                   graph_rotated(heads->rotated.of[0], GRAPH_NONE));
    return from_heads_write(g, graph_result(g, "AC[Bc_ZX, N_YC, H]"));
}

/* Queries and keys, normed head by head or whole. Keys of a cache are normed as they come there. */
static void norm_write(struct graph *g, const struct model *model, struct attention_heads *heads)
{
    const struct fusion *fusion = g->terms->policy.fusion;
    bool const each = model->norms.qk != MODEL_QK_NORMS_SHARED, borrows = g->terms->layer.borrows;
    enum graph_remat const whole = g->terms->sequence.rings ? GRAPH_REMAT_NEVER : GRAPH_REMAT_NORMS;
    if (model->norms.qk == MODEL_QK_NORMS_NONE) return;
    struct graph_op *norm = graph_norm(g, borrows ? "QNorm" : "QKNorm");
    norm->sums_rows = model->norms.qk == MODEL_QK_NORMS_WHOLE;
    if (fusion != NULL && fusion->norms_rotate) {
        norm->as.rotated = heads->rotated;
        heads->rotated = graph_rotated(GRAPH_NONE, GRAPH_NONE);
    }
    bool const rotates = heads->rotated.of[0] != GRAPH_NONE;
    heads->q =
        graph_normed_by(g, heads->q, each ? "w_Qn[N_YW, H]" : "w_Qn[H]", "Qn[B_ZXW, N_YW, H]");
    if (rotates) heads->rotated.of[0] = heads->q;
    if (borrows) return;
    heads->k =
        graph_normed_by(g, heads->k, each ? "w_Kn[K_YW, H]" : "w_Kn[H]", "Kn[B_ZXW, K_YW, H]");
    graph_set_kept(g, heads->k, GRAPH_REMAT_NONE, whole);
    if (rotates) heads->rotated.of[1] = heads->k;
}

/* Where a kernel of its own rotates queries and keys, nothing that reads them does. */
static void rotate_write(struct graph *g, struct attention_heads *heads)
{
    const struct fusion *fusion = g->terms->policy.fusion;
    if (fusion == NULL || !fusion->rotates_apart || heads->rotated.of[0] == GRAPH_NONE) return;
    enum graph_remat const whole = g->terms->sequence.rings ? GRAPH_REMAT_NEVER : GRAPH_REMAT_NORMS;
    bool const borrows = g->terms->layer.borrows;
    graph_op(g, &op_kind_rope, "Rope", borrows ? 1 : 2, (const tensor[]){heads->q, heads->k});
    heads->q = graph_result(g, "Qr[B_ZXW, N_YW, H]");
    heads->rotated = graph_rotated(GRAPH_NONE, GRAPH_NONE);
    graph_set_kept(g, heads->q, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    if (borrows) return;
    heads->k = graph_result(g, "Kr[B_ZXW, K_YW, H]");
    graph_set_kept(g, heads->k, GRAPH_REMAT_NORMS, whole);
}

/* By the kernel or kernels that a step has. */
static tensor attended_write(struct graph *g, const struct attention_heads *heads)
{
    bool const to_heads = g->terms->axis_c != 0;
    if (g->terms->cache.is_there)
        return (to_heads ? ulysses_with_cache_write : with_cache_write)(g, heads);
    if (g->terms->policy.stores_scores) return scores_write(g, heads);
    return to_heads ? ulysses_write(g, heads)
                    : flash_write(g, heads, "A[B_ZX, N_Y, H]", "S[B_ZX, N_Y]");
}

tensor attention_between(struct graph *graph, const struct model *model,
                         struct attention_heads heads)
{
    if (model->attends.sinks) graph_vector(graph, "Sinks[N_Y]", /* whole= */ false);
    norm_write(graph, model, &heads);
    rotate_write(graph, &heads);
    if (graph->terms->layer.borrows && !graph->terms->cache.is_there) {
        heads.k = graph_borrowed(graph, "K[B_ZXW, K_YW, H]");
        heads.v = graph_borrowed(graph, "V[B_ZXW, K_YW, H]");
    }
    tensor const a = attended_write(graph, &heads);
    if (!model->norms.inside) return a;
    graph_norm(graph, "ANorm")->sums_rows = true;
    return graph_normed_by(graph, a, "w_An[N_YW, H]", "An[B_ZXW, N_YW, H]");
}

struct attention_heads attention_products(struct graph *graph, const struct model *model, tensor in)
{
    bool const rotates = model_rotates(model);
    tensor const q = graph_product(graph, in, "W_Q[D_WX, N_Y, H]", "Q[B_ZXW, N_YW, H]");
    graph_set_biased(graph, model->biases.qkv);
    if (graph->terms->layer.borrows)
        return (struct attention_heads){q, GRAPH_NONE, GRAPH_NONE,
                                        graph_rotated(rotates ? q : GRAPH_NONE, GRAPH_NONE)};
    tensor const k = graph_product(graph, in, "W_K[D_WX, K_Y, H]", "K[B_ZXW, K_YW, H]");
    graph_set_biased(graph, model->biases.qkv);
    graph_set_joined(graph, graph->terms->policy.joins.qkv);
    tensor const v = graph_product(graph, in, "W_V[D_WX, K_Y, H]", "V[B_ZXW, K_YW, H]");
    graph_set_biased(graph, model->biases.qkv);
    graph_set_joined(graph, graph->terms->policy.joins.qkv);
    /* What passes round is not kept. */
    enum graph_remat const whole =
        graph->terms->sequence.rings ? GRAPH_REMAT_NEVER : GRAPH_REMAT_NORMS;
    graph_set_kept(graph, k, GRAPH_REMAT_BIG_MATMULS, whole);
    graph_set_kept(graph, v, GRAPH_REMAT_BIG_MATMULS, whole);
    return (struct attention_heads){
        q, k, v, graph_rotated(rotates ? q : GRAPH_NONE, rotates ? k : GRAPH_NONE)};
}

static void write(struct graph *g, const struct model *model)
{
    tensor const in = graph_layer_input(g);
    graph_set_linear(g, in);
    tensor const cast = graph_cast(g, in, "Cast In");

    graph_matmul(g, g->terms->layer.borrows ? "Q" : "QKV");
    graph_set_names(g, "dIn", "dW_QKV");
    struct attention_heads const heads = attention_products(g, model, cast);
    tensor const a = graph_cast(g, attention_between(g, model, heads), "Cast A");

    graph_matmul(g, "O");
    graph_set_names(g, model->norms.inside ? "dAn" : "dA", "dW_O");
    tensor const out = graph_product(g, a, "W_O[N_Y, H, D_WX]", "Out");
    graph_set_biased(g, model->biases.o);
    if (g->terms->policy.drops)
        graph_set_framework(g, out, GRAPH_FRAMEWORK_MASK, FORMAT_INT8, GRAPH_REMAT_NORMS);
    graph_block_output(g, out);
}

void attention_explain(const struct graph *layer, const struct layer_kinds *kinds,
                       struct strbuf *text)
{
    const struct model *model = layer->terms->model;
    struct layer_kind const kind = layer->terms->layer;
    unsigned long long const layers = model->layers;
    unsigned long long const windowed = model_window_layers(model, kinds->keys);
    unsigned long long const borrowing = model_borrowing_layers(model);
    if (windowed != 0)
        strbuf_add(text, "  a query has %llu keys at most in %llu of %llu layers, %s the last\n",
                   (unsigned long long)model->attends.window, windowed, layers,
                   kind.windowed ? "as in" : "not in");
    if (borrowing != 0)
        strbuf_add(text,
                   "  %llu of %llu layers attend to the cache of a layer before, %s the last\n",
                   borrowing, layers, kind.borrows ? "as does" : "not");
}

const struct block block_attention = {
    .name = "attention",
    .prefix = "attention.",
    .help = "attention of whole heads; groups of heads may share K and V",
    .source = "Vaswani et al., arXiv 1706.03762; the book, chapter 4, 4.1",
    .place = BLOCK_MIXES_TOKENS,
    .bucket = "W_attention",
    .couples = true,
    .applies = applies,
    .write = write,
    .explain = attention_explain,
};
