/*
 * A layer's blocks as steps. The order and the remarks are those of the book's listings (chapter
 * 5); which collective stands where comes from layout.c.
 */
#include "sim/workload/listing.h"

#include <stdio.h>
#include <string.h>

enum { REMARK_BYTES = 256 };

static const struct workload_formats *formats_of(const struct listing *listing)
{
    return &listing->local->plan->formats;
}

static bool is_attention(const struct layout_block *layout)
{
    return layout->in_count == LAYOUT_IN_MAX;
}

/* What lies between a block's projections, as they read it. */
static enum format between_format(const struct listing *listing, const struct layout_block *layout)
{
    return is_attention(layout) ? formats_of(listing)->activations : formats_of(listing)->matmuls;
}

static void weight_gather(struct listing *listing, const struct layout_matrix *matrix,
                          uint32_t axes, bool backward)
{
    bool const repeated = listing->local->plan->remat == WORKLOAD_REMAT_BLOCK;
    const char *remark = "not on critical path, can do it during previous layer";
    if (backward || listing->local->tp > 1) remark = "can be done ahead of time";
    if (backward && repeated) remark = "shared with the repeated forward pass";
    (void)listing_gather(listing, &matrix->weight, axes, formats_of(listing)->weights, remark);
}

/* Where a block's gathered In stands in the forward pass, for the remark on its reuse. */
static uint32_t *in_step(struct listing *listing, const struct layout_block *layout)
{
    return &listing->in_step[is_attention(layout)];
}

/* In as it comes to the block, gathered where the product wants it whole. */
static void in_forward(struct listing *listing, const struct layout_block *layout)
{
    enum format const format = formats_of(listing)->activations;
    bool const fsdp_only = listing->local->shards > 1 && listing->local->tp == 1;
    bool const tp_only = listing->local->shards == 1 && listing->local->tp > 1;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const struct layout_matrix *in = &layout->in[i];
        char remark[REMARK_BYTES] = "";
        char weight[SHARDING_TEXT_BYTES];
        if (i == 0) {
            (void)listing_gather(listing, &in->left, in->forward.gather_left, format,
                                 "on critical path");
            *in_step(listing, layout) = listing->step;
        }
        weight_gather(listing, in, in->forward.gather_right, false);
        if (fsdp_only) {
            (void)snprintf(remark, sizeof remark, "can throw away %s now",
                           sharding_text(&listing->local->axes, &in->forward.right, weight));
        }
        (void)listing_product(listing, &in->forward, between_format(listing, layout),
                              tp_only ? "not sharded along contracting, so no comms" : remark, "");
    }
}

static void out_forward(struct listing *listing, const struct layout_block *layout)
{
    const struct layout_matrix *out = &layout->out;
    weight_gather(listing, out, out->forward.gather_right, false);
    (void)listing_product(listing, &out->forward, formats_of(listing)->activations, "",
                          "on critical path");
}

static void norm_add(struct listing *listing, const struct layout_block *layout)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    const struct sharding *in = &layout->in[0].left;
    struct sharding x = *in;
    char texts[2][SHARDING_TEXT_BYTES];
    if (!local_is_llama(listing->local)) return;
    (void)snprintf(x.name, sizeof x.name, "X");
    listing_step(listing, in, local_normed_format(listing->local),
                 listing->local->tp > 1 ? "its row sums travel with the AllGather" : "",
                 "%s = Norm(%s)", sharding_text(mesh, in, texts[0]),
                 sharding_text(mesh, &x, texts[1]));
}

static void norm_backward_add(struct listing *listing, const struct layout_block *layout)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    struct sharding const d_in = layout_gradient(&layout->in[0].left);
    struct sharding d_x = d_in;
    char texts[2][SHARDING_TEXT_BYTES];
    if (!local_is_llama(listing->local)) return;
    (void)snprintf(d_x.name, sizeof d_x.name, "dX");
    listing_step(listing, &d_x, formats_of(listing)->activations, "needed for previous layers",
                 "%s += Norm'(%s)", sharding_text(mesh, &d_x, texts[0]),
                 sharding_text(mesh, &d_in, texts[1]));
}

static void residual_add(struct listing *listing, const struct layout_block *layout)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    const struct sharding *out = &layout->out.right;
    struct sharding x = *out;
    char texts[2][SHARDING_TEXT_BYTES];
    if (!local_is_llama(listing->local)) return;
    (void)snprintf(x.name, sizeof x.name, "X");
    listing_step(listing, &x, formats_of(listing)->activations, "with the next norm", "%s += %s",
                 sharding_text(mesh, &x, texts[0]), sharding_text(mesh, out, texts[1]));
}

static void gate_add(struct listing *listing, const struct layout_block *layout)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    char texts[3][SHARDING_TEXT_BYTES];
    if (layout->in_count == 1) return;
    listing_step(listing, NULL, 0, "as the next matmul reads them", "%s = silu(%s) * %s",
                 sharding_text(mesh, &layout->out.left, texts[0]),
                 sharding_text(mesh, &layout->in[0].right, texts[1]),
                 sharding_text(mesh, &layout->in[1].right, texts[2]));
}

void listing_mlp_forward(struct listing *listing, const struct layout_block *layout)
{
    norm_add(listing, layout);
    in_forward(listing, layout);
    gate_add(listing, layout);
    out_forward(listing, layout);
    residual_add(listing, layout);
}

/* The steps that make an array's gradient from above available: dOut, gathered. */
static void d_out_add(struct listing *listing, const struct layout_block *layout)
{
    struct sharding const d_out = layout_gradient(&layout->out.right);
    char text[SHARDING_TEXT_BYTES];
    listing_step(listing, NULL, 0, "", "%s = %s",
                 sharding_text(&listing->local->axes, &d_out, text),
                 is_attention(layout) ? "dX" : "...");
    (void)listing_gather(listing, &d_out, layout->out.d_weight.gather_right,
                         formats_of(listing)->activations, "on critical path");
}

static void d_weight_add(struct listing *listing, const struct layout_matrix *matrix)
{
    (void)listing_product(listing, &matrix->d_weight, formats_of(listing)->gradients, "",
                          "not on critical path, can be done async");
}

/* Why the listing's second gather of In costs nothing, or does. */
static void sharing_remark(struct listing *listing, const struct layout_block *layout,
                           char remark[REMARK_BYTES])
{
    char sharing[REMARK_BYTES - 32];
    uint32_t const step = *in_step(listing, layout);
    enum workload_remat remat = listing->local->plan->remat;
    if (remat == WORKLOAD_REMAT_NORMS && !local_is_llama(listing->local))
        remat = WORKLOAD_REMAT_NONE;
    switch (remat) {
    case WORKLOAD_REMAT_NONE:
        (void)snprintf(sharing, sizeof sharing,
                       "this can be skipped by sharing with (%u) from the forward pass, and is",
                       step);
        break;
    case WORKLOAD_REMAT_NORMS:
    case WORKLOAD_REMAT_BIG_MATMULS:
        (void)snprintf(sharing, sizeof sharing,
                       "this could be skipped by sharing with (%u) from the forward pass, but "
                       "%s does not keep it",
                       step, remat == WORKLOAD_REMAT_NORMS ? "norms" : "big_matmuls");
        break;
    case WORKLOAD_REMAT_BLOCK:
        (void)snprintf(sharing, sizeof sharing,
                       "this can be skipped by sharing with (%u) of the repeated forward pass, "
                       "and is",
                       step);
        break;
    }
    (void)snprintf(remark, REMARK_BYTES, "not on critical path; %s", sharing);
}

/* dOut · W_out -> dTmp */
static void d_tmp_add(struct listing *listing, const struct layout_block *layout)
{
    const struct layout_matrix *out = &layout->out;
    const struct sharding_mesh *mesh = &listing->local->axes;
    char remark[REMARK_BYTES] = "";
    char d_out[SHARDING_TEXT_BYTES];
    char weight[SHARDING_TEXT_BYTES];
    bool const gathered = out->d_left.gather_left != 0;
    weight_gather(listing, out, out->d_left.gather_right, true);
    if (gathered || out->d_left.gather_right != 0) {
        (void)snprintf(
            remark, sizeof remark, "can throw away %s%s%s here",
            gathered ? sharding_text(mesh, &out->d_left.left, d_out) : "",
            gathered && out->d_left.gather_right != 0 ? " and " : "",
            out->d_left.gather_right != 0 ? sharding_text(mesh, &out->d_left.right, weight) : "");
    }
    (void)listing_product(listing, &out->d_left, between_format(listing, layout), remark, "");
}

static void out_backward(struct listing *listing, const struct layout_block *layout)
{
    d_out_add(listing, layout);
    if (listing->local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST) {
        d_tmp_add(listing, layout);
        d_weight_add(listing, &layout->out);
    } else {
        d_weight_add(listing, &layout->out);
        d_tmp_add(listing, layout);
    }
}

/* dTmp · W_in -> dIn; several matrices add to one dIn, which is reduced once. */
static void d_in_add(struct listing *listing, const struct layout_block *layout)
{
    const struct sharding_mesh *mesh = &listing->local->axes;
    enum format const format = formats_of(listing)->activations;
    const struct sharding_product *product = NULL;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const struct layout_matrix *in = &layout->in[i];
        char remark[REMARK_BYTES];
        char weight[SHARDING_TEXT_BYTES];
        bool const last = i + 1 == layout->in_count;
        product = &in->d_left;
        weight_gather(listing, in, product->gather_right, true);
        bool const thrown = product->gather_right != 0;
        (void)snprintf(
            remark, sizeof remark, "%s%s%s%s", last ? "needed for previous layers" : "added up",
            thrown ? "; can throw away " : "",
            thrown ? sharding_text(mesh, &product->right, weight) : "", thrown ? " here" : "");
        struct sharding_product local_product = *product;
        local_product.scatter = local_product.all_reduce = 0;
        (void)listing_product(listing, &local_product, format, remark, "");
    }
    (void)listing_reduce(listing, product, format, "on critical path");
}

/* Chips that hold one KV head have each their part of its gradient. */
static void kv_sum_add(struct listing *listing, const struct layout_matrix *in)
{
    struct sharding const sum = in->d_weight.result;
    listing_step(listing, &sum, formats_of(listing)->gradients,
                 "one AllReduce for dW_K and dW_V, can be done async",
                 "%s = AllReduce(%s) over the %u chips that hold a head", sum.name, sum.name,
                 listing->local->kv_holders);
}

static void d_in_weights_add(struct listing *listing, const struct layout_block *layout)
{
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const struct layout_matrix *in = &layout->in[i];
        if (i == 0) {
            char remark[REMARK_BYTES];
            sharing_remark(listing, layout, remark);
            (void)listing_gather(listing, &in->left, in->d_weight.gather_left,
                                 formats_of(listing)->activations, remark);
        }
        struct sharding_product unreduced = in->d_weight;
        unreduced.scatter = unreduced.all_reduce = 0;
        (void)listing_product(listing, &unreduced, formats_of(listing)->gradients, "", "");
        bool const shared = is_attention(layout) && i > 0;
        if (shared && listing->local->kv_holders > 1) kv_sum_add(listing, in);
        (void)listing_reduce(listing, &in->d_weight, formats_of(listing)->gradients,
                             "not on critical path, can be done async");
    }
}

static void in_backward(struct listing *listing, const struct layout_block *layout)
{
    if (listing->local->plan->backward_order == WORKLOAD_BACKWARD_DX_FIRST) {
        d_in_add(listing, layout);
        d_in_weights_add(listing, layout);
    } else {
        d_in_weights_add(listing, layout);
        d_in_add(listing, layout);
    }
    norm_backward_add(listing, layout);
}

void listing_mlp_backward(struct listing *listing, const struct layout_block *layout)
{
    out_backward(listing, layout);
    if (layout->in_count == 2) {
        struct sharding const d_gate = layout_gradient(&layout->in[0].right);
        struct sharding const d_up = layout_gradient(&layout->in[1].right);
        struct sharding const d_tmp = layout_gradient(&layout->out.left);
        const struct sharding_mesh *mesh = &listing->local->axes;
        char texts[3][SHARDING_TEXT_BYTES];
        listing_step(listing, NULL, 0, "as the matmul before writes it", "%s, %s = silu'(%s)",
                     sharding_text(mesh, &d_gate, texts[0]), sharding_text(mesh, &d_up, texts[1]),
                     sharding_text(mesh, &d_tmp, texts[2]));
    }
    in_backward(listing, layout);
}

/* What ranks that share sequences exchange before attention. */
static void sequence_forward_add(struct listing *listing)
{
    const struct local *local = listing->local;
    uint32_t const ranks = local->sequence_parts;
    if (ranks == 1) return;
    if (local_turns(local))
        listing_step(listing, NULL, 0, "on critical path",
                     "Q, K, V of whole sequences, 1/%u of the heads = AllToAll(Q), (K), (V)",
                     ranks);
    else if (local_rings(local))
        listing_step(listing, NULL, 0, "each behind attention to the one before",
                     "K, V of the others: %u hops round the %u ranks of cp, one at a time",
                     ranks - 1, ranks);
    else
        listing_step(listing, NULL, 0, "on critical path",
                     "K, V of the sequence = AllGather(K, V) over its %u ranks", ranks);
}

static void sequence_backward_add(struct listing *listing)
{
    const struct local *local = listing->local;
    uint32_t const ranks = local->sequence_parts;
    if (ranks == 1) return;
    if (local_turns(local))
        listing_step(listing, NULL, 0, "on critical path",
                     "dQ, dK, dV of this rank's tokens = AllToAll(dQ), (dK), (dV)");
    else if (local_rings(local))
        listing_step(listing, NULL, 0, "all but the last hop behind attention",
                     "dK, dV go round after their K, V and are added up: %u hops, and one home",
                     ranks - 1);
    else
        listing_step(listing, NULL, 0, "on critical path",
                     "dK, dV of this rank = ReduceScatter(dK, dV) over the sequence's %u ranks",
                     ranks);
}

/* A[B_X, N_Y, H] = Attention(Q, K, V), after K and V of the whole sequence are there. */
void listing_attention_forward(struct listing *listing, const struct layout_block *layout)
{
    const struct local *local = listing->local;
    const struct sharding_mesh *mesh = &local->axes;
    char text[SHARDING_TEXT_BYTES], remark[REMARK_BYTES] = "unfused: T x S arrays in HBM";
    norm_add(listing, layout);
    in_forward(listing, layout);
    sequence_forward_add(listing);
    if (!local_is_unfused(local))
        (void)snprintf(remark, sizeof remark, "flash: no T x S array in HBM");
    if (local->window_layers != 0)
        (void)snprintf(remark, sizeof remark, "flash; in %llu of %llu layers to %llu keys at most",
                       (unsigned long long)local->window_layers,
                       (unsigned long long)local->plan->model.layers,
                       (unsigned long long)local->plan->model.window);
    listing_step(listing, &layout->out.left, formats_of(listing)->activations, remark,
                 "%s = Attention(Q, K, V)", sharding_text(mesh, &layout->out.left, text));
    if (local_turns(local))
        listing_step(listing, NULL, 0, "on critical path",
                     "A of this rank's tokens, all heads = AllToAll(A)");
    out_forward(listing, layout);
    residual_add(listing, layout);
}

void listing_attention_backward(struct listing *listing, const struct layout_block *layout)
{
    const struct local *local = listing->local;
    const struct sharding_mesh *mesh = &local->axes;
    struct sharding const d_a = layout_gradient(&layout->out.left);
    struct sharding const d_q = layout_gradient(&layout->in[0].right);
    char texts[2][SHARDING_TEXT_BYTES];
    out_backward(listing, layout);
    if (local_turns(local))
        listing_step(listing, NULL, 0, "on critical path",
                     "dA of whole sequences, 1/%u of the heads = AllToAll(dA)", local->cp);
    if (local_rings(local))
        listing_step(listing, NULL, 0, "each behind attention to the one before",
                     "K, V of the others: %u hops round the ranks of cp again", local->cp - 1);
    listing_step(listing, &d_q, formats_of(listing)->activations, "computes the scores again",
                 "%s, dK, dV = Attention'(%s)", sharding_text(mesh, &d_q, texts[0]),
                 sharding_text(mesh, &d_a, texts[1]));
    sequence_backward_add(listing);
    in_backward(listing, layout);
}
