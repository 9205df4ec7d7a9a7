/*
 * The embedding before the layers, the head behind them, and modules that predict a further token
 * (local_predictors.c), from their graphs: what is said here is how each use of a matrix shares it
 * with the others.
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

struct local_unit lower_embedding_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_embedding",
                               .elements = local->vocabulary_elements + local->position_elements +
                                           (local->tied ? local->head_vectors : 0)};
}

struct local_unit lower_head_unit(const struct local *local)
{
    if (local->tied) return lower_embedding_unit(local);
    return (struct local_unit){.name = "W_head",
                               .elements = local->vocabulary_elements + local->head_vectors};
}

/* Of these, what a lookup reads: the final norm is the head's, */
static struct local_unit lookup_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_embedding",
                               .elements = local->vocabulary_elements + local->position_elements};
}

/* and what the head reads: rows by position are the embedding's. */
static struct local_unit head_read_unit(const struct local *local)
{
    struct local_unit unit = lower_head_unit(local);
    unit.elements = local->vocabulary_elements + local->head_vectors;
    return unit;
}

static struct local_unit module_unit(const struct local *local)
{
    return (struct local_unit){.name = "W_mtp", .elements = local->predictor_elements};
}

uint64_t lower_embedding_gathered(const struct local *local)
{
    return lookup_unit(local).elements;
}

uint64_t lower_head_gathered(const struct local *local)
{
    return head_read_unit(local).elements;
}

uint32_t lower_predictor_units(const struct local *local,
                               struct local_unit ret_units[LOWER_PREDICTOR_UNITS_MAX])
{
    const struct local_layer *layer = &local->layer[local_last_kind(local)];
    uint32_t count = 0;
    for (; count < layer->unit_count; count++) ret_units[count] = layer->unit[count];
    ret_units[count++] = module_unit(local);
    return count;
}

uint32_t lower_unit_gather(struct lower *lower, const struct local_unit *unit)
{
    uint32_t const before = lower->build.op_count;
    lower_units_gather(lower, unit, 1, false);
    return lower->build.op_count > before ? before : LOWER_NONE;
}

/* --- The embedding --- */

/* The update is of the whole unit, and modules find it gathered where they share it. Backward
 * nothing is read; but what is to stay for later passes is gathered. */
static struct emit_use lookup_use(const struct lower *lower, bool of_module, bool backward)
{
    const struct local *local = lower->local;
    bool const is_there = lower->updated && of_module && !local->twin_reads;
    bool const shares = local->predictors != 0 && local->pp > 1 && local->ends_meet;
    return (struct emit_use){
        .prefix = of_module ? "mtp." : "",
        .unit = lower_embedding_unit(local),
        .read = lower->updated ? lower_embedding_unit(local) : lookup_unit(local),
        .gathers = backward || !is_there,
        .gives = !backward && !is_there,
        .last = shares ? lower->last_lookup : lower->last_microbatch,
        .autograd_elements = local->vocabulary_elements,
    };
}

static struct emit_end embedding_end(const struct lower *lower, bool backward)
{
    bool const used = graph_terms_embedding_used(lower->local);
    struct emit_end end = {
        .part = BLOCK_EMBEDDING, .used_before = used, .use = {lookup_use(lower, false, backward)}};
    end.use[0].opens = !used;
    end.use[0].closes = true;
    return end;
}

void lower_embedding_forward(struct lower *lower)
{
    struct emit_end const end = embedding_end(lower, false);
    emit_end(lower, &end, false);
}

void lower_embedding_backward(struct lower *lower, const struct lower_behind *update)
{
    struct emit_end const end = embedding_end(lower, true);
    emit_end(lower, &end, true);
    lower_update_behind(lower, update);
}

/* --- The head --- */

static struct emit_end head_end(const struct lower *lower, bool of_module)
{
    const struct local *local = lower->local;
    return (struct emit_end){.part = BLOCK_HEAD,
                             .used_before = of_module,
                             .use = {{.prefix = of_module ? "mtp." : "",
                                      .unit = lower_head_unit(local),
                                      .read = head_read_unit(local),
                                      .opens = !of_module,
                                      .last = lower->last_microbatch,
                                      .autograd_elements = local->vocabulary_elements}}};
}

/* The head's backward pass follows its forward pass at once, unless a pipeline's schedule has other
 * passes between them. */
static bool head_keeps_weights(const struct lower *lower)
{
    return lower->local->shards == 1 || lower->local->pp == 1 || lower->head_stays;
}

/* The model's own head is the last of the forward pass, and the first of the backward pass. Tied,
 * what was updated is gathered with the lookup. */
static void own_head(struct lower *lower, bool backward)
{
    const struct local *local = lower->local;
    bool const alone = local->predictors == 0, keeps = head_keeps_weights(lower);
    struct emit_end end = head_end(lower, false);
    end.shares_input = !alone && !local->predictors_apart;
    end.use[0].gathers = backward ? !keeps : alone && !(lower->updated && local->tied);
    end.use[0].gives = backward ? alone : !keeps;
    end.use[0].closes = alone && !local->tied;
    emit_end(lower, &end, backward);
}

static void module_head(struct lower *lower, struct lower_place place, bool backward)
{
    struct emit_end end = head_end(lower, true);
    end.shares_input = !place.last && !lower->local->predictors_apart;
    end.use[0].gathers = !backward && place.first;
    end.use[0].gives = backward && place.first;
    end.use[0].closes = place.first;
    emit_end(lower, &end, backward);
}

void lower_head_forward(struct lower *lower)
{
    own_head(lower, false);
}

void lower_head_backward(struct lower *lower)
{
    own_head(lower, true);
}

void lower_predictor_head_forward(struct lower *lower, struct lower_place place)
{
    module_head(lower, place, false);
}

void lower_predictor_head_backward(struct lower *lower, struct lower_place place)
{
    module_head(lower, place, true);
}

/* --- Layers: around what their graphs give, weights, updates and copies --- */

void lower_layer_forward(struct lower *lower, bool top)
{
    lower_units_gather(lower, lower->layer->unit, lower->layer->unit_count, false);
    emit_forward(lower);
    if (!top && local_offloads_activations(lower->local)) lower_offload_forward(lower);
}

/* One gather of the weights serves the repetition and the gradients. */
void lower_layer_backward(struct lower *lower, bool top, const struct lower_behind *update)
{
    bool const reads = lower_has_input(lower);
    bool const again = reads && workload_remat_repeats(lower->local->plan->remat);
    bool const gathers = reads || lower->keeping == LOWER_TAKES;
    if (gathers) lower_units_gather(lower, lower->layer->unit, lower->layer->unit_count, !again);
    emit_backward(lower);
    if (!top && local_offloads_activations(lower->local)) lower_offload_backward(lower);
    lower_update_behind(lower, update);
}

/* --- Modules --- */

static void module_own(struct lower *lower, struct lower_place place, bool backward)
{
    const struct local *local = lower->local;
    struct emit_use const own = {.prefix = "",
                                 .unit = module_unit(local),
                                 .read = module_unit(local),
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
    end.use[0].closes = place.first && local->pp > 1;
    emit_end(lower, &end, backward);
}

void lower_predictor_forward(struct lower *lower, struct lower_place place)
{
    lower->layer = &lower->local->layer[local_last_kind(lower->local)];
    module_own(lower, place, false);
    lower_layer_forward(lower, /* top= */ true);
    if (!lower->local->predictors_apart) module_head(lower, place, false);
}

void lower_predictor_backward(struct lower *lower, struct lower_place place)
{
    static const struct lower_behind no_update = {0};
    lower->layer = &lower->local->layer[local_last_kind(lower->local)];
    if (!lower->local->predictors_apart) module_head(lower, place, true);
    lower_layer_backward(lower, /* top= */ true, &no_update);
    module_own(lower, place, true);
}
