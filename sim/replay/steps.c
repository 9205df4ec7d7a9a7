#include "sim/replay/steps.h"

#include "sim/replay/p2p.h"
#include "sim/replay/state.h"

void steps_end(struct replay *replay, uint32_t chip, int64_t now_ps)
{
    uint32_t const step = ++replay->steps.ended[chip];
    replay->steps.any_ended = true;
    if (replay->steps.pauses) engine_pause(replay->engine);
    if (replay->steps.max == 0) return;
    replay->steps.end_ps[(uint64_t)step * replay->chip_count + chip] = now_ps;
    if (step < replay->steps.max)
        engine_post(replay->engine, now_ps, event_key_make(EVENT_START, 0, 0, 0),
                    channel_of(replay, EVENT_START, 0), chip);
    if (++replay->steps.chips_ended[step] < replay->chip_count) return;
    if (period_find(replay->steps.end_ps, replay->chip_count, step, &replay->steps.period))
        engine_pause(replay->engine);
}

void steps_begin(struct replay *replay, uint32_t chip)
{
    if (replay->steps.max == 0 || replay->steps.ended[chip] == 0) return;
    replay->steps.finished_ps[chip] = TIME_PS_NEVER;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        struct stream_state *state = stream_at(replay, stream, chip);
        *state = (struct stream_state){
            .wake_done = UINT32_MAX, .wake_begun = UINT32_MAX, .epoch = state->epoch};
    }
    if (replay->p2p != NULL) p2p_again(replay, chip);
}

/* Whether a chip ends the last step before all have ended `step`. It begins none behind the last,
 * so that `step` of others ends otherwise than it would without an end. */
static bool is_cut_off(const struct steps *steps, uint32_t chips, uint32_t step)
{
    const int64_t *ends = &steps->end_ps[(uint64_t)step * chips];
    const int64_t *last = &steps->end_ps[(uint64_t)steps->max * chips];
    int64_t least_ps = last[0], most_ps = ends[0];
    for (uint32_t chip = 1; chip < chips; chip++) {
        if (last[chip] < least_ps) least_ps = last[chip];
        if (ends[chip] > most_ps) most_ps = ends[chip];
    }
    return least_ps < most_ps;
}

bool steps_foresee(struct replay *replay, uint32_t cycle, int64_t period_ps)
{
    struct steps *steps = &replay->steps;
    uint32_t const chips = replay->chip_count;
    if (period_ps > (TIME_PS_END / 2 - engine_now_ps(replay->engine)) / REPLAY_STEPS_MAX)
        return false;
    for (uint32_t chip = 0; chip < chips; chip++)
        for (uint32_t step = steps->ended[chip] + 1; step <= steps->max; step++)
            steps->end_ps[(uint64_t)step * chips + chip] =
                steps->end_ps[(uint64_t)(step - cycle) * chips + chip] + period_ps;
    for (uint32_t step = 1; step <= steps->max; step++) {
        struct period period;
        if (steps->chips_ended[step] == chips ||
            !period_find(steps->end_ps, chips, step, &period) || is_cut_off(steps, chips, step))
            continue;
        steps->period = period;
        steps->foreseen = step - steps->ended[0];
        return true;
    }
    return false;
}

void steps_continue(const struct replay *prefix, struct replay *whole, uint32_t factor)
{
    for (uint32_t step = 0; step <= whole->steps.max; step++)
        whole->steps.chips_ended[step] = prefix->steps.chips_ended[step] * factor;
}
