/*
 * landing.h: what messages cost the memory of a chip, for all that send or receive; so it is in
 * line.
 */
#ifndef SIM_REPLAY_LANDING_H
#define SIM_REPLAY_LANDING_H

#include "sim/replay/replay_internal.h"

/* Work at this chip's own rate, out of work at the rate of the others. */
static inline int64_t scaled_ps(int64_t ps, uint32_t ppm)
{
    return ppm == PPM_ONE ? ps : (int64_t)((units_wide)(uint64_t)ps * PPM_ONE / ppm);
}

static inline const struct fold_chip_class *chip_class_of(const struct replay *replay,
                                                          uint32_t chip)
{
    return &replay->fold->chip_classes[replay->chips[chip].chip_class];
}

/* HBM time of the collectives. Where all links together cannot ask more than HBM has, it delays
 * nothing and only adds up; else it is a clock, and the answer is when the work is done. */
static inline int64_t dma_charge(struct replay *replay, uint32_t chip, int64_t since_ps,
                                 int64_t work_ps)
{
    if (replay->hbm_differs) work_ps = scaled_ps(work_ps, chip_class_of(replay, chip)->hbm_ppm);
    if (work_ps > TIME_PS_END - replay->dma_ps[chip]) work_ps = TIME_PS_END - replay->dma_ps[chip];
    replay->dma_ps[chip] += work_ps;
    if (!replay->dma_may_exceed) return 0;
    struct chip_state *self = &replay->chips[chip];
    self->hbm_free_ps = (self->hbm_free_ps > since_ps ? self->hbm_free_ps : since_ps) + work_ps;
    return self->hbm_free_ps;
}

/* Charges what a message costs where it lands; `link_ps` is its own time. Where HBM or the VPU is
 * behind, it counts as arrived when they have caught up: at the instant that is returned, if that
 * is later than now. */
static inline int64_t landing_ps(struct replay *replay, const struct message_cost *cost,
                                 int64_t link_ps, uint32_t chip, int64_t now_ps)
{
    if (cost->vector_ps > 0) replay->vector_ps[chip] += cost->vector_ps;
    int64_t const began_ps = now_ps - link_ps;
    int64_t clear_ps = 0;
    if (cost->write_ps > 0) clear_ps = dma_charge(replay, chip, began_ps, cost->write_ps);
    if (!replay->dma_may_exceed) return 0;
    int64_t const vector_ps = scaled_ps(cost->vector_ps, chip_class_of(replay, chip)->math_ppm);
    if (clear_ps < began_ps + vector_ps) clear_ps = began_ps + vector_ps;
    /* Streams share HBM while they run, so a backlog counts only beyond the message's own time. */
    return clear_ps - link_ps;
}

#endif
