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

/* What is gathered and reduced with a matrix. */
static uint32_t unit_of(const struct listing *listing, const struct layout_block *layout,
                        const struct layout_matrix *matrix)
{
    const struct local_layer *layer = &listing->local->layer[local_last_kind(listing->local)];
    bool const alone = listing->local->plan->gather == WORKLOAD_GATHER_TENSOR;
    uint32_t const place = is_attention(layout) ? LOCAL_ATTENTION_IN : LOCAL_MLP_IN;
    uint32_t unit = 0;
    while (alone ? strcmp(layer->unit[unit].name, matrix->weight.name) != 0
                 : (layer->unit[unit].places >> place & 1) == 0)
        unit++;
    SIM_ASSERT(unit < layer->unit_count);
    return unit;
}

void listing_weight_tell(struct listing *listing, const struct layout_block *layout,
                         const struct layout_matrix *matrix, uint32_t axes)
{
    uint32_t const unit = unit_of(listing, layout, matrix);
    const struct local_layer *layer = &listing->local->layer[local_last_kind(listing->local)];
    if (axes == 0 || (listing->gathered >> unit & 1) != 0) return;
    listing->gathered |= 1u << unit;
    listing_tell_axes(listing, COLLECTIVE_ALL_GATHER, axes, formats_of(listing)->weights,
                      layer->unit[unit].elements);
}

/* The reductions of a unit's gradients, which stand with its first matrix. */
static void gradient_tell(struct listing *listing, const struct layout_block *layout,
                          const struct layout_matrix *matrix)
{
    const struct sharding_product *product = &matrix->d_weight;
    uint32_t const unit = unit_of(listing, layout, matrix);
    const struct local_layer *layer = &listing->local->layer[local_last_kind(listing->local)];
    uint64_t const elements = layer->unit[unit].elements;
    enum format const format = formats_of(listing)->gradients;
    if ((listing->reduced >> unit & 1) != 0) return;
    listing->reduced |= 1u << unit;
    if (product->scatter != 0)
        listing_tell_axes(listing, COLLECTIVE_REDUCE_SCATTER, product->scatter, format, elements);
    if (product->all_reduce != 0)
        listing_tell_axes(listing, COLLECTIVE_ALL_REDUCE, product->all_reduce, format,
                          elements / listing->local->shards);
}

/* Those of an array between the matmuls. */
static void gather_tell(struct listing *listing, const struct sharding *array, uint32_t axes)
{
    struct sharding const gathered = sharding_gathered(array, axes);
    if (axes == 0) return;
    listing_tell_axes(listing, COLLECTIVE_ALL_GATHER, axes, formats_of(listing)->activations,
                      sharding_local_elements(&listing->local->axes, &gathered));
}

static void reduce_tell(struct listing *listing, const struct sharding_product *product)
{
    enum format const format = formats_of(listing)->activations;
    uint64_t const elements = sharding_local_elements(&listing->local->axes, &product->result);
    if (product->scatter != 0)
        listing_tell_axes(listing, COLLECTIVE_REDUCE_SCATTER, product->scatter, format, elements);
    if (product->all_reduce != 0)
        listing_tell_axes(listing, COLLECTIVE_ALL_REDUCE, product->all_reduce, format, elements);
}

static void weight_gather(struct listing *listing, const struct layout_block *layout,
                          const struct layout_matrix *matrix, uint32_t axes, bool backward)
{
    bool const repeated = workload_remat_repeats(listing->local->plan->remat);
    const char *remark = "not on critical path, can do it during previous layer";
    if (backward || listing->local->tp > 1) remark = "can be done ahead of time";
    if (backward && repeated) remark = "shared with the repeated forward pass";
    (void)listing_gather(listing, &matrix->weight, axes, formats_of(listing)->weights, remark);
    listing_weight_tell(listing, layout, matrix, axes);
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
            gather_tell(listing, &in->left, in->forward.gather_left);
            *in_step(listing, layout) = listing->step;
        }
        weight_gather(listing, layout, in, in->forward.gather_right, false);
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
    weight_gather(listing, layout, out, out->forward.gather_right, false);
    (void)listing_product(listing, &out->forward, formats_of(listing)->activations, "",
                          "on critical path");
    reduce_tell(listing, &out->forward);
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
    listing->read_step = listing->step;
    listing->read_count = listing->made->listed_count;
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
    gather_tell(listing, &d_out, layout->out.d_weight.gather_right);
}

static void d_weight_add(struct listing *listing, const struct layout_block *layout,
                         const struct layout_matrix *matrix)
{
    gradient_tell(listing, layout, matrix);
    (void)listing_product(listing, &matrix->d_weight, formats_of(listing)->gradients, "",
                          "not on critical path, can be done async");
}

/* Why the listing's second gather of In costs nothing, or does: then it is told. */
static void sharing_remark(struct listing *listing, const struct layout_block *layout,
                           char remark[REMARK_BYTES])
{
    char sharing[REMARK_BYTES - 32];
    uint32_t const step = *in_step(listing, layout);
    enum workload_remat remat = listing->local->plan->remat;
    bool const parts = local_keeps_parts(listing->local);
    if (remat == WORKLOAD_REMAT_NORMS && !local_is_llama(listing->local))
        remat = WORKLOAD_REMAT_NONE;
    if (parts) remat = WORKLOAD_REMAT_NORMS;
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
                       "%s",
                       step,
                       parts                           ? "none keeps a rank's part alone"
                       : remat == WORKLOAD_REMAT_NORMS ? "norms does not keep it"
                                                       : "big_matmuls does not keep it");
        break;
    case WORKLOAD_REMAT_BLOCK:
    case WORKLOAD_REMAT_LAYER:
        (void)snprintf(sharing, sizeof sharing,
                       "this can be skipped by sharing with (%u) of the repeated forward pass, "
                       "and is",
                       step);
        break;
    }
    (void)snprintf(remark, REMARK_BYTES, "not on critical path; %s", sharing);
    if (remat != WORKLOAD_REMAT_NORMS && remat != WORKLOAD_REMAT_BIG_MATMULS) return;
    gather_tell(listing, &layout->in[0].left, layout->in[0].d_weight.gather_left);
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
    weight_gather(listing, layout, out, out->d_left.gather_right, true);
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
        d_weight_add(listing, layout, &layout->out);
    } else {
        d_weight_add(listing, layout, &layout->out);
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
        weight_gather(listing, layout, in, product->gather_right, true);
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
    reduce_tell(listing, product);
}

/* Chips that hold one KV head have each their part of its gradient. */
static void kv_sum_add(struct listing *listing, const struct layout_matrix *in)
{
    struct sharding const sum = in->d_weight.result;
    listing_step(listing, &sum, formats_of(listing)->gradients,
                 "one AllReduce for dW_K and dW_V, can be done async",
                 "%s = AllReduce(%s) over the %u chips that hold a head", sum.name, sum.name,
                 listing->local->kv_holders);
    if (in->weight.name[2] != 'K') return; /* W_K's AllReduce is W_V's, too. */
    listing_tell(listing, COLLECTIVE_ALL_REDUCE, "kv",
                 format_bytes(formats_of(listing)->gradients, listing->local->partial_elements));
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
        gradient_tell(listing, layout, in);
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

/* Keys and values of sequences that neighbours share, or their gradients. */
static void sequence_tell(struct listing *listing, enum collective_kind kind)
{
    const struct local *local = listing->local;
    uint64_t const columns = local->attention_kv_heads * (local->head_width + local->value_width);
    listing_tell(
        listing, kind, "sequence",
        format_bytes(formats_of(listing)->activations, local->sequences * local->keys * columns));
}

static void sequence_forward_add(struct listing *listing)
{
    uint32_t const ranks = listing->local->sequence_parts;
    if (ranks == 1) return;
    listing_step(listing, NULL, 0, "on critical path",
                 "K, V of the sequence = AllGather(K, V) over its %u ranks", ranks);
    sequence_tell(listing, COLLECTIVE_ALL_GATHER);
}

/* big_matmuls computes attention again, so it gathers again. */
static void sequence_backward_add(struct listing *listing)
{
    uint32_t const ranks = listing->local->sequence_parts;
    if (ranks == 1) return;
    if (listing->local->plan->remat == WORKLOAD_REMAT_BIG_MATMULS)
        sequence_tell(listing, COLLECTIVE_ALL_GATHER);
    listing_step(listing, NULL, 0, "on critical path",
                 "dK, dV of this rank = ReduceScatter(dK, dV) over the sequence's %u ranks", ranks);
    sequence_tell(listing, COLLECTIVE_REDUCE_SCATTER);
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
    listing_step(listing, &d_q, formats_of(listing)->activations, "computes the scores again",
                 "%s, dK, dV = Attention'(%s)", sharding_text(mesh, &d_q, texts[0]),
                 sharding_text(mesh, &d_a, texts[1]));
    sequence_backward_add(listing);
    in_backward(listing, layout);
}
