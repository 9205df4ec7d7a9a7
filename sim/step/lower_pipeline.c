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
struct modules {
    const struct stage *stage;
    bool embedding, head;
    uint32_t dense; /* Of its layers, which come first; the others have experts. */
    uint32_t count;
};

static struct modules modules_of(const struct pipeline *pipeline, const struct schedule_pass *pass)
{
    const struct stage *stage = &pipeline->stages.stage[pass->stage];
    bool const embedding = stage->embedding && pass->kind != SCHEDULE_INPUT;
    return (struct modules){.stage = stage,
                            .embedding = embedding,
                            .head = stage->head,
                            .dense = stages_dense_layers(stage, pipeline->dense_layers),
                            .count = stage->layer_count + stage->mtp_modules + stage->mtp_heads +
                                     embedding + stage->head};
}

/* The unit that a pass plays at a place; `ret_layer` is its layer, or which of the modules it is,
 * or -1. */
static enum pipeline_module module_at(const struct modules *modules, bool forward, uint32_t place,
                                      int32_t *ret_layer)
{
    uint32_t const at = forward ? place : modules->count - 1 - place;
    *ret_layer = -1;
    if (modules->embedding && at == 0) return MODULE_EMBEDDING;
    if (modules->head && at + 1 == modules->count) return MODULE_HEAD;
    uint32_t const layer = at - modules->embedding;
    if (layer >= modules->stage->layer_count) {
        /* A stage has modules, or only heads of some. */
        *ret_layer = (int32_t)(layer - modules->stage->layer_count);
        return modules->stage->mtp_modules != 0 ? MODULE_MTP : MODULE_MTP_HEAD;
    }
    *ret_layer = (int32_t)(modules->stage->layer_first + layer);
    return layer < modules->dense ? MODULE_LAYER : MODULE_EXPERTS;
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
    struct modules modules;
    struct pipeline_messages messages;
    uint32_t count; /* Slots. */
    bool last, last_lookup;
    bool updated;             /* Updated weights are gathered: the stage's first forward pass. */
    bool head_stays;          /* Between the head's two passes the rank has no other. */
    bool holds[MODULE_COUNT]; /* Weights that are there. */
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
    return pipeline->schedule.has_gathers && pipeline->lower->ranks->shards > 1;
}

/* What the pass gathers of its stage stays there. */
static void weights_take(struct pipeline *pipeline, struct passing *passing)
{
    struct pipeline_hold *hold = &pipeline->hold[passing->pass->stage];
    const struct modules *modules = &passing->modules;
    uint32_t const counts[MODULE_COUNT] = {[MODULE_EMBEDDING] = modules->embedding,
                                           [MODULE_LAYER] = modules->dense,
                                           [MODULE_EXPERTS] =
                                               modules->stage->layer_count - modules->dense,
                                           [MODULE_HEAD] = modules->head};
    if (!keeps_weights(pipeline)) return;
    SIM_ASSERT(hold->held);
    passing->since_slot = hold->since_slot;
    for (uint32_t module = 0; module < MODULE_NOTHING; module++) {
        passing->holds[module] = hold->has[module];
        if (hold->has[module] || counts[module] == 0) continue;
        hold->has[module] = true;
        hold->bytes +=
            counts[module] * pipeline_gathered_bytes(pipeline, (enum pipeline_module)module);
    }
}

/* Slots of a pass: a stage that has nothing in it hands on what it gets, if that is for others. */
static uint32_t slots_of(const struct modules *modules, const struct pipeline_messages *messages)
{
    bool const hands_on = messages->receive != WAY_NONE || messages->send != WAY_NONE;
    return modules->count == 0 && hands_on ? 1 : modules->count;
}

/* The next pass of the rank that has slots, or its end. */
static uint32_t slots_next(const struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    for (; index < pipeline->list->count; index++) {
        const struct schedule_pass *pass = &pipeline->list->pass[index];
        struct modules const modules = modules_of(pipeline, pass);
        struct pipeline_messages const messages = pipeline_messages_of(pipeline, rank, pass);
        if (slots_of(&modules, &messages) != 0) break;
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
        .modules = modules_of(pipeline, pass),
        .messages = pipeline_messages_of(pipeline, rank, pass),
        .last =
            last && !pipeline_is_forward(pass->kind) && !reduces_apart(pipeline->list, pass->stage),
    };
    bool const shares =
        pipeline->lower->ranks->mtp_modules != 0 && !pipeline->lower->ranks->tied_lookup;
    passing.last_lookup = passing.last;
    if (shares && !pipeline_is_forward(pass->kind))
        passing.last_lookup = !pipeline->differs || lookup_is_last(pipeline, index);
    passing.updated =
        ranks_gathers_next(pipeline->lower->ranks) && is_first_forward(pipeline->list, index);
    passing.head_stays = schedule_turns_at_once(pipeline->list, index);
    passing.count = slots_of(&passing.modules, &passing.messages);
    weights_take(pipeline, &passing);
    return passing;
}

/* What a pass does in its slot number `place`; `ret_layer` and `ret_since` are the block's. */
static struct pipeline_pass part_at(const struct pipeline *pipeline, const struct passing *passing,
                                    uint32_t place, int32_t *ret_layer, uint32_t *ret_since)
{
    bool const forward = pipeline_is_forward(passing->pass->kind);
    bool const ends = place + 1 == passing->count;
    int64_t const ahead_slot =
        (int64_t)pipeline->slot_count - pipeline->lower->ranks->plan->prefetch_layers;
    struct pipeline_pass part = {.module = MODULE_NOTHING,
                                 .kind = passing->pass->kind,
                                 .last = passing->last,
                                 .last_lookup = passing->last_lookup,
                                 .receives = place == 0 && passing->messages.receive != WAY_NONE,
                                 .send = ends ? (uint8_t)passing->messages.send : WAY_NONE,
                                 .arrays = ends ? (uint8_t)passing->messages.arrays : 0};
    part.around = part.send != WAY_NONE && passing->messages.around;
    *ret_layer = -1;
    *ret_since = 0;
    if (passing->modules.count > 0)
        part.module = (uint8_t)module_at(&passing->modules, forward, place, ret_layer);
    if (part.module == MODULE_LAYER || part.module == MODULE_EXPERTS)
        part.windowed = ranks_layer_is_windowed(pipeline->lower->ranks, (uint64_t)*ret_layer);
    if (part.module == MODULE_MTP || part.module == MODULE_MTP_HEAD)
        part.place = mtp_position_at(pipeline->lower->ranks, (uint64_t)*ret_layer);
    part.updated = part.module != MODULE_NOTHING && passing->updated;
    if (part.module == MODULE_NOTHING) return part;
    if (pipeline->lower->ranks->shards == 1 && !part.updated) return part;
    if (keeps_weights(pipeline)) {
        part.keeping = passing->holds[part.module] ? LOWER_HOLDS : LOWER_TAKES;
        part.since = part.keeping == LOWER_TAKES;
        if (part.since) *ret_since = passing->since_slot;
        return part;
    }
    part.head_stays =
        part.module == MODULE_HEAD && passing->head_stays && pipeline->lower->ranks->shards > 1;
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
        .name = pipeline_module_name((enum pipeline_module)slot->variant.part[0].module),
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
static bool passes_wait(const struct ranks *ranks)
{
    return ranks->tp > 1 || ranks->experts.ranks > 1 || ranks->sequence_parts > 1;
}

/* Two passes overlap op by op, unless they would have to wait for messages of both neighbours,
 * which is more than a slot can, or one reads the weights of a stage that the other gathers. */
static bool passes_mix(const struct pipeline *pipeline, const struct passing *one,
                       const struct passing *other)
{
    enum pipeline_way const a = one->messages.receive, b = other->messages.receive;
    bool const same_side = a == b || a == WAY_NONE || b == WAY_NONE;
    bool const apart = one->pass->stage != other->pass->stage || !keeps_weights(pipeline);
    return passes_wait(pipeline->lower->ranks) && same_side && apart && one->modules.count > 0 &&
           other->modules.count > 0;
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
    uint64_t most = PIPELINE_TIED, layers = 0; /* Of the stage that has most. */
    void *memory = NULL;
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        if (!schedule_rank_holds(schedule, rank, s)) continue;
        const struct stage *stage = &pipeline->stages.stage[s];
        uint32_t const dense = stages_dense_layers(stage, pipeline->dense_layers);
        holding.layers[LAYER_DENSE] += dense;
        holding.layers[LAYER_MOE] += stage->layer_count - dense;
        if (stage->layer_count > layers) layers = stage->layer_count;
        holding.mtp_modules += stage->mtp_modules;
        holding.embedding = holding.embedding || stage->embedding || stage->mtp_modules != 0;
        holding.head = holding.head || stage->head;
        /* Updates, and what goes to another copy; reductions, and what comes from there; and a
         * gather behind each of them that waits otherwise. */
        most += 3 * MODULE_COUNT + 3 * ((uint64_t)stage->layer_count + MODULE_COUNT);
    }
    uint64_t const turns =
        lower->ranks->window_turns < layers ? lower->ranks->window_turns : layers;
    most += (uint64_t)list->count * (BLOCKS_A_PASS + lower->ranks->mtp_modules + turns);
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
        pipeline_replicas_send(pipeline, i);
        if (list->pass[i].paired)
            pair_add(pipeline, rank, i++);
        else
            pass_add(pipeline, rank, i);
    }
    pipeline_actions_add(pipeline, list->count);
    pipeline_replicas_send(pipeline, list->count);
    pipeline_replicas_sum(pipeline);
    for (uint32_t i = 0; lower->ranks->tied_apart && i < PIPELINE_TIED; i++) {
        struct program_block tied =
            lower_tied_block(schedule, i == 1, pipeline->tied[i], pipeline->tied_message[i]);
        if (lower->ranks->tied_lookup) tied.name = "tied embedding";
        if (rank == (i == 1 ? pipeline->tied_rank : 0)) pipeline_block_add(pipeline, &tied);
    }
    for (uint32_t s = schedule->stage_count; s-- > 0;)
        if (schedule_rank_holds(schedule, rank, s))
            pipeline_modules_add(pipeline, &pipeline->stages.stage[s], pipeline->update,
                                 PROGRAM_PHASE_UPDATE, schedule->microbatch_count - 1, NULL);
    role->block = pipeline->block;
    role->block_count = pipeline->block_count;
    lower_resident(lower->ranks, &holding, role->resident_bytes);
    return STATUS_OK;
}

static enum status pipeline_build(struct pipeline *pipeline, struct error *reterr)
{
    struct lower *lower = pipeline->lower;
    const struct ranks *ranks = lower->ranks;
    struct program *program = lower->build.program;
    const struct mesh_axis *axis = &ranks->mesh->axis[MESH_PP];
    void *memory = NULL;
    STATUS_TRY(workload_schedule(lower->build.arena, ranks->plan, ranks->machine, ranks->mesh,
                                 &pipeline->schedule, reterr));
    STATUS_TRY(stages_build(lower->build.arena, ranks->plan, pipeline->schedule.stage_count,
                            ranks_room(ranks, MESH_PP), &pipeline->stages, reterr));
    STATUS_TRY(arena_try(lower->build.arena, pipeline->schedule.stage_count, sizeof *pipeline->hold,
                         &memory, reterr));
    pipeline->hold = memory;
    STATUS_TRY(arena_try(lower->build.arena, pipeline->schedule.stage_count,
                         sizeof *pipeline->sent_stage, &memory, reterr));
    pipeline->sent_stage = memory;
    pipeline->tied_rank = pipeline_tied_rank(&pipeline->schedule, &pipeline->stages);
    STATUS_TRY(pipeline_messages_number(pipeline, reterr));
    bool const parts_last = ranks_sums_parts(ranks) && ranks->gradient_shards == 1;
    pipeline->differs = ranks->plan->accumulate > 1 && (ranks->reduce_last || parts_last);
    pipeline_rests_build(pipeline);
    struct program_role *roles = builder_roles(&lower->build, pipeline->schedule.rank_count, 0);
    if (roles == NULL) return lower->build.status;
    for (uint32_t rank = 0; rank < program->role_count; rank++) {
        STATUS_TRY(cancel_check(ranks->plan->watch, reterr));
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
    pipeline->dense_layers = lower->ranks->layer[LAYER_DENSE].count;
    enum status const status = pipeline_build(pipeline, lower->build.error);
    if (lower->build.status == STATUS_OK) lower->build.status = status;
}
