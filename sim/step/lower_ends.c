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

struct bucket lower_embedding_bucket(const struct ranks *ranks)
{
    return (struct bucket){.name = "W_embedding",
                           .elements = ranks->vocabulary_elements + ranks->position_elements +
                                       (ranks->tied ? ranks->head_vectors : 0)};
}

struct bucket lower_head_bucket(const struct ranks *ranks)
{
    if (ranks->tied) return lower_embedding_bucket(ranks);
    return (struct bucket){.name = "W_head",
                           .elements = ranks->vocabulary_elements + ranks->head_vectors};
}

/* Of these, what a lookup reads: the final norm is the head's, */
static struct bucket lookup_unit(const struct ranks *ranks)
{
    return (struct bucket){.name = "W_embedding",
                           .elements = ranks->vocabulary_elements + ranks->position_elements};
}

/* and what the head reads: rows by position are the embedding's. */
static struct bucket head_read_unit(const struct ranks *ranks)
{
    struct bucket bucket = lower_head_bucket(ranks);
    bucket.elements = ranks->vocabulary_elements + ranks->head_vectors;
    return bucket;
}

static struct bucket module_bucket(const struct ranks *ranks)
{
    return (struct bucket){.name = "W_mtp", .elements = ranks->mtp_elements};
}

uint64_t lower_embedding_gathered(const struct ranks *ranks)
{
    return lookup_unit(ranks).elements;
}

uint64_t lower_head_gathered(const struct ranks *ranks)
{
    return head_read_unit(ranks).elements;
}

uint32_t lower_mtp_buckets(const struct ranks *ranks,
                           struct bucket ret_buckets[LOWER_MTP_BUCKETS_MAX])
{
    const struct ranks_layer *layer = &ranks->layer[ranks_last_kind(ranks)];
    uint32_t count = 0;
    for (; count < layer->bucket_count; count++) ret_buckets[count] = layer->bucket[count];
    ret_buckets[count++] = module_bucket(ranks);
    return count;
}

uint32_t lower_bucket_gather(struct lower *lower, const struct bucket *bucket)
{
    uint32_t const before = lower->build.op_count;
    lower_buckets_gather(lower, bucket, 1, false);
    return lower->build.op_count > before ? before : LOWER_NONE;
}

/* --- The embedding --- */

/* The update is of the whole unit, and modules find it gathered where they share it. Backward
 * nothing is read; but what is to stay for later passes is gathered. */
static struct emit_use lookup_use(const struct lower *lower, bool of_module, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    bool const is_there = lower->updated && of_module && !ranks->tied_lookup;
    bool const shares = ranks->mtp_modules != 0 && ranks->pp > 1 && ranks->ends_meet;
    return (struct emit_use){
        .prefix = of_module ? "mtp." : "",
        .bucket = lower_embedding_bucket(ranks),
        .read = lower->updated ? lower_embedding_bucket(ranks) : lookup_unit(ranks),
        .gathers = backward || !is_there,
        .gives = !backward && !is_there,
        .last = shares ? lower->last_lookup : lower->last_microbatch,
        .autograd_elements = ranks->vocabulary_elements,
    };
}

void lower_embedding(struct lower *lower, bool backward)
{
    bool const used = graph_terms_embedding_used(lower->ranks);
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
                                      .bucket = lower_head_bucket(ranks),
                                      .read = head_read_unit(ranks),
                                      .opens = !of_module,
                                      .last = lower->last_microbatch,
                                      .autograd_elements = ranks->vocabulary_elements}}};
}

/* The head's backward pass follows its forward pass at once, unless a pipeline's schedule has other
 * passes between them. */
static bool head_keeps_weights(const struct lower *lower)
{
    return lower->ranks->shards == 1 || lower->ranks->pp == 1 || lower->head_stays;
}

/* The model's own head is the last of the forward pass, and the first of the backward pass. Tied,
 * what was updated is gathered with the lookup. */
void lower_head(struct lower *lower, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    bool const alone = ranks->mtp_modules == 0, keeps = head_keeps_weights(lower);
    struct emit_end end = head_end(lower, false);
    end.shares_input = !alone && !ranks->mtp_apart;
    end.use[0].gathers = backward ? !keeps : alone && !(lower->updated && ranks->tied);
    end.use[0].gives = backward ? alone : !keeps;
    end.use[0].closes = alone && !ranks->tied;
    emit_end(lower, &end, backward);
}

void lower_mtp_head(struct lower *lower, struct mtp_position place, bool backward)
{
    struct emit_end end = head_end(lower, true);
    end.shares_input = !place.last && !lower->ranks->mtp_apart;
    end.use[0].gathers = !backward && place.first;
    end.use[0].gives = backward && place.first;
    end.use[0].closes = place.first;
    emit_end(lower, &end, backward);
}

/* --- Layers: around what their graphs give, weights, updates and copies --- */

void lower_layer_forward(struct lower *lower, bool top)
{
    lower_buckets_gather(lower, lower->layer->bucket, lower->layer->bucket_count, false);
    emit_forward(lower);
    if (!top && ranks_offloads_activations(lower->ranks)) lower_offload_forward(lower);
}

/* One gather of the weights serves the repetition and the gradients. */
void lower_layer_backward(struct lower *lower, bool top, const struct delayed_update *update)
{
    bool const reads = lower_has_input(lower);
    bool const again = reads && workload_remat_repeats(lower->ranks->plan->remat);
    bool const gathers = reads || lower->keeping == LOWER_TAKES;
    if (gathers)
        lower_buckets_gather(lower, lower->layer->bucket, lower->layer->bucket_count, !again);
    emit_backward(lower);
    if (!top && ranks_offloads_activations(lower->ranks)) lower_offload_backward(lower);
    lower_update_delayed(lower, update);
}

/* --- Modules --- */

static void module_own(struct lower *lower, struct mtp_position place, bool backward)
{
    const struct ranks *ranks = lower->ranks;
    struct emit_use const own = {.prefix = "",
                                 .bucket = module_bucket(ranks),
                                 .read = module_bucket(ranks),
                                 .gathers = !backward || lower_has_input(lower),
                                 .ahead = true,
                                 .gives = true,
                                 .opens = true,
                                 .closes = true,
                                 .last = lower->last_microbatch};
    struct emit_end end = {.part = BLOCK_MTP,
                           .used_before = !place.last,
                           .use = {lookup_use(lower, true, backward), own}};
    end.use[0].opens = place.last;
    end.use[0].closes = place.first && ranks->pp > 1;
    emit_end(lower, &end, backward);
}

void lower_mtp_forward(struct lower *lower, struct mtp_position place)
{
    lower->layer = &lower->ranks->layer[ranks_last_kind(lower->ranks)];
    module_own(lower, place, false);
    lower_layer_forward(lower, /* top= */ true);
    if (!lower->ranks->mtp_apart) lower_mtp_head(lower, place, false);
}

void lower_mtp_backward(struct lower *lower, struct mtp_position place)
{
    static const struct delayed_update no_update = {0};
    lower->layer = &lower->ranks->layer[ranks_last_kind(lower->ranks)];
    if (!lower->ranks->mtp_apart) lower_mtp_head(lower, place, true);
    lower_layer_backward(lower, /* top= */ true, &no_update);
    module_own(lower, place, true);
}
