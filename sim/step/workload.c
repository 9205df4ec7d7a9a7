#include "sim/step/workload.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/step/pipeline.h"

enum { BLOCKS_MAX_A_MICROBATCH = 8, BLOCKS_OF_THE_UPDATE = 4 };

/* A model of two kinds of layers has its experts at the top. */
static bool is_mixed(const struct ranks *ranks)
{
    return ranks->layer[LAYER_DENSE].count != 0 && ranks->layer[LAYER_MOE].count != 0;
}

static void kind_set(struct lower *lower, bool top)
{
    const struct ranks *ranks = lower->ranks;
    uint32_t const kind = is_mixed(ranks) && !top ? LAYER_DENSE : ranks_last_kind(ranks);
    lower->layer = &ranks->layer[kind];
}

/* What templates of layers differ in. */
struct layer_variant {
    bool top, windowed;
};

static uint16_t layer_forward(struct lower *lower, struct layer_variant variant, bool updated)
{
    kind_set(lower, variant.top);
    lower_template_begin(lower, "layer forward");
    lower->updated = updated;
    lower->windowed = variant.windowed;
    lower_layer_forward(lower, variant.top);
    return lower_template_end(lower);
}

static uint16_t layer_backward(struct lower *lower, bool last_microbatch,
                               struct layer_variant variant, const struct delayed_update *update)
{
    kind_set(lower, variant.top);
    lower_template_begin(lower, "layer backward");
    lower->last_microbatch = last_microbatch;
    lower->windowed = variant.windowed;
    lower_layer_backward(lower, variant.top, update);
    return lower_template_end(lower);
}

static uint16_t embedding_forward(struct lower *lower, bool updated)
{
    lower_template_begin(lower, "embedding forward");
    lower->updated = updated;
    lower_embedding(lower, false);
    return lower_template_end(lower);
}

static uint16_t embedding_backward(struct lower *lower, bool last_microbatch,
                                   const struct delayed_update *update)
{
    lower_template_begin(lower, "embedding backward");
    lower->last_microbatch = last_microbatch;
    lower_embedding(lower, true);
    lower_update_delayed(lower, update);
    return lower_template_end(lower);
}

static uint16_t head_forward(struct lower *lower, bool updated)
{
    lower_template_begin(lower, "head forward");
    lower->updated = updated;
    lower_head(lower, false);
    return lower_template_end(lower);
}

static uint16_t head_backward(struct lower *lower, bool last_microbatch)
{
    lower_template_begin(lower, "head backward");
    lower->last_microbatch = last_microbatch;
    lower_head(lower, true);
    return lower_template_end(lower);
}

/* Places of modules that predict further tokens, by which templates differ. */
enum { PLACES = 4 };

static uint32_t place_index(struct mtp_position place)
{
    return place.first + 2u * place.last;
}

/* [top][windowed]. Top are the last layers, where they are unlike the others: the last one if
 * something is offloaded, those with experts. Only what some layer is, or top or not the same. */
struct layer_templates {
    uint16_t of[2][2];
};

/* The templates of a step, and the list of blocks under construction. */
struct step {
    uint16_t embedding_forward[2], head_forward[2];   /* [first microbatch] */
    uint16_t head_backward[2], embedding_backward[2]; /* [last microbatch] */
    struct layer_templates layer_forward[2], layer_backward[2];
    uint16_t mtp_forward[2][PLACES], mtp_backward[2][PLACES];
    struct program_block *block;
    uint32_t block_count;
};

/* Calls for each place that some module has. `of_end`: of the first microbatch of a forward pass
 * that gathers what was updated, of the last microbatch of a backward pass. */
static void mtp_build(struct lower *lower, uint16_t templates[PLACES], bool forward, bool of_end)
{
    bool built[PLACES] = {false};
    for (uint64_t k = 0; k < lower->ranks->mtp_modules; k++) {
        struct mtp_position const place = mtp_position_at(lower->ranks, k);
        uint32_t const index = place_index(place);
        if (built[index]) continue;
        built[index] = true;
        lower_template_begin(lower, forward ? "mtp forward" : "mtp backward");
        lower->updated = forward && of_end;
        lower->last_microbatch = forward || of_end;
        (forward ? lower_mtp_forward : lower_mtp_backward)(lower, place);
        templates[index] = lower_template_end(lower);
    }
}

static void block_add(struct step *step, uint16_t template_index, enum program_phase phase,
                      const char *name, uint32_t microbatch)
{
    step->block[step->block_count++] = (struct program_block){.template_index = template_index,
                                                              .phase = phase,
                                                              .name = name,
                                                              .repeat = 1,
                                                              .layer_first = -1,
                                                              .microbatch = microbatch};
}

/* Of the model's layers, from the first. */
static struct layer_variant variant_at(const struct ranks *ranks, uint64_t layer)
{
    uint64_t const tops = is_mixed(ranks) ? ranks->layer[LAYER_MOE].count : 1;
    return (struct layer_variant){layer + tops >= ranks->plan->model.layers,
                                  ranks_layer_is_windowed(ranks, layer)};
}

static uint16_t layer_template(const struct ranks *ranks, const struct layer_templates *templates,
                               uint64_t layer)
{
    struct layer_variant const variant = variant_at(ranks, layer);
    return templates->of[variant.top][variant.windowed];
}

static bool has_variant(const struct ranks *ranks, struct layer_variant variant)
{
    for (uint64_t layer = 0; layer < ranks->plan->model.layers; layer++) {
        struct layer_variant const at = variant_at(ranks, layer);
        if (at.top == variant.top && at.windowed == variant.windowed) return true;
    }
    return false;
}

/* All layers: those behind one another that are played alike are a block. */
static void layers_add(const struct lower *lower, struct step *step,
                       const struct layer_templates *templates, enum program_phase phase,
                       uint32_t microbatch)
{
    int32_t const layers = (int32_t)lower->ranks->plan->model.layers;
    bool const up = phase == PROGRAM_PHASE_FORWARD;
    uint32_t const first = step->block_count;
    for (int32_t i = 0; i < layers; i++) {
        int32_t const layer = up ? i : layers - 1 - i;
        uint16_t const template_index = layer_template(lower->ranks, templates, (uint64_t)layer);
        if (step->block_count > first &&
            step->block[step->block_count - 1].template_index == template_index) {
            step->block[step->block_count - 1].repeat++;
            continue;
        }
        block_add(step, template_index, phase, "layer", microbatch);
        step->block[step->block_count - 1].layer_first = layer;
        step->block[step->block_count - 1].layer_step = up ? 1 : -1;
    }
}

/* Where the optimizer is offloaded, what a slot of the last backward pass updates: what the slot
 * before has reduced. */
struct behind {
    struct bucket head;
    struct delayed_update nothing, of_head, of_layer;
};

static void behind_build(const struct lower *lower, const struct step *step, struct behind *behind)
{
    const struct ranks *ranks = lower->ranks;
    *behind = (struct behind){.head = lower_head_bucket(ranks)};
    if (!ranks_offloads_optimizer(ranks)) return;
    if (ranks_is_decoder(ranks) && !ranks->tied)
        behind->of_head = (struct delayed_update){.name = "update head",
                                                  .buckets = &behind->head,
                                                  .bucket_count = 1,
                                                  .backward = step->head_backward[1],
                                                  .slots = 1};
    behind->of_layer = (struct delayed_update){
        .name = "update layer",
        .buckets = lower->layer->bucket,
        .bucket_count = lower->layer->bucket_count,
        .backward = layer_template(ranks, &step->layer_backward[1], ranks->plan->model.layers - 1),
        .slots = 1};
}

/* The last layer is unlike the others where something is offloaded, and experts are unlike MLPs. */
static void layers_backward_build(struct lower *lower, struct step *step, bool last)
{
    const struct ranks *ranks = lower->ranks;
    bool const updates = last && ranks_offloads_optimizer(ranks);
    bool const apart = is_mixed(ranks) || (ranks->plan->model.layers > 1 &&
                                           (updates || ranks_offloads_activations(ranks)));
    struct layer_templates *templates = &step->layer_backward[last];
    struct behind behind;
    for (uint32_t windowed = 0; windowed < 2; windowed++) {
        struct layer_variant const top = {true, windowed}, below = {false, windowed};
        behind_build(lower, step, &behind);
        if (has_variant(ranks, top) || (!apart && has_variant(ranks, below)))
            templates->of[1][windowed] =
                layer_backward(lower, last, top, last ? &behind.of_head : &behind.nothing);
        templates->of[0][windowed] = templates->of[1][windowed];
    }
    behind_build(lower, step, &behind);
    for (uint32_t windowed = 0; windowed < 2; windowed++) {
        struct layer_variant const below = {false, windowed};
        if (apart && has_variant(ranks, below))
            templates->of[0][windowed] =
                layer_backward(lower, last, below, last ? &behind.of_layer : &behind.nothing);
    }
    if (!ranks_is_decoder(ranks)) return;
    step->embedding_backward[last] =
        embedding_backward(lower, last, last ? &behind.of_layer : &behind.nothing);
}

static void layers_forward_build(struct lower *lower, struct step *step, bool updated)
{
    const struct ranks *ranks = lower->ranks;
    bool const apart = is_mixed(ranks) || ranks_offloads_activations(ranks);
    struct layer_templates *templates = &step->layer_forward[updated];
    for (uint32_t windowed = 0; windowed < 2; windowed++) {
        struct layer_variant const top = {true, windowed}, below = {false, windowed};
        if (has_variant(ranks, below) || (!apart && has_variant(ranks, top)))
            templates->of[0][windowed] = layer_forward(lower, below, updated);
        templates->of[1][windowed] = templates->of[0][windowed];
        if (apart && has_variant(ranks, top))
            templates->of[1][windowed] = layer_forward(lower, top, updated);
    }
}

/* Templates of the forward pass differ in the first microbatch if that one gathers what the last
 * step has updated. */
static void forward_build(struct lower *lower, struct step *step)
{
    bool const has_ends = ranks_is_decoder(lower->ranks),
               gathers = ranks_gathers_next(lower->ranks);
    bool const differs = gathers && lower->ranks->plan->accumulate > 1;
    for (uint32_t first = 0; first < 2; first++) {
        if (first == gathers || differs) {
            if (has_ends) step->embedding_forward[first] = embedding_forward(lower, first);
            layers_forward_build(lower, step, first);
            mtp_build(lower, step->mtp_forward[first], /* forward= */ true, first);
            if (has_ends) step->head_forward[first] = head_forward(lower, first);
        }
    }
    if (gathers) return;
    step->embedding_forward[1] = step->embedding_forward[0];
    step->layer_forward[1] = step->layer_forward[0];
    memcpy(step->mtp_forward[1], step->mtp_forward[0], sizeof step->mtp_forward[0]);
    step->head_forward[1] = step->head_forward[0];
}

/* Templates of the backward pass differ in the last microbatch if only that one reduces, or
 * updates. */
static void templates_build(struct lower *lower, struct step *step)
{
    const struct ranks *ranks = lower->ranks;
    bool const has_ends = ranks_is_decoder(ranks);
    bool const parts_last = ranks_sums_parts(ranks) && ranks->gradient_shards == 1;
    bool const differs = ranks->plan->accumulate > 1 &&
                         (ranks->reduce_last || parts_last || ranks_offloads_optimizer(ranks));
    forward_build(lower, step);
    for (uint32_t last = differs ? 0 : 1; last < 2; last++) {
        if (has_ends) step->head_backward[last] = head_backward(lower, last);
        mtp_build(lower, step->mtp_backward[last], /* forward= */ false, last);
        layers_backward_build(lower, step, last);
    }
    if (differs) return;
    step->head_backward[0] = step->head_backward[1];
    step->layer_backward[0] = step->layer_backward[1];
    step->embedding_backward[0] = step->embedding_backward[1];
    memcpy(step->mtp_backward[0], step->mtp_backward[1], sizeof step->mtp_backward[0]);
}

/* Modules in the order of the forward pass, or the other way. */
static void mtp_add(const struct lower *lower, struct step *step, const uint16_t templates[PLACES],
                    enum program_phase phase, uint32_t microbatch)
{
    uint64_t const count = lower->ranks->mtp_modules;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t const k = phase == PROGRAM_PHASE_FORWARD ? i : count - 1 - i;
        uint32_t const index = place_index(mtp_position_at(lower->ranks, k));
        block_add(step, templates[index], phase, "mtp", microbatch);
        step->block[step->block_count - 1].layer_first = (int32_t)k;
    }
}

static void microbatch_add(const struct lower *lower, struct step *step, uint32_t microbatch)
{
    bool const has_ends = ranks_is_decoder(lower->ranks);
    bool const last = microbatch + 1 == lower->ranks->plan->accumulate;
    bool const first = microbatch == 0;
    enum program_phase const forward = PROGRAM_PHASE_FORWARD;
    enum program_phase const backward = PROGRAM_PHASE_BACKWARD;
    if (has_ends) block_add(step, step->embedding_forward[first], forward, "embedding", microbatch);
    layers_add(lower, step, &step->layer_forward[first], forward, microbatch);
    mtp_add(lower, step, step->mtp_forward[first], forward, microbatch);
    if (has_ends) block_add(step, step->head_forward[first], forward, "head", microbatch);
    if (has_ends) block_add(step, step->head_backward[last], backward, "head", microbatch);
    mtp_add(lower, step, step->mtp_backward[last], backward, microbatch);
    layers_add(lower, step, &step->layer_backward[last], backward, microbatch);
    if (has_ends)
        block_add(step, step->embedding_backward[last], backward, "embedding", microbatch);
}

/* What is left to update where updates are part of the backward pass: what its last slot has
 * reduced. */
static void update_rest_add(struct lower *lower, struct step *step)
{
    const struct ranks *ranks = lower->ranks;
    uint32_t const microbatch = ranks->plan->accumulate - 1;
    struct bucket const bucket = lower_embedding_bucket(ranks);
    bool const has_ends = ranks_is_decoder(ranks);
    struct delayed_update const rest = {
        .name = has_ends ? "update embedding" : "update layer",
        .buckets = has_ends ? &bucket : lower->layer->bucket,
        .bucket_count = has_ends ? 1 : lower->layer->bucket_count,
        .backward = has_ends ? step->embedding_backward[1]
                             : layer_template(ranks, &step->layer_backward[1], 0),
        .slots = 1};
    block_add(step, lower_update(lower, &rest), PROGRAM_PHASE_UPDATE,
              has_ends ? "embedding" : "layer", microbatch);
    if (has_ends) return;
    step->block[step->block_count - 1].layer_first = 0;
    step->block[step->block_count - 1].layer_step = -1;
}

/* Modules are updated before the head, whose gradient the first of them adds to as the last: one
 * slot less behind their own. */
static void mtp_update(struct lower *lower, struct step *step, uint32_t back)
{
    struct bucket buckets[LOWER_MTP_BUCKETS_MAX];
    uint32_t const count = lower_mtp_buckets(lower->ranks, buckets);
    uint16_t templates[PLACES] = {0};
    bool built[PLACES] = {false};
    for (uint64_t k = 0; k < lower->ranks->mtp_modules; k++) {
        uint32_t const index = place_index(mtp_position_at(lower->ranks, k));
        struct delayed_update const of = {"update mtp", buckets, count,
                                          step->mtp_backward[1][index], back - 1};
        if (!built[index]) templates[index] = lower_update(lower, &of);
        built[index] = true;
    }
    mtp_add(lower, step, templates, PROGRAM_PHASE_UPDATE, lower->ranks->plan->accumulate - 1);
}

/* The slot of the backward pass that reduces the head's gradient. */
static uint16_t head_reduces(const struct ranks *ranks, const struct step *step)
{
    if (ranks->mtp_modules == 0) return step->head_backward[1];
    return step->mtp_backward[1][place_index(mtp_position_at(ranks, 0))];
}

/* The update follows the order of the backward pass, so each waits for a slot equally far back. */
static void update_add(struct lower *lower, struct step *step)
{
    const struct ranks *ranks = lower->ranks;
    bool const has_ends = ranks_is_decoder(ranks);
    uint32_t const microbatch = ranks->plan->accumulate - 1;
    bool const own_head = has_ends && !ranks->tied;
    struct bucket const head = lower_head_bucket(ranks), embedding = lower_embedding_bucket(ranks);
    uint32_t const back =
        (uint32_t)(ranks->plan->model.layers + ranks->mtp_modules) + has_ends + own_head;
    mtp_update(lower, step, back);
    if (own_head) {
        struct delayed_update const of = {"update head", &head, 1, head_reduces(ranks, step), back};
        block_add(step, lower_update(lower, &of), PROGRAM_PHASE_UPDATE, "head", microbatch);
    }
    struct layer_templates layer;
    for (uint32_t top = 0; top < 2; top++) {
        /* The first layer, and the last. */
        uint64_t const at = top ? ranks->plan->model.layers - 1 : 0;
        kind_set(lower, top);
        struct delayed_update const of = {
            "update layer", lower->layer->bucket, lower->layer->bucket_count,
            layer_template(ranks, &step->layer_backward[1], at), back};
        layer.of[top][0] = top && !is_mixed(ranks) ? layer.of[0][0] : lower_update(lower, &of);
        layer.of[top][1] = layer.of[top][0];
    }
    layers_add(lower, step, &layer, PROGRAM_PHASE_UPDATE, microbatch);
    if (has_ends) {
        struct delayed_update const last = {"update embedding", &embedding, 1,
                                            step->embedding_backward[1], back};
        block_add(step, lower_update(lower, &last), PROGRAM_PHASE_UPDATE, "embedding", microbatch);
    }
}

/* All ranks have the same work. */
static enum status single_role(struct lower *lower)
{
    const struct ranks *ranks = lower->ranks;
    struct step step = {0};
    bool const has_ends = ranks_is_decoder(ranks);
    uint64_t const blocks =
        ranks->plan->accumulate *
            (BLOCKS_MAX_A_MICROBATCH + 2 * (ranks->mtp_modules + ranks->window_turns)) +
        BLOCKS_OF_THE_UPDATE + ranks->mtp_modules;
    struct program_role *role = builder_roles(&lower->build, 1, blocks);
    if (role == NULL) return lower->build.status;
    step.block = role->block;
    templates_build(lower, &step);
    for (uint32_t m = 0; m < ranks->plan->accumulate; m++) microbatch_add(lower, &step, m);
    if (ranks_offloads_optimizer(ranks))
        update_rest_add(lower, &step);
    else
        update_add(lower, &step);
    role->block_count = step.block_count;
    struct lower_holding const holding = {
        .layers = {ranks->layer[LAYER_DENSE].count, ranks->layer[LAYER_MOE].count},
        .mtp_modules = ranks->mtp_modules,
        .embedding = has_ends,
        .head = has_ends,
    };
    lower_resident(ranks, &holding, role->resident_bytes);
    return lower->build.status;
}

enum status workload_lower(struct arena *arena, const struct workload_plan *plan,
                           const struct machine *machine, const struct mesh *mesh,
                           struct program *ret_program, struct error *reterr)
{
    void *memory = NULL;
    struct program program;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct ranks), &memory, reterr));
    struct ranks *ranks = memory;
    STATUS_TRY(ranks_make(plan, machine, mesh, ranks, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct lower), &memory, reterr));
    struct lower *lower = memory;
    lower_begin(lower, arena, ranks, &program, reterr);
    if (ranks->pp > 1)
        lower_pipeline(lower);
    else if (lower->build.status == STATUS_OK)
        lower->build.status = single_role(lower);
    if (lower->build.status != STATUS_OK) return lower->build.status;
    lower_totals(ranks, &program);
    program_seal(arena, &program);
    *ret_program = program;
    return STATUS_OK;
}
