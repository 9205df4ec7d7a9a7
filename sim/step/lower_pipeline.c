/* The passes of a rank's list: the slots of each, and what the slots play. */
#include <string.h>

#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_traffic.h"
#include "sim/step/graph_terms.h"
#include "sim/step/pipeline.h"
#include "sim/step/pipeline_places.h"
#include "sim/step/stages.h"

void pipeline_block_add(struct pipeline *pipeline, const struct program_block *block)
{
    struct program_block *former = pipeline->role.block_count == 0
                                       ? NULL
                                       : &pipeline->role.block[pipeline->role.block_count - 1];
    uint32_t const slot = pipeline->role.slot_count;
    pipeline->role.slot_count += block->repeat;
    if (former != NULL && former->template_index == block->template_index &&
        former->pass == block->pass && former->layer_first >= 0 && block->layer_first >= 0 &&
        former->phase == block->phase && former->since_slot == block->since_slot &&
        former->arrivals == block->arrivals &&
        former->layer_first + former->layer_step * (int32_t)former->repeat == block->layer_first) {
        former->repeat += block->repeat;
        return;
    }
    SIM_ASSERT(pipeline->role.block_count < pipeline->role.block_capacity);
    pipeline->role.block[pipeline->role.block_count] = *block;
    pipeline->role.block[pipeline->role.block_count++].slot_first = slot;
}

/* Whether there is such a slot, and it computes nothing. */
static bool slot_is_idle(const struct pipeline *pipeline, int64_t slot)
{
    uint32_t b = pipeline->role.block_count;
    if (slot < 0 || slot >= pipeline->role.slot_count) return false;
    while (pipeline->role.block[b - 1].slot_first > slot) b--;
    const struct program *program = pipeline->lower->build.program;
    const struct program_template *template =
        &program->templates[pipeline->role.block[b - 1].template_index];
    return pipeline->lower->build.status == STATUS_OK &&
           template->stream_parts[PROGRAM_COMPUTE] == 0;
}

/* A pass while its slots are added. */
struct passing {
    const struct schedule_pass *pass;
    struct pipeline_places modules;
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
    for (uint32_t i = index + 1; i < pipeline->role.list->count; i++) {
        const struct schedule_pass *later = &pipeline->role.list->pass[i];
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

/* Whether an action reduces the stage's gradients, or all are reduced behind the passes. */
static bool reduces_apart(const struct pipeline *pipeline, uint32_t stage)
{
    const struct schedule_rank *list = pipeline->role.list;
    if (ranks_replicas_wait(pipeline->lower->ranks)) return true;
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
    struct pipeline_hold *hold = &pipeline->role.hold[passing->pass->stage];
    const struct pipeline_places *modules = &passing->modules;
    const struct stage *stage = modules->stage;
    uint32_t counts[MODULE_COUNT] = {
        [MODULE_EMBEDDING] = modules->embedding, [MODULE_HEAD] = modules->head};
    if (!keeps_weights(pipeline)) return;
    SIM_ASSERT(hold->held);
    struct step_layers const layers =
        step_layers(modules->ranks, stage->layer_first, stage->layer_count);
    memcpy(&counts[MODULE_LAYER], layers.of, sizeof layers.of);
    passing->since_slot = hold->since_slot;
    for (uint32_t module = MODULE_NOTHING + 1; module < MODULE_COUNT; module++) {
        passing->holds[module] = hold->has[module];
        if (hold->has[module] || counts[module] == 0) continue;
        hold->has[module] = true;
        hold->bytes +=
            counts[module] * lower_gathered_bytes(pipeline->lower, (enum lower_module)module);
    }
}

/* Slots of a pass: a stage that has nothing in it hands on what it gets, if that is for others. */
static uint32_t slots_of(const struct pipeline_places *modules,
                         const struct pipeline_messages *messages)
{
    bool const hands_on = messages->receive != WAY_NONE || messages->send != WAY_NONE;
    return modules->count == 0 && hands_on ? 1 : modules->count;
}

/* The next pass of the rank that has slots, or its end. */
static uint32_t slots_next(const struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    for (; index < pipeline->role.list->count; index++) {
        const struct schedule_pass *pass = &pipeline->role.list->pass[index];
        struct pipeline_places const modules = pipeline_places_of(pipeline, pass);
        struct pipeline_messages const messages = pipeline_messages_of(pipeline, rank, pass);
        if (slots_of(&modules, &messages) != 0) break;
    }
    return index;
}

/* Bytes of the stages that are given up before a pass. */
static uint64_t weights_give(struct pipeline *pipeline, uint32_t before)
{
    const struct schedule_rank *list = pipeline->role.list;
    uint64_t bytes = 0;
    for (; pipeline->role.give_next < list->action_count &&
           list->action[pipeline->role.give_next].before <= before;
         pipeline->role.give_next++) {
        const struct schedule_action *action = &list->action[pipeline->role.give_next];
        if (action->act != SCHEDULE_RESHARD) continue;
        bytes += pipeline->role.hold[action->stage].bytes;
        pipeline->role.hold[action->stage].bytes = 0;
    }
    return bytes;
}

static struct passing passing_of(struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    const struct schedule_pass *pass = &pipeline->role.list->pass[index];
    bool const last = pipeline_pass_is_last(pipeline->role.list, index) || !pipeline->differs;
    struct passing passing = {
        .pass = pass,
        .modules = pipeline_places_of(pipeline, pass),
        .messages = pipeline_messages_of(pipeline, rank, pass),
        .last = last && !pipeline_is_forward(pass->kind) && !reduces_apart(pipeline, pass->stage),
    };
    bool const shares =
        pipeline->lower->ranks->mtp.modules != 0 && !pipeline->lower->ranks->tie.lookup;
    passing.last_lookup = passing.last;
    if (shares && !pipeline_is_forward(pass->kind))
        passing.last_lookup = !pipeline->differs || lookup_is_last(pipeline, index);
    passing.updated =
        ranks_gathers_next(pipeline->lower->ranks) && is_first_forward(pipeline->role.list, index);
    passing.head_stays = schedule_turns_at_once(pipeline->role.list, index);
    passing.count = slots_of(&passing.modules, &passing.messages);
    weights_take(pipeline, &passing);
    return passing;
}

/* Without stages, what is kept in the host's memory: activations of all layers but the last, whose
 * backward pass follows at once; and moments, by which each module is updated one slot behind the
 * last of its backward passes. `layer` -1: an end. */
static void offload_set(const struct ranks *ranks, int32_t layer, struct lower_part *part)
{
    bool const top = layer + 1 == (int32_t)ranks->plan->model.layers;
    bool const has_head = ranks_is_decoder(ranks) && !ranks->tie.here;
    part->top = top && ranks_offloads_activations(ranks);
    if (!part->last || !ranks_offloads_optimizer(ranks) || part->module == MODULE_HEAD) return;
    part->updates = !top       ? (uint8_t)lower_weights_at(ranks, (uint64_t)(layer + 1))
                    : has_head ? MODULE_HEAD
                               : MODULE_NOTHING;
}

/* The first pass of the step that gives the module the same work as `pass`, as chunks of prompts
 * may. */
static uint8_t pass_alike(const struct pipeline *pipeline, const struct lower_part *part,
                          uint32_t pass)
{
    const struct lower_shape *shapes = pipeline->lower->shapes;
    const struct ranks *ranks = pipeline->lower->ranks;
    enum block_part const of = part->module == MODULE_EMBEDDING ? BLOCK_EMBEDDING
                               : part->module == MODULE_HEAD    ? BLOCK_HEAD
                                                                : BLOCK_LAYER;
    uint32_t like = 0;
    if (!ranks_serves(ranks)) return 0;
    struct layer_kind const layer = ranks->kinds.kind[lower_kind_of(ranks, part->module)];
    while (
        !inference_alike(&shapes[like].ranks->inference, &shapes[pass].ranks->inference, of, layer))
        like++;
    return (uint8_t)like;
}

/* Whether a layer has a repeated forward pass of its own. */
static bool layer_is_repeated(const struct ranks *ranks, const struct pipeline_placed *placed)
{
    return lower_is_layer(placed->module) && ranks->kinds.grouped &&
           layer_set_has(&ranks->kinds.kept, (uint64_t)placed->layer);
}

/* A layer's place in its group. A repeated forward pass reduces nothing. */
static void group_set(const struct ranks *ranks, const struct pipeline_placed *placed,
                      struct lower_part *part)
{
    if (!lower_is_layer(placed->module)) return;
    part->group = (uint8_t)ranks_group_at(ranks, (uint64_t)placed->layer);
    if (!placed->again) return;
    part->act = ACT_AGAIN;
    part->last = part->last_lookup = false;
}

/* What a pass does in its slot number `place`; `ret_layer` and `ret_since` are the block's. */
static struct lower_part part_at(const struct pipeline *pipeline, const struct passing *passing,
                                 uint32_t place, int32_t *ret_layer, uint32_t *ret_since)
{
    bool const forward = pipeline_is_forward(passing->pass->kind);
    bool const ends = place + 1 == passing->count;
    int64_t const ahead_slot =
        (int64_t)pipeline->role.slot_count - pipeline->lower->ranks->plan->prefetch_layers;
    struct lower_part part = {.act = passing->pass->kind,
                              .last = passing->last,
                              .last_lookup = passing->last_lookup,
                              .receives = place == 0 && passing->messages.receive != WAY_NONE,
                              .send = ends ? (uint8_t)passing->messages.send : WAY_NONE,
                              .arrays = ends ? (uint8_t)passing->messages.arrays : 0};
    part.around = part.send != WAY_NONE && passing->messages.around;
    struct pipeline_placed const placed = pipeline_placed_at(&passing->modules, forward, place);
    *ret_layer = placed.layer;
    *ret_since = 0;
    part.module = (uint8_t)placed.module;
    group_set(pipeline->lower->ranks, &placed, &part);
    part.pass = pass_alike(pipeline, &part, passing->pass->microbatch);
    offload_set(pipeline->lower->ranks, *ret_layer, &part);
    if (part.module == MODULE_MTP || part.module == MODULE_MTP_HEAD)
        part.place = mtp_position_at(pipeline->lower->ranks, (uint64_t)*ret_layer);
    part.updated = part.module != MODULE_NOTHING && passing->updated;
    if (part.module == MODULE_NOTHING) return part;
    if (pipeline->lower->ranks->shards == 1 && !part.updated) return part;
    if (keeps_weights(pipeline)) {
        bool const repeated = passing->modules.again && !placed.again &&
                              layer_is_repeated(pipeline->lower->ranks, &placed);
        part.keeping = passing->holds[part.module] || repeated ? LOWER_HOLDS : LOWER_TAKES;
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
    uint32_t repeat; /* Slots that are alike, a layer each. */
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

/* How many places from one on play what it does: layers of its kind, none of them the first or the
 * last of the pass, where messages come and go. */
static uint32_t places_alike(const struct pipeline *pipeline, const struct passing *passing,
                             uint32_t place, const struct lower_part *part)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    bool const is_layer = lower_is_layer(part->module);
    bool const differ = ranks_offloads(ranks) || ranks->kinds.grouped;
    uint32_t const ahead = ranks->plan->prefetch_layers;
    if (!is_layer || differ || place == 0 || place + 1 == passing->count) return 1;
    uint32_t run =
        pipeline_run_at(&passing->modules, pipeline_is_forward(passing->pass->kind), place,
                        /* weights= */ false);
    if (place + run == passing->count) run--;
    for (uint32_t n = 1; n < run && n < ahead; n++)
        if (slot_is_idle(pipeline, (int64_t)pipeline->role.slot_count + n - ahead)) return n;
    return run;
}

static void slot_add(struct pipeline *pipeline, const struct slot *slot,
                     const struct passing *passing, uint32_t pass, uint64_t arrivals)
{
    static const enum program_phase phases[] = {PROGRAM_PHASE_FORWARD, PROGRAM_PHASE_BACKWARD,
                                                PROGRAM_PHASE_BACKWARD, PROGRAM_PHASE_WEIGHT};
    bool const forward =
        pipeline_is_forward(passing->pass->kind) || slot->variant.part[0].act == ACT_AGAIN;
    bool const is_pair = slot->variant.part_count > 1;
    struct program_block const block = {
        .template_index = pipeline_template(pipeline, &slot->variant),
        .phase = is_pair ? PROGRAM_PHASE_PAIR : phases[passing->pass->kind],
        .name = pipeline_module_name((enum lower_module)slot->variant.part[0].module),
        .repeat = slot->repeat,
        .layer_first = slot->layer,
        .layer_step = slot->layer < 0 ? 0
                      : forward       ? 1
                                      : -1,
        .microbatch = passing->pass->microbatch,
        .pass = pipeline->lower->ranks->pp > 1 ? pass : 0,
        .arrivals = slot->variant.receive == WAY_NONE ? 0 : arrivals,
        .since_slot = slot->since,
    };
    pipeline_block_add(pipeline, &block);
}

struct place_span {
    uint32_t from, end;
};

/* Some slots of a pass. The last of the pass gives back what is given up before `before`. */
static void places_play(struct pipeline *pipeline, const struct passing *passing, uint32_t index,
                        struct place_span places, uint32_t before)
{
    for (uint32_t place = places.from, next; place < places.end; place = next) {
        struct slot slot = {0};
        part_add(pipeline, passing, place, &slot);
        slot.repeat = places_alike(pipeline, passing, place, &slot.variant.part[0]);
        next = place + slot.repeat;
        if (place == 0) slot.variant.receive = (uint8_t)passing->messages.receive;
        if (place + 1 == passing->count) slot.variant.given_bytes = weights_give(pipeline, before);
        slot_add(pipeline, &slot, passing, index + 1, passing->messages.arrivals);
    }
}

static void places_add(struct pipeline *pipeline, const struct passing *passing, uint32_t index,
                       uint32_t from, uint32_t before)
{
    places_play(pipeline, passing, index, (struct place_span){from, passing->count}, before);
}

/* Whether collectives stand between the ops of a pass: else there is nothing to run during. */
static bool passes_wait(const struct ranks *ranks)
{
    return ranks->tp > 1 || ranks->experts.ranks > 1 || ranks->sequences.parts > 1;
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
        struct slot slot = {.repeat = 1};
        part_add(pipeline, &one, place, &slot);
        part_add(pipeline, &other, place, &slot);
        if (place == 0)
            slot.variant.receive =
                (uint8_t)(one.messages.receive != WAY_NONE ? one.messages.receive
                                                           : other.messages.receive);
        if (place + 1 == one.count && place + 1 == other.count)
            slot.variant.given_bytes = weights_give(pipeline, before);
        slot_add(pipeline, &slot, &one, index + 1, arrivals);
    }
    places_add(pipeline, &one, index, shared, before);
    places_add(pipeline, &other, index + 1, shared, before);
}

uint32_t pipeline_pass_add(struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    if (pipeline->role.list->pass[index].paired) {
        pair_add(pipeline, rank, index);
        return 2;
    }
    struct passing const passing = passing_of(pipeline, rank, index);
    places_add(pipeline, &passing, index, 0, slots_next(pipeline, rank, index + 1));
    return 1;
}

/* Weight gradients of one stage, up to the end of the list. */
bool pipeline_is_tail(const struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    const struct schedule_rank *list = pipeline->role.list;
    bool const has_end = rank == 0 || rank == pipeline->tied_rank;
    if (!ranks->plan->software.overlap.tied || !ranks->tie.apart || ranks->tie.lookup) return false;
    if (!has_end || list->action_count > 0 || pipeline->schedule.copy_count > 1) return false;
    for (uint32_t i = index; i < list->count; i++)
        if (list->pass[i].kind != SCHEDULE_WEIGHT || list->pass[i].stage != list->pass[index].stage)
            return false;
    return true;
}

/* Of all passes from `index` on the tied matrix, the last module of the first stage and the first
 * of the last; or all else. Slots of the matrix are those of the first of the passes. */
static void tail_part_add(struct pipeline *pipeline, uint32_t rank, uint32_t index, bool matrix)
{
    for (uint32_t i = index; i < pipeline->role.list->count; i++) {
        struct passing const passing = passing_of(pipeline, rank, i);
        uint32_t const at = rank == 0 ? passing.count - 1 : 0;
        struct place_span const places = matrix      ? (struct place_span){at, at + 1}
                                         : rank == 0 ? (struct place_span){0, at}
                                                     : (struct place_span){1, passing.count};
        places_play(pipeline, &passing, matrix ? index : i, places, index);
    }
}

uint32_t pipeline_tail_add(struct pipeline *pipeline, uint32_t rank, uint32_t index)
{
    tail_part_add(pipeline, rank, index, true);
    pipeline_tie_add(pipeline, rank, ACT_TIE_SWAP, index + 1);
    tail_part_add(pipeline, rank, index, false);
    return pipeline->role.list->count - index;
}

/* The place of a module in the order of kinds. */
static uint32_t order_of(const struct lower_part *part)
{
    return lower_is_layer(part->module) ? part->module - MODULE_LAYER : 0;
}

/* Whether two layers differ in more than their kinds. */
static bool layers_differ(const struct lower_part *one, const struct lower_part *other)
{
    return one->top != other->top || one->updates != other->updates;
}

/* Plans are numbered as templates ask for them, and events of messages by plans: so layers that
 * have equal weights and follow one another come in the order of their kinds, and modules from the
 * first on, whatever plays first. But a layer whose backward pass is unlike that of the others,
 * which update what it reduces, comes before them. */
void pipeline_pass_build(struct pipeline *pipeline, uint32_t index)
{
    struct passing const passing = passing_of(pipeline, 0, index);
    const struct ranks *ranks = pipeline->lower->ranks;
    bool const forward = pipeline_is_forward(passing.pass->kind);
    for (uint32_t from = 0, end = 0; from < passing.count; from = end) {
        struct slot first = {0};
        part_add(pipeline, &passing, from, &first);
        bool const reversed = !forward && first.variant.part[0].module == MODULE_MTP;
        end = from + pipeline_run_at(&passing.modules, forward, from, /* weights= */ true);
        for (uint32_t kind = 0; kind < ranks->kinds.count; kind++)
            for (uint32_t at = from, next; at < end; at = next) {
                struct slot slot = {0};
                part_add(pipeline, &passing, reversed ? from + end - 1 - at : at, &slot);
                if (!forward && layers_differ(&first.variant.part[0], &slot.variant.part[0])) {
                    end = at;
                    break;
                }
                next = at + places_alike(pipeline, &passing, at, &slot.variant.part[0]);
                if (order_of(&slot.variant.part[0]) == kind)
                    (void)pipeline_template(pipeline, &slot.variant);
            }
    }
}
