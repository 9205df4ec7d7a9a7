/*
 * Experts in the MLP's place. The router scores each token; an exchange over ep brings it once to
 * every rank that has an expert for it, where it is copied for each of them; the experts' MLPs
 * follow, and the way back. The weight that the router gives a token is multiplied in between an
 * expert's matmuls, so that its gradient reads nothing that theirs do not.
 *
 * Over tp an expert is split as an MLP is; a row travels in parts. Where ep lies over tp, each rank
 * of tp has whole experts, and its own tokens, which travel whole. Where each rank of tp has all of
 * D between blocks, so have rows; what a rank's parts of the experts and of the shared ones give a
 * token is added up, and one AllReduce sums it over tp. Shared experts are an MLP of the
 * rank's own tokens, between the cast and the exchange; backward they follow what the exchange
 * brings. A gate may weigh them (Qwen2, arXiv 2407.10671, 2.2.2): one more column of the router's
 * product. The gradient of that number is a sum over columns, and over tp, which is not counted.
 *
 * Engines run the experts of a layer as one, from routing to the sum of each token's rows: where a
 * stack has a table of that, both products have its share, and all else of the experts is within.
 */
#include "sim/base/strbuf.h"
#include "sim/base/vector.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"
#include "workloads/blocks/mlp.h"

static bool applies(const struct graph_terms *terms, const struct model *model)
{
    (void)model;
    return terms->layer.experts;
}

/* Weights of experts, and of shared ones before the sigmoid or GRAPH_NONE. */
struct gates {
    tensor experts, shared;
};

/* Each chip of tp scores a part of D, or a part of the tokens, or all. */
static struct gates router_write(struct graph *g, const struct model *model, tensor in)
{
    bool const tokens = g->terms->policy.by_tokens;
    bool const whole = tokens || g->terms->policy.replicated;
    const char *weight = whole ? "W_router[D_WX, E]" : "W_router[D_WYX, E]";
    struct graph_op *router = graph_matmul(g, "Router");
    router->as.matmul.math = g->terms->formats.activations;
    router->gradients.one_kernel = true;
    graph_set_names(g, "dIn", "dW_router");
    tensor const logits =
        graph_product(g, in, weight, tokens ? "Logits[B_ZXY, E]" : "Logits[B_ZX, E]");
    graph_set_formats(g, logits, FORMAT_FP32, FORMAT_FP32);
    if (model->experts.router_biased) graph_vector(g, "b_router[E]", /* whole= */ true);
    tensor shared = GRAPH_NONE;
    if (model->experts.shared_gated) {
        shared = graph_product(g, in, whole ? "w_shared[D_WX]" : "w_shared[D_WYX]",
                               tokens ? "SharedLogit[B_ZXY]" : "SharedLogit[B_ZX]");
        graph_set_all_joined(g);
        graph_set_formats(g, shared, FORMAT_FP32, FORMAT_FP32);
    }

    struct graph_op *route = graph_op(g, &op_kind_map, "Route", 1, &logits);
    route->as.map = (struct graph_map){.flop = VECTOR_ROUTE + model->experts.top_k,
                                       .flop_backward = VECTOR_ROUTE_BACKWARD,
                                       .function = g->terms->cache.is_there ? WORK_FUNCTION_REST
                                                                            : WORK_FUNCTION_ROUTE,
                                       .reads_result = true};
    tensor const gates = graph_result(g, tokens ? "Gates[B_ZXY, E]" : "Gates[B_ZX, E]");
    graph_set_formats(g, gates, FORMAT_FP32, FORMAT_FP32);
    graph_set_kept(g, gates, GRAPH_REMAT_BIG_MATMULS, GRAPH_REMAT_BIG_MATMULS);
    return (struct gates){gates, shared};
}

/* Over tp a row travels in parts; where tp splits tokens, each chip's rows are whole, and where it
 * splits nothing all chips have the same. */
struct rows_texts {
    const char *by_tokens, *by_columns, *whole;
};
static const char *rows_text(const struct graph *g, struct rows_texts texts)
{
    return g->terms->policy.by_tokens    ? texts.by_tokens
           : g->terms->policy.replicated ? texts.whole
                                         : texts.by_columns;
}

/* What is a sum over tp until a block ends, where each rank has all of D between blocks. */
static void set_due_until_end(struct graph *g, tensor of)
{
    if (g->terms->policy.replicated) graph_set_due(g, of);
}

/* In the format that travels. What comes back of its gradient is a row from each rank. */
static tensor cast_write(struct graph *g, tensor in)
{
    const struct graph_formats *formats = &g->terms->formats;
    graph_op(g, &op_kind_cast, "Cast", 1, &in);
    tensor const sent = graph_result(g, "Sent");
    graph_set_formats(g, sent, formats->dispatch, formats->activations);
    graph_set_gradient(g, sent,
                       rows_text(g, (struct rows_texts){"Sent[S_ZXY, D_W]", "Sent[S_ZX, D_WY]",
                                                        "Sent[S_ZX, D_W]"}));
    return sent;
}

static tensor exchange_write(struct graph *g, const char *name, bool spreads, uint8_t count,
                             const tensor *in, const char *text)
{
    struct graph_op *exchange = graph_op(g, &op_kind_exchange, name, count, in);
    exchange->as.exchange.sent = graph_sharding(
        g, g->terms->ep_over_tp ? "Sent[Sent, D_W]" : "Sent[Sent, D_WY]", GRAPH_ACTIVATION);
    exchange->as.exchange.spreads = spreads;
    return graph_result(g, text);
}

/* Rows of all experts of the rank, each expert's together. Their weights travel along: one number a
 * row, which is not counted. */
static tensor dispatch_write(struct graph *g, tensor sent, tensor gates)
{
    const struct graph_formats *formats = &g->terms->formats;
    tensor const arrived = exchange_write(
        g, "rows", true, 2, (const tensor[]){sent, gates},
        rows_text(g, (struct rows_texts){"Arrived[A_ZXY, D_W]", "Arrived[A_ZX, D_WY]",
                                         "Arrived[A_ZX, D_W]"}));
    graph_set_moved_as(g, arrived, "rows");
    graph_set_formats(g, arrived, formats->dispatch, formats->activations);
    graph_op(g, &op_kind_sort, "Sort", 1, &arrived);
    tensor const rows = graph_result(g, "Rows[W_ZXY, D_W]");
    graph_set_formats(g, rows, formats->matmuls, formats->activations);
    graph_set_kept(g, rows, GRAPH_REMAT_NORMS, GRAPH_REMAT_NORMS);
    return rows;
}

/* Ops of a range that belong to the experts: not the router's product, nor exchanges. Of the
 * experts' products the one with the gate has two results. */
static void in_one_set(struct graph *g, uint8_t first, uint8_t end)
{
    for (uint8_t i = first; i < end; i++) {
        struct graph_op *op = &g->op[i];
        bool const routes = op->kind == &op_kind_map || op->kind == &op_kind_sort;
        if (routes && !op->fused) op->kernel = WORK_KERNEL_WITHIN;
        if (op->product_count == 0 || !g->tensor[op->weight[0]].grouped) continue;
        op->kernel = op->out_count > 1 ? WORK_KERNEL_EXPERTS_IN : WORK_KERNEL_EXPERTS_OUT;
        op->as.matmul.product[1].joined = op->out_count > 1;
    }
}

static tensor experts_write(struct graph *g, struct mlp_shape shape, tensor rows)
{
    static const struct mlp_texts texts = {
        .weight_in = "W_in[L_Y, D_WX, Fe_Y]",
        .weight_gate = "W_gate[L_Y, D_WX, Fe_Y]",
        .gate = "Gate[W_ZXY, Fe_Y]",
        .weight_up = "W_up[L_Y, D_WX, Fe_Y]",
        .up = "Up[W_ZXY, Fe_Y]",
        .tmp = "Tmp[W_ZXY, Fe_Y]",
        .activated = "Act[W_ZXY, Fe_Y]",
        .weight_out = "W_out[L_Y, Fe_Y, D_WX]",
        .out = "Outputs[W_ZXY, D_W]",
        .name_gated = "experts.Gate,Up",
        .name_bare = "experts.Gate,Up",
        .name_out = "experts.Out",
        .d_tmp_bare = "dGate,dUp",
        .d_weight_bare = "dW_gate,up",
        .cast_in = "experts.Cast Rows",
        .cast_tmp = "experts.Cast Tmp",
        .weighted = true,
    };
    const struct graph_formats *formats = &g->terms->formats;
    tensor const outputs = mlp_write(g, &texts, shape, rows);
    if (!g->terms->ep_over_tp) graph_set_due(g, outputs);
    graph_set_formats(g, outputs, formats->activations, formats->matmuls);
    return outputs;
}

/* Sums of what a rank's experts give a token, back where the token is. */
static tensor combine_write(struct graph *g, tensor outputs)
{
    const struct graph_formats *formats = &g->terms->formats;
    graph_op(g, &op_kind_sort, "Sum", 1, &outputs)->as.sort.sums = true;
    tensor const summed =
        graph_result(g, rows_text(g, (struct rows_texts){"Summed[A_ZXY, D_W]", "Summed[A_ZX, D_WY]",
                                                         "Summed[A_ZX, D_W]"}));
    set_due_until_end(g, summed);
    graph_set_formats(g, summed, formats->activations, formats->dispatch);
    tensor const came =
        exchange_write(g, "outputs", false, 1, &summed,
                       rows_text(g, (struct rows_texts){"Came[S_ZXY, D_W]", "Came[S_ZX, D_WY]",
                                                        "Came[S_ZX, D_W]"}));
    set_due_until_end(g, came);
    graph_set_moved_as(g, summed, "outputs");
    graph_set_formats(g, came, formats->activations, formats->dispatch);
    graph_set_gradient(g, came, "Came");
    return came;
}

static tensor weighted_write(struct graph *g, tensor weight, tensor shared)
{
    struct graph_op *op =
        graph_op(g, &op_kind_map, "shared.Weighted", 2, (const tensor[]){weight, shared});
    op->formula = "sigmoid(%) * %";
    op->as.map =
        (struct graph_map){.flop = 1, .flop_backward = VECTOR_ROW_DOT + 1, .reads_inputs = true};
    tensor const weighted = graph_result(g, "Weighted");
    set_due_until_end(g, weighted);
    return weighted;
}

static tensor shared_write(struct graph *g, struct mlp_shape shape, tensor in)
{
    static const struct mlp_texts texts = {
        .weight_in = "W_shared_in[D_WX, Fs_Y]",
        .weight_gate = "W_shared_gate[D_WX, Fs_Y]",
        .gate = "SharedGate[B_ZX, Fs_Y]",
        .weight_up = "W_shared_up[D_WX, Fs_Y]",
        .up = "SharedUp[B_ZX, Fs_Y]",
        .tmp = "SharedTmp[B_ZX, Fs_Y]",
        .activated = "SharedAct[B_ZX, Fs_Y]",
        .weight_out = "W_shared_out[Fs_Y, D_WX]",
        .out = "Shared",
        .name_gated = "shared.Gate,Up",
        .name_bare = "shared.Gate,Up",
        .name_out = "shared.Out",
        .d_tmp_bare = "dGate,dUp",
        .d_weight_bare = "dW_gate,up",
        .cast_in = "shared.Cast In",
        .cast_tmp = "shared.Cast Tmp",
    };
    tensor const shared = mlp_write(g, &texts, shape, in);
    set_due_until_end(g, shared);
    graph_set_moved_as(g, shared, "Out");
    return shared;
}

static void write(struct graph *g, const struct model *model)
{
    struct mlp_shape const shape = {.gated = model->matrices == 3, .biased = model->experts.biased};
    bool const shares = model->experts.shared != 0;
    tensor const in = graph_layer_input(g);
    uint8_t const begin = g->op_count;
    struct gates const gates = router_write(g, model, in);
    tensor const sent = cast_write(g, in);

    uint8_t const first = g->op_count;
    tensor shared = shares ? shared_write(g, shape, in) : GRAPH_NONE;
    if (gates.shared != GRAPH_NONE) shared = weighted_write(g, gates.shared, shared);
    uint8_t const end = g->op_count;

    tensor const rows = dispatch_write(g, sent, gates.experts);
    tensor const outputs = experts_write(g, shape, rows);
    tensor const came = combine_write(g, outputs);
    if (g->terms->policy.experts_in_one && shape.gated) {
        in_one_set(g, begin, first);
        in_one_set(g, end, g->op_count);
    }
    graph_set_behind(g, first, end, (uint8_t)(g->op_count - 2)); /* The sum before the exchange. */

    graph_op(g, &op_kind_merge, "Merge", shares ? 2 : 1, (const tensor[]){came, shared});
    graph_set_names(g, "dCast", NULL); /* A copy in the format that travels. */
    graph_block_output(g, graph_result(g, "Out"));
}

/* A row is of one token. */
static void dimensions(const struct model *model, struct graph_terms *terms)
{
    const struct model_experts *experts = &model->experts;
    uint64_t const shared = experts->shared * experts->width;
    graph_dimension_plain(terms, "E", experts->count, "experts");
    graph_dimension_plain(terms, "L", experts->count, "experts of one chip")->of_tp =
        GRAPH_OF_TP_OF_EP;
    struct graph_dimension *columns =
        graph_dimension_plain(terms, "Fe", experts->width, "columns of an expert");
    columns->rounded = true;
    columns->of_tp = GRAPH_OF_TP_EXPERTS;
    graph_dimension_plain(terms, "Fs", shared, "columns of the shared experts")->counted =
        GRAPH_COUNTED_SHARED;
    graph_dimension_plain(terms, "W", 1, "rows of experts")->of_tp = GRAPH_OF_TP_OF_EP;
    graph_dimension_plain(terms, "A", 1, "rows that come for experts");
    graph_dimension_plain(terms, "S", 1, "rows that come back from experts");
    graph_dimension_plain(terms, "Sent", 1, "rows that all ranks send");
}

static void explain(const struct graph *g, const struct layer_kinds *kinds, struct strbuf *text)
{
    (void)kinds;
    strbuf_add(text, "  a token asks for %llu experts; g is what Gates give a row\n",
               (unsigned long long)g->terms->model->experts.top_k);
    if (g->terms->cache.is_there) return;
    strbuf_add(text,
               "  dGates are sums over Fe of dTmp * Tmp / g: one number for each of W rows; "
               "Route' reads them as [B, E], with 0 for experts that a token does not ask for\n"
               "  their bytes as rows%s are not counted\n",
               g->terms->axis_y != 0 && !g->terms->ep_over_tp ? " and their sum over Y" : "");
}

const struct block block_moe = {
    .name = "experts",
    .prefix = "moe.",
    .help = "a router, experts that each get some of the tokens, and shared "
            "experts",
    .source = "Shazeer et al., arXiv 1701.06538; GShard, arXiv 2006.16668; DeepSeekMoE, arXiv "
              "2401.06066",
    .place = BLOCK_MIXES_CHANNELS,
    .bucket = "W_router",
    .bucket_shared = "W_router,shared",
    .replaces = {&block_mlp},
    .applies = applies,
    .write = write,
    .dimensions = dimensions,
    .explain = explain,
};
