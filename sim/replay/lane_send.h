/*
 * lane_send.h: what a lane sends next, and what an arrival is worth; inline, since every message
 * needs it. Internal to sim/replay.
 */
#ifndef SIM_REPLAY_LANE_SEND_H
#define SIM_REPLAY_LANE_SEND_H

#include "sim/replay/message.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"

/* Parts of the operand that a message needs. */
static inline uint32_t operand_wanted(const struct lane_table *lane, uint32_t piece,
                                      uint32_t chunks)
{
    return lane->plan->plan->group.dimension_count > 1 ? piece / lane->portions + 1 : chunks;
}

/* Whether the op that computes the operand has got as far as a message needs. */
static inline bool operand_ready(struct replay *replay, const struct lane_table *lane,
                                 uint32_t chip, uint32_t wanted)
{
    struct stream_state *stream = &lane->owner.states[chip];
    if (stream->operand_parts == 0) return true;
    struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, chip);
    if (compute->done >= stream->operand_first + wanted) return true;
    stream_wait(stream, compute, lane->stream, false, stream->operand_first + wanted);
    return false;
}

/* Which step the lane is at; pieces follow one another. */
static inline const struct primitive_step *next_step(struct lane_table *lane, uint32_t position,
                                                     uint32_t sent, uint32_t *ret_piece,
                                                     uint32_t *ret_number)
{
    uint32_t const count = lane->steps.send_count[position];
    *ret_piece = 0;
    *ret_number = sent;
    if (sent >= count) {
        *ret_piece = sent / count;
        *ret_number = sent - *ret_piece * count;
    }
    if (lane->steps.all != NULL) return &lane->steps.all[lane->steps.first[position] + *ret_number];
    lane->steps.asked = lane_step(lane, position, *ret_number);
    return &lane->steps.asked;
}

/* Arrivals that a step on a fixed route waits for. */
static inline uint32_t step_arrivals(const struct lane_table *lane, uint32_t position,
                                     const struct primitive_step *step, uint32_t piece)
{
    if (piece == 0) return step->arrivals;
    return step->arrivals + piece * lane->steps.arrival_count[position];
}

/* Whether a step waits for arrivals in lanes of other items. */
static inline bool step_has_before(const struct lane_table *lane, const struct lane_state *state,
                                   uint32_t number)
{
    return lane->chain.before_count > 0 && (number == 0 || lane->chain.by_step) &&
           !state->alone_before;
}

/* Arrivals in lane `before`, of a range that `lane` waits for, that one of its messages wants: of a
 * piece, or of that part of it which a portion passes on, or whose portion a message is made of. */
static inline uint32_t before_wanted(const struct lane_table *lane, const struct lane_range *range,
                                     const struct lane_table *before, uint32_t chip,
                                     uint32_t portion, uint32_t number)
{
    uint32_t const each = before->steps.arrival_count[position_of(before, chip)];
    uint32_t piece = portion / lane->portions;
    if (each == 0 || piece < range->lead) return 0;
    piece -= range->lead;
    if (range->wait == NULL) return (piece + 1) * range->portions * each;
    if (lane->chain.by_step) return (piece * range->portions + range->wait[number]) * each;
    return piece * each + range->wait[portion % lane->portions];
}

/* Whether lanes behind may go on after an arrival that makes `counted` of them. */
static inline bool arrival_is_followed(const struct lane_table *lane,
                                       const struct lane_state *state, uint32_t chip,
                                       uint32_t counted)
{
    return lane->chain.behind_count > 0 && !state->alone_behind &&
           counted % lane->steps.arrival_count[position_of(lane, chip)] == 0;
}

/* Whether others may count on more parts after an arrival that makes `counted` of them: on its
 * buckets, or on pieces that it completes. */
static inline bool arrival_counts(const struct lane_table *lane, uint32_t chip, uint32_t counted)
{
    return lane->chain.counts &&
           (lane->plan->plan->counts_buckets ||
            counted % lane->steps.arrival_count[position_of(lane, chip)] == 0);
}

/* The parts on which others may then count. */
static inline uint32_t arrival_parts(struct replay *replay, const struct lane_table *lane,
                                     uint32_t chip, uint32_t units)
{
    return lane->plan->plan->counts_buckets ? units : transport_parts_new(replay, lane, chip);
}

/* Absorbs an arrival into the running op. Returns parts that others may now count on. */
static inline uint32_t lane_absorb(struct replay *replay, const struct lane_table *lane,
                                   uint32_t chip, uint32_t units)
{
    uint32_t const counted = ++lane->states[chip].counted;
    return arrival_counts(lane, chip, counted) ? arrival_parts(replay, lane, chip, units) : 0;
}

/* Notes that the lane has sent and received all, if so. */
static inline void lane_check(const struct lane_table *lane, uint32_t chip)
{
    struct lane_state *state = &lane->states[chip];
    if (state->finished || state->sent < state->sends || state->counted < state->arrivals) return;
    state->finished = true;
    lane->owner.states[chip].lanes_left--;
}

/* A lane may have waited for arrivals in another. */
static inline void lane_follow(struct replay *replay, struct lane_table *behind, uint32_t chip,
                               int64_t now_ps)
{
    if (behind->steps.send_count[position_of(behind, chip)] > 0)
        transport_lane_try(replay, behind, chip, now_ps);
}

/* Whether a light lane, which has messages left, may send its next one now; else it will be tried
 * again. */
static inline __attribute__((always_inline)) bool
light_may_send(struct replay *replay, struct lane_table *lane, struct lane_state *state,
               const struct light_step *step, uint32_t chip, int64_t now_ps)
{
    if (state->waiting || state->counted < step->arrivals) return false;
    if (step->asks_before && !state->alone_before) {
        uint32_t piece = 0, number = 0;
        (void)next_step(lane, 0, state->sent, &piece, &number);
        if (!transport_before_arrived(lane, chip, piece, number)) return false;
    }
    if (step->reads_operand && !operand_ready(replay, lane, chip, step->wanted)) return false;
    if (state->free_ps <= now_ps) return true;
    if (state->free_ps != lane_held_ps) transport_ready_post(replay, lane, chip, state->free_ps);
    return false;
}

#endif
