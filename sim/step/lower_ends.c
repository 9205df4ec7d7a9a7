/*
 * The embedding before the layers, the head behind them, and modules that predict a further token
 * (workloads/blocks/mtp.c), from their graphs: what is said here is how each use of a matrix shares
 * it with the others.
 *
 * The head is not recomputed: its backward pass follows at once, with weights and logits still
 * there. Gradients of one matrix that is used several times, tied or looked up and multiplied by
 * modules too, are summed on the chip and reduced once, after the last use of the backward pass.
 * Where two stages of a rank share an embedding, each pass reduces as it would by itself: what is
 * accumulated whole, once.
 *
 * A module is one slot: its own part; a layer; and the head. Modules' forward passes come before
 * the model's own head, as in Megatron, where all losses end the forward pass, and so behind it in
 * the backward pass: the gradient of the model's last layer is the sum of both, and so it is from
 * module to module. A pipeline may have its modules on a stage before the head's: then the head is
 * a slot of that stage, to which go what all modules and the model's last layer give.
 */
#include "sim/step/emit.h"
#include "sim/step/graph_terms.h"
#include "sim/step/lower.h"

/* --- Buckets --- */

uint32_t lower_buckets_of(const struct ranks *ranks, enum lower_module module,
                          struct bucket ret_buckets[LOWER_BUCKETS_MAX])
{
    const struct ranks_layer *layer = &ranks->layer[lower_kind_of(ranks, module)];
    bool const has_layer = lower_is_layer(module) || module == MODULE_MTP;
    uint32_t count = 0;
    for (; has_layer && count < layer->bucket_count; count++)
        ret_buckets[count] = layer->bucket[count];
    if (module == MODULE_EMBEDDING) ret_buckets[count++] = ranks->end[BLOCK_EMBEDDING].bucket;
    if (module == MODULE_HEAD) ret_buckets[count++] = ranks->end[BLOCK_HEAD].bucket;
    if (module == MODULE_MTP) ret_buckets[count++] = ranks->end[BLOCK_MTP].bucket;
    return count;
}

uint64_t lower_gathered_bytes(const struct lower *lower, enum lower_module module)
{
    const struct ranks_layer *layer = &lower->ranks->layer[lower_kind_of(lower->ranks, module)];
    uint64_t bytes = 0;
    if (module == MODULE_EMBEDDING) return bucket_bytes(&lower->ranks->end[BLOCK_EMBEDDING].read);
    if (module == MODULE_HEAD) return bucket_bytes(&lower->ranks->end[BLOCK_HEAD].read);
    SIM_ASSERT(lower_is_layer(module));
    for (uint32_t u = 0; u < layer->bucket_count; u++) bytes += bucket_bytes(&layer->bucket[u]);
    return bytes;
}

/* --- The embedding --- */

/* The update is of the whole module, and modules of MTP find it gathered where they share it.
 * Backward nothing is read; but what is to stay for later passes is gathered. */
static struct emit_use lookup_use(const struct lower *lower, bool of_module, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    bool const is_there = lower->part.updated && of_module && !ranks->tie.lookup;
    return (struct emit_use){
        .prefix = of_module ? "mtp." : "",
        .bucket = ranks->end[BLOCK_EMBEDDING].bucket,
        .read = lower->part.updated ? ranks->end[BLOCK_EMBEDDING].bucket
                                    : ranks->end[BLOCK_EMBEDDING].read,
        .gathers = backward || !is_there,
        .gives = !backward && !is_there,
        .last = lower->part.last_lookup,
        .autograd_elements = ranks->end[BLOCK_EMBEDDING].matrix,
    };
}

static void embedding(struct lower *lower, bool backward)
{
    bool const used = step_embedding_used(lower->ranks);
    struct emit_end end = {
        .part = BLOCK_EMBEDDING, .used_before = used, .use = {lookup_use(lower, false, backward)}};
    end.use[0].opens = !used;
    end.use[0].closes = true;
    emit_end(lower, &end, backward);
}

/* --- The head --- */

static struct emit_end head_end(const struct lower *lower, bool of_module)
{
    const struct ranks *ranks = lower->ranks;
    return (struct emit_end){.part = BLOCK_HEAD,
                             .used_before = of_module,
                             .use = {{.prefix = of_module ? "mtp." : "",
                                      .bucket = ranks->end[BLOCK_HEAD].bucket,
                                      .read = ranks->end[BLOCK_HEAD].read,
                                      .opens = !of_module,
                                      .last = lower->part.last,
                                      .autograd_elements = ranks->end[BLOCK_HEAD].matrix}}};
}

/* The model's own head is the last of the forward pass, and the first of the backward pass. Tied,
 * what was updated is gathered with the lookup. */
static void head(struct lower *lower, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    bool const alone = ranks->mtp.modules == 0,
               keeps = ranks->shards == 1 || lower->part.head_stays;
    struct emit_end end = head_end(lower, false);
    end.shares_input = !alone && !ranks->mtp.apart;
    end.use[0].gathers = backward ? !keeps : alone && !(lower->part.updated && ranks->tie.here);
    end.use[0].gives = backward ? alone : !keeps;
    end.use[0].closes = alone && !ranks->tie.here;
    emit_end(lower, &end, backward);
}

static void mtp_head(struct lower *lower, bool backward)
{
    struct mtp_position const place = lower->part.place;
    struct emit_end end = head_end(lower, true);
    end.shares_input = !place.last && !lower->ranks->mtp.apart;
    end.use[0].gathers = !backward && place.first;
    end.use[0].gives = backward && place.first;
    end.use[0].closes = place.first;
    emit_end(lower, &end, backward);
}

/* --- Layers: around what their graphs give, weights, updates and copies --- */

static void layer_forward(struct lower *lower)
{
    lower_buckets_gather(lower, lower->layer->bucket, lower->layer->bucket_count, false);
    emit_forward(lower);
    if (!lower->part.top && ranks_offloads_activations(lower->ranks)) lower_offload_forward(lower);
}

/* One gather of the weights serves the repetition and the gradients. */
static void layer_backward(struct lower *lower)
{
    bool const reads = lower_has_input(lower);
    bool const again = reads && graph_remat_repeats(lower->ranks->plan->remat) &&
                       !lower->ranks->kinds.kind[lower->kind].keeps;
    bool const gathers = reads || lower->part.keeping == LOWER_TAKES;
    if (gathers)
        lower_buckets_gather(lower, lower->layer->bucket, lower->layer->bucket_count, !again);
    emit_backward(lower);
    if (!lower->part.top && ranks_offloads_activations(lower->ranks)) lower_offload_backward(lower);
}

/* --- Modules --- */

static void mtp_own(struct lower *lower, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    struct mtp_position const place = lower->part.place;
    struct emit_use const own = {.prefix = "",
                                 .bucket = ranks->end[BLOCK_MTP].bucket,
                                 .read = ranks->end[BLOCK_MTP].bucket,
                                 .gathers = !backward || lower_has_input(lower),
                                 .ahead = true,
                                 .gives = true,
                                 .opens = true,
                                 .closes = true,
                                 .last = lower->part.last};
    struct emit_end end = {.part = BLOCK_MTP,
                           .used_before = !place.last,
                           .use = {lookup_use(lower, true, backward), own}};
    end.use[0].opens = place.last;
    end.use[0].closes = place.first && ranks->pp > 1;
    emit_end(lower, &end, backward);
}

static void mtp(struct lower *lower, bool backward)
{
    bool const has_head = !lower->ranks->mtp.apart;
    if (!backward) mtp_own(lower, backward);
    if (backward && has_head) mtp_head(lower, backward);
    (backward ? layer_backward : layer_forward)(lower);
    if (!backward && has_head) mtp_head(lower, backward);
    if (backward) mtp_own(lower, backward);
}

void lower_module_emit(struct lower *lower)
{
    bool const backward = lower->part.act != ACT_FORWARD && lower->part.act != ACT_AGAIN;
    uint32_t const module = lower->part.module;
    switch (lower_is_layer(module) ? MODULE_LAYER : (enum lower_module)module) {
    case MODULE_EMBEDDING:
        embedding(lower, backward);
        break;
    case MODULE_LAYER:
        (backward ? layer_backward : layer_forward)(lower);
        break;
    case MODULE_MTP:
        mtp(lower, backward);
        break;
    case MODULE_MTP_HEAD:
        mtp_head(lower, backward);
        break;
    case MODULE_HEAD:
        head(lower, backward);
        break;
    case MODULE_NOTHING:
    case MODULE_COUNT:
        break;
    }
}
