#include "sim/replay/record_owner.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/message.h"
#include "sim/replay/state.h"

/* A place in the list of a stream's ops. */
struct cursor {
    uint32_t slot;
    uint32_t position;
};

static const struct stream_ops *ops_at(const struct replay *replay, uint32_t stream, uint32_t chip,
                                       uint32_t slot)
{
    const struct role_table *role = role_at(replay, chip);
    SIM_ASSERT(slot < role->role->slot_count);
    return &replay->streams.ops[role->slot_template[slot] * PROGRAM_STREAMS_MAX + stream];
}

static struct record_owner owner_at(const struct replay *replay, uint32_t stream, uint32_t chip,
                                    const struct cursor *cursor)
{
    return (struct record_owner){
        .template_index = role_at(replay, chip)->slot_template[cursor->slot],
        .op = ops_at(replay, stream, chip, cursor->slot)->op[cursor->position],
    };
}

/* Whether the op has messages: of the plan, or of any if that is NULL. */
static bool op_counts(const struct replay *replay, struct record_owner owner,
                      const struct plan *plan)
{
    const struct program_op *op = &replay->program->templates[owner.template_index].op[owner.op];
    if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) return false;
    return plan == NULL || plan == &replay->program->plans[op->index];
}

/* The `back`-th op that counts before the place; at least 1. */
static struct record_owner label_before(const struct replay *replay, uint32_t stream, uint32_t chip,
                                        struct cursor cursor, uint32_t back,
                                        const struct plan *plan)
{
    for (;;) {
        if (cursor.position == 0) {
            SIM_ASSERT(cursor.slot > 0); /* Who sends has begun the op. */
            cursor.position = ops_at(replay, stream, chip, --cursor.slot)->op_count;
            continue;
        }
        cursor.position--;
        struct record_owner const owner = owner_at(replay, stream, chip, &cursor);
        if (op_counts(replay, owner, plan) && --back == 0) return owner;
    }
}

/* The `ahead`-th from the place on, the first being the 0th. */
static struct record_owner label_ahead(const struct replay *replay, uint32_t stream, uint32_t chip,
                                       struct cursor cursor, uint32_t ahead)
{
    for (;;) {
        if (cursor.position == ops_at(replay, stream, chip, cursor.slot)->op_count) {
            cursor = (struct cursor){.slot = cursor.slot + 1};
            continue;
        }
        struct record_owner const owner = owner_at(replay, stream, chip, &cursor);
        if (op_counts(replay, owner, NULL) && ahead-- == 0) return owner;
        cursor.position++;
    }
}

/* The place behind the last op that has begun. */
static struct cursor begun_until(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    bool const runs =
        state->phase == STREAM_RUNS || state->phase == STREAM_LEAVES || state->phase == STREAM_ENDS;
    return (struct cursor){.slot = state->slot, .position = state->position + (uint32_t)runs};
}

struct record_owner record_owner_running(struct replay *replay, uint32_t stream, uint32_t chip)
{
    const struct stream_state *state = stream_at(replay, stream, chip);
    struct cursor const cursor = {.slot = state->slot, .position = state->position};
    return owner_at(replay, stream, chip, &cursor);
}

struct record_owner record_owner_of_epoch(struct replay *replay, uint32_t stream, uint32_t chip,
                                          uint32_t epoch)
{
    uint32_t const epochs = 1u << KEY_EPOCH_BITS;
    uint32_t const ahead = (epoch - stream_at(replay, stream, chip)->epoch) % epochs;
    struct cursor const cursor = begun_until(replay, stream, chip);
    if (ahead > 0 && ahead < epochs / 2)
        return label_ahead(replay, stream, chip, cursor, ahead - 1);
    return label_before(replay, stream, chip, cursor, 1 + (epochs - ahead) % epochs, NULL);
}

void record_owner_op_begin(struct replay *replay, uint32_t plan, uint32_t chip)
{
    struct plan_table *table = &replay->lanes.plans[plan];
    if (table->begun != NULL) table->begun[chip]++;
}

struct record_owner record_passing(struct replay *replay, const struct lane_table *lane,
                                   uint32_t chip, uint32_t hop)
{
    struct record_passing *passing =
        &lane->route.passing[(uint64_t)(hop - 1) * replay->chip_count + chip];
    SIM_ASSERT(passing->sender != UINT32_MAX);
    uint32_t const each =
        lane->steps.send_count[position_of(lane, passing->sender)] * lane->piece_count;
    uint32_t const instance = passing->count++ / each;
    uint32_t const begun = lane->plan->begun[passing->sender];
    SIM_ASSERT(instance < begun);
    return label_before(replay, lane->stream, passing->sender,
                        begun_until(replay, lane->stream, passing->sender), begun - instance,
                        lane->plan->plan);
}

struct record_ends record_ends_fixed(const struct replay *replay, const struct lane_table *lane,
                                     uint32_t chip, uint32_t hop)
{
    struct record_ends ends = {.number = lane->states[chip].sent};
    uint32_t sender = chip, at[MACHINE_AXES_MAX];
    if (hop > 0) {
        const struct record_passing *passing =
            &lane->route.passing[(uint64_t)(hop - 1) * replay->chip_count + chip];
        sender = passing->sender;
        ends.number = (passing->count - 1) %
                      (lane->steps.send_count[position_of(lane, sender)] * lane->piece_count);
    }
    fold_coordinates(replay->fold, sender, at);
    ends.from = machine_chip_at(replay->machine, at);
    for (uint32_t link = 0; link < lane->route.hop_count; link++) {
        uint32_t next[MACHINE_AXES_MAX];
        if (link == hop) ends.at = machine_chip_at(replay->machine, at);
        machine_neighbour(replay->machine, at, route_port(lane, link), next);
        memcpy(at, next, sizeof at);
    }
    ends.to = machine_chip_at(replay->machine, at);
    return ends;
}

/* Who sends what comes by, for each chip and link of the route but the first. */
static void senders_find(const struct replay *replay, const struct lane_table *lane,
                         struct record_passing *passing)
{
    uint64_t const rows = lane->route.hop_count - 1u;
    for (uint64_t i = 0; i < rows * replay->chip_count; i++) passing[i].sender = UINT32_MAX;
    for (uint32_t sender = 0; sender < replay->chip_count; sender++) {
        if (lane->steps.send_count[position_of(lane, sender)] == 0) continue;
        uint32_t at = sender;
        for (uint32_t hop = 0; hop < rows; hop++) {
            at = replay->grid.neighbour[(uint64_t)route_port(lane, hop) * replay->chip_count + at];
            SIM_ASSERT(at != UINT32_MAX);
            passing[hop * replay->chip_count + at].sender = sender;
        }
    }
}

/* The tables of a lane of several hops. */
static enum status passing_build(struct arena *arena, const struct replay *replay,
                                 struct plan_table *plan, struct lane_table *lane,
                                 struct error *reterr)
{
    void *memory = NULL;
    if (plan->begun == NULL) {
        STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *plan->begun, &memory, reterr));
        plan->begun = memory;
    }
    STATUS_TRY(arena_try(arena, (lane->route.hop_count - 1u) * (uint64_t)replay->chip_count,
                         sizeof *lane->route.passing, &memory, reterr));
    lane->route.passing = memory;
    senders_find(replay, lane, lane->route.passing);
    return STATUS_OK;
}

enum status record_owner_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    void *memory = NULL;
    for (uint32_t i = 0; replay->records.active && i < replay->lanes.plan_count; i++) {
        struct plan_table *plan = &replay->lanes.plans[i];
        for (uint32_t l = 0; l < plan->lane_count; l++) {
            struct lane_table *lane = &plan->lane[l];
            if (lane->routed != NULL) continue;
            if (lane->route.hop_count < 2) {
                STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *lane->route.recorded,
                                     &memory, reterr));
                lane->route.recorded = memory;
            } else {
                STATUS_TRY(passing_build(arena, replay, plan, lane, reterr));
            }
        }
    }
    return STATUS_OK;
}
