/* The ranks of a pipeline: what each does of its list. */
#include "sim/base/arena.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_traffic.h"
#include "sim/step/pipeline.h"
#include "sim/step/stages.h"

/* Embedding, first, middle and last layers of both kinds, head; and one whose gather waits
 * otherwise splits a row of layers in three. */
enum { BLOCKS_A_PASS = 8 };

/* The units of a stage in the order of the forward pass, without those that a pass has no part of:
 * the embedding has no input gradient. */
struct units {
    const struct stage *stage;
    bool embedding, head;
    uint32_t dense; /* Of its layers, which come first; the others have experts. */
    uint32_t count;
};

static struct units units_of(const struct pipeline *pipeline, const struct schedule_pass *pass)
{
    const struct stage *stage = &pipeline->stages.stage[pass->stage];
    bool const embedding = stage->embedding && pass->kind != SCHEDULE_INPUT;
    return (struct units){.stage = stage,
                          .embedding = embedding,
                          .head = stage->head,
                          .dense = stages_dense_layers(stage, pipeline->dense_layers),
                          .count = stage->layer_count + stage->predictors + stage->predictor_heads +
                                   embedding + stage->head};
}

/* The unit that a pass plays at a place; `ret_layer` is its layer, or which of the modules it is,
 * or -1. */
static enum pipeline_unit unit_at(const struct units *units, bool forward, uint32_t place,
                                  int32_t *ret_layer)
{
    uint32_t const at = forward ? place : units->count - 1 - place;
    *ret_layer = -1;
    if (units->embedding && at == 0) return UNIT_EMBEDDING;
    if (units->head && at + 1 == units->count) return UNIT_HEAD;
    uint32_t const layer = at - units->embedding;
    if (layer >= units->stage->layer_count) {
        /* A stage has modules, or only heads of some. */
        *ret_layer = (int32_t)(layer - units->stage->layer_count);
        return units->stage->predictors != 0 ? UNIT_PREDICTOR : UNIT_PREDICTOR_HEAD;
    }
    *ret_layer = (int32_t)(units->stage->layer_first + layer);
    return layer < units->dense ? UNIT_LAYER : UNIT_EXPERTS;
}

void pipeline_block_add(struct pipeline *pipeline, const struct program_block *block)
{
    struct program_block *former =
        pipeline->block_count == 0 ? NULL : &pipeline->block[pipeline->block_count - 1];
    uint32_t const slot = pipeline->slot_count;
    pipeline->slot_count += block->repeat;
    if (former != NULL && former->template_index == block->template_index &&
        former->pass == block->pass && former->layer_first >= 0 && block->layer_first >= 0 &&
        former->phase == block->phase && former->since_slot == block->since_slot &&
        former->arrivals == block->arrivals &&
        former->layer_first + former->layer_step * (int32_t)former->repeat == block->layer_first) {
        former->repeat += block->repeat;
        return;
    }
    SIM_ASSERT(pipeline->block_count < pipeline->block_capacity);
    pipeline->block[pipeline->block_count] = *block;
    pipeline->block[pipeline->block_count++].slot_first = slot;
}

/* Whether there is such a slot, and it computes nothing. */
static bool slot_is_idle(const struct pipeline *pipeline, int64_t slot)
{
    uint32_t b = pipeline->block_count;
    if (slot < 0 || slot >= pipeline->slot_count) return false;
    while (pipeline->block[b - 1].slot_first > slot) b--;
    const struct program *program = pipeline->lower->build.program;
    const struct program_template *template =
        &program->templates[pipeline->block[b - 1].template_index];
    return pipeline->lower->build.status == STATUS_OK &&
           template->stream_parts[PROGRAM_COMPUTE] == 0;
}

/* A pass while its slots are added. */
struct passing {
    const struct schedule_pass *pass;
    struct units units;
    struct pipeline_messages messages;
    uint32_t count; /* Slots. */
    bool last, last_lookup;
    bool updated;           /* Updated weights are gathered: the stage's first forward pass. */
    bool head_stays;        /* Between the head's two passes the rank has no other. */
    bool holds[UNIT_COUNT]; /* Weights that are there. */
    uint32_t since_slot;
};

/* The same of an embedding that the first and the last stage both look up. */
static bool lookup_is_last(const struct pipeline *pipeline, uint32_t index)
{
    uint32_t const last = pipeline->schedule.stage_count - 1;
    for (uint32_t i = index + 1; i < pipeline->list->count; i++) {
        const struct schedule_pass *later = &pipeline->list->pass[i];
        if (pipeline_pass_adds(later) && (later->stage == 0 || later->stage == last)) return false;
    }
    return true;
}

static bool is_first_forward(const struct schedule_rank *list, uint32_t index)
{
    if (!pipeline_is_forward(list->pass[index].kind)) return false;
    for (uint32_t i = 0; i < index; i++)
        if (pipeline_is_forward(list->pass[i].kind) &&
            list->pass[i].stage == list->pass[index].stage)
            return false;
    return true;
}

/* Whether an action reduces the stage's gradients. */
static bool reduces_apart(const struct schedule_rank *list, uint32_t stage)
{
    for (uint32_t i = 0; i < list->action_count; i++)
        if (list->action[i].act == SCHEDULE_REDUCE && list->action[i].stage == stage) return true;
    return false;
}

static bool keeps_weights(const struct pipeline *pipeline)
{
    return pipeline->schedule.has_gathers && pipeline->lower->local->shards > 1;
}

/* What the pass gathers of its stage stays there. */
static void weights_take(struct pipeline *pipeline, struct passing *passing)
{
    struct pipeline_hold *hold = &pipeline->hold[passing->pass->stage];
    const struct units *units = &passing->units;
    uint32_t const counts[UNIT_COUNT] = {[UNIT_EMBEDDING] = units->embedding,
                                         [UNIT_LAYER] = units->dense,
                                         [UNIT_EXPERTS] = units->stage->layer_count - units->dense,
                                         [UNIT_HEAD] = units->head};
    if (!keeps_weights(pipeline)) return;
    SIM_ASSERT(hold->held);
    passing->since_slot = hold->since_slot;
    for (uint32_t unit = 0; unit < UNIT_NOTHING; unit++) {
        passing->holds[unit] = hold->has[unit];
        if (hold->has[unit] || counts[unit] == 0) continue;
        hold->has[unit] = true;
        hold->bytes += counts[unit] * pipeline_gathered_bytes(pipeline, (enum pipeline_unit)unit);
    }
}

/* Slots of a pass: a stage that has nothing in it hands on what it gets, if that is for others. */
static uint32_t slots_of(const struct units *units, const struct pipeline_messages *messages)
{
    bool const hands_on = messages->receive != WAY_NONE || messages->send != WAY_NONE;
    return units->count == 0 && hands_on ? 1 : units->count;
}

/* The next pass of the rank that has slots, or its end. */
static uint32_t slots_next(const struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    for (; index < pipeline->list->count; index++) {
        const struct schedule_pass *pass = &pipeline->list->pass[index];
        struct units const units = units_of(pipeline, pass);
        struct pipeline_messages const messages = pipeline_messages_of(pipeline, rank, pass);
        if (slots_of(&units, &messages) != 0) break;
    }
    return index;
}

/* Bytes of the stages that are given up before a pass. */
static uint64_t weights_give(struct pipeline *pipeline, uint32_t before)
{
    const struct schedule_rank *list = pipeline->list;
    uint64_t bytes = 0;
    for (; pipeline->give_next < list->action_count &&
           list->action[pipeline->give_next].before <= before;
         pipeline->give_next++) {
        const struct schedule_action *action = &list->action[pipeline->give_next];
        if (action->act != SCHEDULE_RESHARD) continue;
        bytes += pipeline->hold[action->stage].bytes;
        pipeline->hold[action->stage].bytes = 0;
    }
    return bytes;
}

static struct passing passing_of(struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    const struct schedule_pass *pass = &pipeline->list->pass[index];
    bool const last = pipeline_pass_is_last(pipeline->list, index) || !pipeline->differs;
    struct passing passing = {
        .pass = pass,
        .units = units_of(pipeline, pass),
        .messages = pipeline_messages_of(pipeline, rank, pass),
        .last =
            last && !pipeline_is_forward(pass->kind) && !reduces_apart(pipeline->list, pass->stage),
    };
    bool const shares =
        pipeline->lower->local->predictors != 0 && !pipeline->lower->local->twin_reads;
    passing.last_lookup = passing.last;
    if (shares && !pipeline_is_forward(pass->kind))
        passing.last_lookup = !pipeline->differs || lookup_is_last(pipeline, index);
    passing.updated =
        local_gathers_next(pipeline->lower->local) && is_first_forward(pipeline->list, index);
    passing.head_stays = schedule_turns_at_once(pipeline->list, index);
    passing.count = slots_of(&passing.units, &passing.messages);
    weights_take(pipeline, &passing);
    return passing;
}

/* What a pass does in its slot number `place`; `ret_layer` and `ret_since` are the block's. */
static struct pipeline_part part_at(const struct pipeline *pipeline, const struct passing *passing,
                                    uint32_t place, int32_t *ret_layer, uint32_t *ret_since)
{
    bool const forward = pipeline_is_forward(passing->pass->kind);
    bool const ends = place + 1 == passing->count;
    int64_t const ahead_slot =
        (int64_t)pipeline->slot_count - pipeline->lower->local->plan->prefetch_layers;
    struct pipeline_part part = {.unit = UNIT_NOTHING,
                                 .kind = passing->pass->kind,
                                 .last = passing->last,
                                 .last_lookup = passing->last_lookup,
                                 .receives = place == 0 && passing->messages.receive != WAY_NONE,
                                 .send = ends ? (uint8_t)passing->messages.send : WAY_NONE,
                                 .arrays = ends ? (uint8_t)passing->messages.arrays : 0};
    part.around = part.send != WAY_NONE && passing->messages.around;
    *ret_layer = -1;
    *ret_since = 0;
    if (passing->units.count > 0)
        part.unit = (uint8_t)unit_at(&passing->units, forward, place, ret_layer);
    if (part.unit == UNIT_LAYER || part.unit == UNIT_EXPERTS)
        part.windowed = local_layer_is_windowed(pipeline->lower->local, (uint64_t)*ret_layer);
    if (part.unit == UNIT_PREDICTOR || part.unit == UNIT_PREDICTOR_HEAD)
        part.place = lower_place_at(pipeline->lower->local, (uint64_t)*ret_layer);
    part.updated = part.unit != UNIT_NOTHING && passing->updated;
    if (part.unit == UNIT_NOTHING) return part;
    if (pipeline->lower->local->shards == 1 && !part.updated) return part;
    if (keeps_weights(pipeline)) {
        part.keeping = passing->holds[part.unit] ? LOWER_HOLDS : LOWER_TAKES;
        part.since = part.keeping == LOWER_TAKES;
        if (part.since) *ret_since = passing->since_slot;
        return part;
    }
    part.head_stays =
        part.unit == UNIT_HEAD && passing->head_stays && pipeline->lower->local->shards > 1;
    if (slot_is_idle(pipeline, ahead_slot)) {
        part.since = true;
        *ret_since = (uint32_t)ahead_slot;
    }
    return part;
}

/* What differs from slot to slot of a pass, or of two that overlap. */
struct slot {
    struct pipeline_variant variant;
    int32_t layer;
    uint32_t since;
};

static void part_add(const struct pipeline *pipeline, const struct passing *passing, uint32_t place,
                     struct slot *slot)
{
    int32_t layer = -1;
    uint32_t since = 0;
    slot->variant.part[slot->variant.part_count] =
        part_at(pipeline, passing, place, &layer, &since);
    if (slot->variant.part_count++ == 0) slot->layer = layer;
    if (since > slot->since) slot->since = since;
}

static void slot_add(struct pipeline *pipeline, const struct slot *slot,
                     const struct passing *passing, uint32_t pass, uint64_t arrivals)
{
    static const enum program_phase phases[] = {PROGRAM_PHASE_FORWARD, PROGRAM_PHASE_BACKWARD,
                                                PROGRAM_PHASE_BACKWARD, PROGRAM_PHASE_WEIGHT};
    bool const forward = pipeline_is_forward(passing->pass->kind);
    bool const is_pair = slot->variant.part_count > 1;
    struct program_block const block = {
        .template_index = pipeline_template(pipeline, &slot->variant),
        .phase = is_pair ? PROGRAM_PHASE_PAIR : phases[passing->pass->kind],
        .name = pipeline_unit_name((enum pipeline_unit)slot->variant.part[0].unit),
        .repeat = 1,
        .layer_first = slot->layer,
        .layer_step = slot->layer < 0 ? 0
                      : forward       ? 1
                                      : -1,
        .microbatch = passing->pass->microbatch,
        .pass = pass,
        .arrivals = slot->variant.receive == WAY_NONE ? 0 : arrivals,
        .since_slot = slot->since,
    };
    pipeline_block_add(pipeline, &block);
}

/* The slots of a pass from a place on. The last gives back what is given up before `before`. */
static void places_add(struct pipeline *pipeline, const struct passing *passing, uint32_t index,
                       uint32_t from, uint32_t before)
{
    for (uint32_t place = from; place < passing->count; place++) {
        struct slot slot = {0};
        part_add(pipeline, passing, place, &slot);
        if (place == 0) slot.variant.receive = passing->messages.receive;
        if (place + 1 == passing->count) slot.variant.given_bytes = weights_give(pipeline, before);
        slot_add(pipeline, &slot, passing, index + 1, passing->messages.arrivals);
    }
}

/* Whether collectives stand between the ops of a pass: else there is nothing to run during. */
static bool passes_wait(const struct local *local)
{
    return local->tp > 1 || local->experts.ranks > 1 || local->sequence_parts > 1;
}

/* Two passes overlap op by op, unless they would have to wait for messages of both neighbours,
 * which is more than a slot can, or one reads the weights of a stage that the other gathers. */
static bool passes_mix(const struct pipeline *pipeline, const struct passing *one,
                       const struct passing *other)
{
    enum pipeline_way const a = one->messages.receive, b = other->messages.receive;
    bool const same_side = a == b || a == WAY_NONE || b == WAY_NONE;
    bool const apart = one->pass->stage != other->pass->stage || !keeps_weights(pipeline);
    return passes_wait(pipeline->lower->local) && same_side && apart && one->units.count > 0 &&
           other->units.count > 0;
}

static void pair_add(struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    struct passing const one = passing_of(pipeline, rank, index);
    struct passing const other = passing_of(pipeline, rank, index + 1);
    uint32_t const shared = one.count < other.count ? one.count : other.count;
    /* Of one sender's messages the later has come when both have. */
    uint64_t const arrivals = one.messages.arrivals > other.messages.arrivals
                                  ? one.messages.arrivals
                                  : other.messages.arrivals;
    uint32_t const before = slots_next(pipeline, rank, index + 2);
    if (!passes_mix(pipeline, &one, &other)) {
        places_add(pipeline, &one, index, 0, other.count == 0 ? before : index);
        places_add(pipeline, &other, index + 1, 0, before);
        return;
    }
    for (uint32_t place = 0; place < shared; place++) {
        struct slot slot = {0};
        part_add(pipeline, &one, place, &slot);
        part_add(pipeline, &other, place, &slot);
        if (place == 0)
            slot.variant.receive =
                one.messages.receive != WAY_NONE ? one.messages.receive : other.messages.receive;
        if (place + 1 == one.count && place + 1 == other.count)
            slot.variant.given_bytes = weights_give(pipeline, before);
        slot_add(pipeline, &slot, &one, index + 1, arrivals);
    }
    places_add(pipeline, &one, index, shared, before);
    places_add(pipeline, &other, index + 1, shared, before);
}

static void pass_add(struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    struct passing const passing = passing_of(pipeline, rank, index);
    places_add(pipeline, &passing, index, 0, slots_next(pipeline, rank, index + 1));
}

static enum status role_add(struct pipeline *pipeline, uint32_t rank, struct program_role *role,
                            struct error *reterr)
{
    struct lower *lower = pipeline->lower;
    const struct schedule *schedule = &pipeline->schedule;
    const struct schedule_rank *list = &schedule->rank[rank];
    struct lower_holding holding = {.layers = {0}};
    uint64_t most = PIPELINE_TWINS, layers = 0; /* Of the stage that has most. */
    void *memory = NULL;
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        if (!schedule_rank_holds(schedule, rank, s)) continue;
        const struct stage *stage = &pipeline->stages.stage[s];
        uint32_t const dense = stages_dense_layers(stage, pipeline->dense_layers);
        holding.layers[LOCAL_DENSE] += dense;
        holding.layers[LOCAL_EXPERTS] += stage->layer_count - dense;
        if (stage->layer_count > layers) layers = stage->layer_count;
        holding.predictors += stage->predictors;
        holding.embedding = holding.embedding || stage->embedding || stage->predictors != 0;
        holding.head = holding.head || stage->head;
        /* Updates, and what goes to another copy; reductions, and what comes from there; and a
         * gather behind each of them that waits otherwise. */
        most += 3 * UNIT_COUNT + 3 * ((uint64_t)stage->layer_count + UNIT_COUNT);
    }
    uint64_t const turns =
        lower->local->window_turns < layers ? lower->local->window_turns : layers;
    most += (uint64_t)list->count * (BLOCKS_A_PASS + lower->local->predictors + turns);
    STATUS_TRY(arena_try(lower->build.arena, most, sizeof *pipeline->block, &memory, reterr));
    pipeline->block = memory;
    pipeline->block_count = 0;
    pipeline->block_capacity = most;
    pipeline->slot_count = 0;
    pipeline->action_next = 0;
    pipeline->give_next = 0;
    pipeline->sent_count = 0;
    pipeline->list = list;
    for (uint32_t i = 0; i < list->count; i++) {
        pipeline_actions_add(pipeline, i);
        pipeline_copies_send(pipeline, i);
        if (list->pass[i].paired)
            pair_add(pipeline, rank, i++);
        else
            pass_add(pipeline, rank, i);
    }
    pipeline_actions_add(pipeline, list->count);
    pipeline_copies_send(pipeline, list->count);
    pipeline_copies_sum(pipeline);
    for (uint32_t i = 0; lower->local->twins && i < PIPELINE_TWINS; i++) {
        struct program_block twin =
            lower_twin_block(schedule, i == 1, pipeline->twin[i], pipeline->twin_message[i]);
        if (lower->local->twin_reads) twin.name = "tied embedding";
        if (rank == (i == 1 ? pipeline->twin_rank : 0)) pipeline_block_add(pipeline, &twin);
    }
    for (uint32_t s = schedule->stage_count; s-- > 0;)
        if (schedule_rank_holds(schedule, rank, s))
            pipeline_units_add(pipeline, &pipeline->stages.stage[s], pipeline->update,
                               PROGRAM_PHASE_UPDATE, schedule->microbatch_count - 1, NULL);
    role->block = pipeline->block;
    role->block_count = pipeline->block_count;
    lower_resident(lower->local, &holding, role->resident_bytes);
    return STATUS_OK;
}

static enum status pipeline_build(struct pipeline *pipeline, struct error *reterr)
{
    struct lower *lower = pipeline->lower;
    const struct local *local = lower->local;
    struct program *program = lower->build.program;
    const struct mesh_axis *axis = &local->mesh->axis[MESH_PP];
    void *memory = NULL;
    STATUS_TRY(workload_schedule(lower->build.arena, local->plan, local->machine, local->mesh,
                                 &pipeline->schedule, reterr));
    STATUS_TRY(stages_build(lower->build.arena, local->plan, pipeline->schedule.stage_count,
                            local_room(local, MESH_PP), &pipeline->stages, reterr));
    STATUS_TRY(arena_try(lower->build.arena, pipeline->schedule.stage_count, sizeof *pipeline->hold,
                         &memory, reterr));
    pipeline->hold = memory;
    STATUS_TRY(arena_try(lower->build.arena, pipeline->schedule.stage_count,
                         sizeof *pipeline->sent_stage, &memory, reterr));
    pipeline->sent_stage = memory;
    pipeline->twin_rank = pipeline_twin_rank(&pipeline->schedule, &pipeline->stages);
    STATUS_TRY(pipeline_messages_number(pipeline, reterr));
    bool const kv_last = local->partial_ranks > 1 && local->gradient_shards == 1;
    pipeline->differs = local->plan->accumulate > 1 && (local->reduce_last || kv_last);
    pipeline_rests_build(pipeline);
    struct program_role *roles = builder_roles(&lower->build, pipeline->schedule.rank_count, 0);
    if (roles == NULL) return lower->build.status;
    for (uint32_t rank = 0; rank < program->role_count; rank++) {
        STATUS_TRY(watch_check(local->plan->watch, reterr));
        STATUS_TRY(role_add(pipeline, rank, &roles[rank], reterr));
    }
    const struct group *group = &axis->group;
    program->role_axis = (uint8_t)group->dimension[0].axis;
    program->role_stride = group->dimension[0].stride;
    if (group->dimension_count > 1) {
        program->inner_axis = (uint8_t)group->dimension[1].axis;
        program->inner_stride = group->dimension[1].stride;
        program->inner_count = group->dimension[1].size;
    }
    return lower->build.status;
}

void lower_pipeline(struct lower *lower)
{
    void *memory = NULL;
    if (lower->build.status != STATUS_OK) return;
    lower->build.status =
        arena_try(lower->build.arena, 1, sizeof(struct pipeline), &memory, lower->build.error);
    if (lower->build.status != STATUS_OK) return;
    struct pipeline *pipeline = memory;
    pipeline->lower = lower;
    pipeline->dense_layers = lower->local->layer[LOCAL_DENSE].count;
    enum status const status = pipeline_build(pipeline, lower->build.error);
    if (lower->build.status == STATUS_OK) lower->build.status = status;
}
