/*
 * batch.h: handlers that take all chips of an entry at once (docs/engine.md). Internal to
 * sim/replay.
 *
 * In lockstep an entry of the queue has many chips, and nearly all of them are at the same place:
 * they do the same, and only the state that it is done to is each chip's own. What the first chip
 * does is found once. Every other chip is held against it by a few compares. Chips that are alike
 * go through a handler together, step by step; others take the path of a single chip, which defines
 * what a handler does. The reference queue calls handlers with one chip at a time, so it takes no
 * other path.
 *
 * Why the result is the same. A handler touches the state of its own chip (engine.h), so steps of
 * different chips may take any order, as long as each chip takes its own steps in order. Posts of
 * one instant and key make one list, whose order is not defined either.
 */
#ifndef SIM_REPLAY_BATCH_H
#define SIM_REPLAY_BATCH_H

#include "sim/engine/engine.h"
#include "sim/replay/message.h"
#include "sim/replay/state.h"

/* Of fewer chips each goes by itself. */
enum { BATCH_CHIPS_MIN = 4 };

struct batch {
    uint32_t count;
    uint32_t chip[ENGINE_BATCH_MAX];
};

static inline void batch_add(struct batch *batch, uint32_t chip)
{
    batch->chip[batch->count++] = chip;
}

/* Whether a handler may take `count` chips of an entry together. Records of a timeline are in the
 * order of chips; a prefix fold stops between two of them; weights that come early are each chip's
 * own. */
static inline bool takes_batches(const struct replay *replay, uint32_t count)
{
    return count >= BATCH_CHIPS_MIN && !replay->records.active && replay->images == NULL &&
           !replay->prefetch.is_on;
}

/* Whether a handler may take messages of `count` chips together: each has one link, and nothing but
 * the link delays it. */
static inline bool lane_takes_batches(const struct replay *replay, const struct lane_table *lane,
                                      uint32_t count)
{
    return takes_batches(replay, count) && lane->route.single && lane->ring && !lane->posts &&
           replay->grid.waits == NULL;
}

/* batch_lanes.c: messages arrive on chips; `key`: without a message's number. False: nothing was
 * done, since the first chip is not one with which others could be alike. */
bool lanes_arrive(struct replay *replay, struct lane_table *lane, uint64_t key,
                  const uint32_t *chips, uint32_t count, int64_t now_ps);
/* As transport_lane_ready() for one chip after the other. */
void lanes_ready(struct replay *replay, uint32_t stream, uint32_t number, const uint32_t *chips,
                 uint32_t count, int64_t now_ps);
/* As transport_lane_try() for one chip after the other. */
void lanes_try(struct replay *replay, struct lane_table *lane, const uint32_t *chips,
               uint32_t count, int64_t now_ps);

/* As transport_operand() for one chip after the other. */
void lanes_operand(struct replay *replay, uint32_t stream, const uint32_t *chips, uint32_t count,
                   int64_t now_ps);

/* transport_end.c: as transport_end() for one chip after the other. */
void lanes_end(struct replay *replay, uint32_t stream, const struct batch *batch, int64_t now_ps);

/* batch_streams.c: as the functions of streams.h for one chip after the other. */
void streams_compute_end_many(struct replay *replay, const uint32_t *chips, uint32_t count,
                              int64_t now_ps);
void streams_collective_end_many(struct replay *replay, uint32_t stream, const uint32_t *chips,
                                 uint32_t count, int64_t now_ps);
/* Wakes those who wait at the stream, on chips that have come to what one of them wants. */
void streams_wake_many(struct replay *replay, uint32_t stream, const struct batch *batch,
                       int64_t now_ps);

#endif
