/* Streams of alike chips: their ops end, those who wait are woken, and next ops and parts begin. */
#include <stddef.h>
#include <string.h>

#include "sim/replay/batch.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/stream_steps.h"
#include "sim/replay/transport.h"

/* Where a stream of a chip is in its program. */
struct stream_copy {
    struct stream_state state;
    struct chip_state chip;
};

static inline struct stream_copy stream_copy_of(struct replay *replay, uint32_t stream,
                                                uint32_t chip)
{
    return (struct stream_copy){*stream_at(replay, stream, chip), replay->chips[chip]};
}

/* Of the fields from `first` to `last`. */
#define SAME_FIELDS(type, a, b, first, last)                                                       \
    (memcmp(&(a)->first, &(b)->first,                                                              \
            offsetof(struct type, last) + sizeof(a)->last - offsetof(struct type, first)) == 0)

static inline bool is_alike(const struct stream_copy *place, const struct stream_state *state,
                            const struct chip_state *self)
{
    return SAME_FIELDS(stream_state, state, &place->state, slot, lanes_left) &&
           SAME_FIELDS(stream_state, state, &place->state, part, epoch) &&
           SAME_FIELDS(chip_state, self, &place->chip, chip_class, role);
}

static void advance_many(struct replay *replay, uint32_t stream, const struct batch *batch,
                         int64_t now_ps);

static void wake_alike(struct replay *replay, const struct batch *batch, uint32_t waiters,
                       int64_t now_ps)
{
    for (; waiters != 0; waiters &= waiters - 1) {
        uint32_t const waiter = (uint32_t)__builtin_ctz(waiters);
        struct batch sending, others;
        sending.count = others.count = 0;
        for (uint32_t i = 0; i < batch->count; i++)
            batch_add(stream_sends(replay, waiter, batch->chip[i]) ? &sending : &others,
                      batch->chip[i]);
        lanes_operand(replay, waiter, sending.chip, sending.count, now_ps);
        advance_many(replay, waiter, &others, now_ps);
    }
}

void streams_wake_many(struct replay *replay, uint32_t stream, const struct batch *batch,
                       int64_t now_ps)
{
    struct stream_state *states = stream_at(replay, stream, 0);
    struct batch alike;
    uint32_t waiters = 0;
    alike.count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t const chip = batch->chip[i];
        uint32_t const own = waiters_take(replay, chip, &states[chip], now_ps);
        if (i == 0) waiters = own;
        if (own == waiters)
            batch_add(&alike, chip);
        else
            streams_wake(replay, chip, own, now_ps);
    }
    wake_alike(replay, &alike, waiters, now_ps);
}

/* Parts of one number of an op begin on chips of one class. */
static void parts_begin(struct replay *replay, const struct program_op *op, uint32_t part,
                        const struct batch *batch, int64_t now_ps)
{
    const struct op_table *table =
        op_table_at(replay, op->index, replay->chips[batch->chip[0]].chip_class);
    struct stream_state *states = stream_at(replay, PROGRAM_COMPUTE, 0);
    struct batch woken;
    int64_t end_ps = 0;
    woken.count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t const chip = batch->chip[i];
        part_open(replay, &states[chip], chip, now_ps);
        end_ps = part_serve(replay, table, part, chip, now_ps);
        if (stream_has_come(&states[chip])) batch_add(&woken, chip);
    }
    engine_post_many(replay->engine, end_ps,
                     event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0),
                     channel_of(replay, EVENT_COMPUTE_END, 0), batch->chip, batch->count);
    if (replay->recurrence.search != NULL && part == 0)
        recur_ask(replay, batch->chip, batch->count);
    streams_wake_many(replay, PROGRAM_COMPUTE, &woken, now_ps);
}

/* Collectives of one plan begin. */
static void collectives_begin(struct replay *replay, const struct need_cache *needs,
                              uint32_t stream, const struct batch *batch, int64_t now_ps)
{
    struct batch woken, simulated;
    woken.count = simulated.count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        collective_open(replay, needs, stream, batch->chip[i], now_ps);
        if (flight_begin(replay, stream, batch->chip[i], now_ps)) continue;
        transport_open(replay, stream, batch->chip[i], now_ps);
        batch_add(&simulated, batch->chip[i]);
    }
    if (simulated.count > 0) lanes_operand(replay, stream, simulated.chip, simulated.count, now_ps);
    for (uint32_t i = 0; i < batch->count; i++)
        if (stream_has_come(stream_at(replay, stream, batch->chip[i])))
            batch_add(&woken, batch->chip[i]);
    streams_wake_many(replay, stream, &woken, now_ps);
}

static void ops_begin(struct replay *replay, const struct need_cache *needs, uint32_t stream,
                      const struct batch *batch, int64_t now_ps)
{
    for (uint32_t i = 0; i < batch->count; i++)
        op_open(replay, needs, stream, batch->chip[i], now_ps);
    if (stream == PROGRAM_COMPUTE)
        parts_begin(replay, needs->op, 0, batch, now_ps);
    else
        collectives_begin(replay, needs, stream, batch, now_ps);
}

/* Whether ops of this kind begin together. */
static bool begins_together(const struct need_cache *needs)
{
    return needs->launched_ps == 0 &&
           (needs->op->kind == PROGRAM_OP_COMPUTE || needs->op->kind == PROGRAM_OP_COLLECTIVE);
}

static void advance_each(struct replay *replay, uint32_t stream, const struct batch *batch,
                         int64_t now_ps)
{
    for (uint32_t i = 0; i < batch->count; i++)
        streams_advance(replay, stream, batch->chip[i], now_ps);
}

/* Whether the stream of chips at a place may go on together. */
static bool advances_together(struct replay *replay, uint32_t stream, const struct batch *batch,
                              const struct stream_state *place)
{
    if (batch->count < BATCH_CHIPS_MIN) return false;
    if (place->phase == STREAM_RUNS) return stream == PROGRAM_COMPUTE && !place->part_runs;
    return place->phase == STREAM_WAITS &&
           stream_has_op(replay, stream, batch->chip[0], stream_at(replay, stream, batch->chip[0]));
}

/* As streams_advance() for one chip after the other. */
static void advance_many(struct replay *replay, uint32_t stream, const struct batch *batch,
                         int64_t now_ps)
{
    struct stream_state *states = stream_at(replay, stream, 0);
    struct batch ready;
    if (batch->count == 0) return;
    struct stream_copy const place = stream_copy_of(replay, stream, batch->chip[0]);
    const struct stream_state *first = &states[batch->chip[0]];
    bool const runs = place.state.phase == STREAM_RUNS;
    if (!advances_together(replay, stream, batch, &place.state)) {
        advance_each(replay, stream, batch, now_ps);
        return;
    }
    struct need_cache const needs = *streams_needs(replay, stream, batch->chip[0]);
    if (!runs && !begins_together(&needs)) {
        advance_each(replay, stream, batch, now_ps);
        return;
    }
    uint32_t const part = runs ? place.state.part : 0;
    uint32_t const slot = first->slot;
    uint16_t const position = first->position;
    ready.count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t const chip = batch->chip[i];
        if (i > 0 && !is_alike(&place, &states[chip], &replay->chips[chip])) {
            streams_advance(replay, stream, chip, now_ps);
            continue;
        }
        if (!runs) {
            states[chip].slot = slot;
            states[chip].position = position;
        }
        if (needs_met(replay, &needs, stream, chip, part)) batch_add(&ready, chip);
    }
    if (ready.count == 0) return;
    if (runs)
        parts_begin(replay, needs.op, part, &ready, now_ps);
    else
        ops_begin(replay, &needs, stream, &ready, now_ps);
}

void streams_compute_end_many(struct replay *replay, const uint32_t *chips, uint32_t count,
                              int64_t now_ps)
{
    if (!takes_batches(replay, count)) {
        streams_compute_end(replay, chips, count, now_ps);
        return;
    }
    struct stream_state *states = stream_at(replay, PROGRAM_COMPUTE, 0);
    struct stream_copy const place = stream_copy_of(replay, PROGRAM_COMPUTE, chips[0]);
    struct need_cache const needs = *streams_needs(replay, PROGRAM_COMPUTE, chips[0]);
    const struct op_table *table = op_table_at(replay, needs.op->index, place.chip.chip_class);
    uint64_t const key = event_key_make(EVENT_COMPUTE_END, 0, PROGRAM_COMPUTE, 0);
    uint32_t const channel = channel_of(replay, EVENT_COMPUTE_END, 0);
    struct batch ended, woken;
    ended.count = woken.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        if (!is_alike(&place, &states[chip], &replay->chips[chip])) {
            streams_compute_end(replay, &chip, 1, now_ps);
            continue;
        }
        int64_t const end_ps = part_end_ps(replay, table, place.state.part, chip, now_ps);
        if (end_ps > now_ps) {
            replay->chips[chip].part_end_ps = end_ps;
            engine_post(replay->engine, end_ps, key, channel, chip);
            continue;
        }
        digest_add_own(replay, now_ps, key, chip);
        part_close(replay, &needs, chip, now_ps);
        batch_add(&ended, chip);
        if (stream_has_come(&states[chip])) batch_add(&woken, chip);
    }
    replay->tally.parts_done += ended.count;
    streams_wake_many(replay, PROGRAM_COMPUTE, &woken, now_ps);
    advance_many(replay, PROGRAM_COMPUTE, &ended, now_ps);
    for (uint32_t i = 0; i < ended.count; i++) part_left(replay, ended.chip[i], now_ps);
}

void streams_collective_end_many(struct replay *replay, uint32_t stream, const uint32_t *chips,
                                 uint32_t count, int64_t now_ps)
{
    struct stream_state *states = stream_at(replay, stream, 0);
    struct need_cache const needs = *streams_needs(replay, stream, chips[0]);
    if (!takes_batches(replay, count) || needs.op->kind != PROGRAM_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < count; i++)
            streams_collective_end(replay, stream, chips[i], now_ps);
        return;
    }
    struct stream_copy const place = stream_copy_of(replay, stream, chips[0]);
    struct batch ended, woken;
    ended.count = woken.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        if (!is_alike(&place, &states[chip], &replay->chips[chip])) {
            streams_collective_end(replay, stream, chip, now_ps);
            continue;
        }
        if (!transport_leaves(replay, stream, chip, now_ps)) batch_add(&ended, chip);
    }
    lanes_end(replay, stream, &ended, now_ps);
    for (uint32_t i = 0; i < ended.count; i++) {
        uint32_t const chip = ended.chip[i];
        collective_close(replay, &needs, stream, chip, now_ps);
        if (stream_has_come(&states[chip])) batch_add(&woken, chip);
    }
    streams_wake_many(replay, stream, &woken, now_ps);
    advance_many(replay, stream, &ended, now_ps);
    for (uint32_t i = 0; i < ended.count; i++)
        if (states[ended.chip[i]].phase == STREAM_FINISHED)
            streams_check_finished(replay, ended.chip[i], now_ps);
}
