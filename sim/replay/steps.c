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

void steps_continue(const struct replay *prefix, struct replay *whole, uint32_t factor)
{
    for (uint32_t step = 0; step <= whole->steps.max; step++)
        whole->steps.chips_ended[step] = prefix->steps.chips_ended[step] * factor;
}
