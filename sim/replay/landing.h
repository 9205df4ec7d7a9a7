/*
 * landing.h: what messages cost the memory of a chip, for all that send or receive; so it is in
 * line.
 */
#ifndef SIM_REPLAY_LANDING_H
#define SIM_REPLAY_LANDING_H

#include "sim/replay/replay_internal.h"

/* Work at this chip's own rate, out of work at the rate of the others; rounded up, as all work. */
static inline int64_t scaled_ps(int64_t ps, uint32_t ppm)
{
    if (ppm == PPM_ONE) return ps;
    return (int64_t)(((units_wide)(uint64_t)ps * PPM_ONE + ppm - 1) / ppm);
}

static inline const struct fold_chip_class *chip_class_of(const struct replay *replay,
                                                          uint32_t chip)
{
    return &replay->fold->chip_classes[replay->chips[chip].chip_class];
}

/* HBM time of a message at the chip's own rate, as it goes into the books. */
static inline int64_t dma_grant(struct replay *replay, uint32_t chip, int64_t work_ps)
{
    struct hbm_state *hbm = &replay->hbm[chip];
    if (replay->hbm_differs) work_ps = scaled_ps(work_ps, chip_class_of(replay, chip)->hbm_ppm);
    if (work_ps > TIME_PS_END - hbm->dma_ps) work_ps = TIME_PS_END - hbm->dma_ps;
    hbm->dma_ps += work_ps;
    return work_ps;
}

/* Work of HBM's DMA side where that is a clock: it may be done from `since_ps` on. Returns when it
 * is done. */
static inline int64_t dma_clock(struct replay *replay, uint32_t chip, int64_t since_ps,
                                int64_t work_ps, int64_t now_ps)
{
    struct hbm_state *hbm = &replay->hbm[chip];
    int64_t const from_ps = hbm->free_ps > since_ps ? hbm->free_ps : since_ps;
    hbm->free_ps = from_ps + dma_grant(replay, chip, work_ps);
    if (from_ps < hbm->edge_ps) {
        int64_t const until_ps = hbm->free_ps < now_ps ? hbm->free_ps : now_ps;
        hbm_passed(hbm, until_ps - from_ps, from_ps, until_ps);
    }
    return hbm->free_ps;
}

/* Where HBM may be behind, the tail of a message leaves no earlier than it has been read: at the
 * instant that is returned. */
static inline int64_t dma_read_ps(struct replay *replay, uint32_t chip, int64_t work_ps,
                                  int64_t now_ps)
{
    return replay->dma_may_exceed ? dma_clock(replay, chip, now_ps, work_ps, now_ps) : 0;
}

/* Reads that have been granted go on until their message has left. */
static inline void reads_add(struct hbm_reads *reads, int64_t work_ps, int64_t now_ps,
                             int64_t depart_ps)
{
    if (reads->until_ps > now_ps) {
        work_ps += hbm_share_ps(reads->work_ps, reads->until_ps - now_ps,
                                reads->until_ps - reads->since_ps);
        if (reads->until_ps > depart_ps) depart_ps = reads->until_ps;
    }
    *reads = (struct hbm_reads){.work_ps = work_ps, .since_ps = now_ps, .until_ps = depart_ps};
}

/* Elsewhere a message is read as it leaves. */
static inline void dma_leave(struct replay *replay, struct hbm_reads *reads, uint32_t chip,
                             int64_t work_ps, int64_t now_ps, int64_t depart_ps)
{
    if (replay->dma_may_exceed) return;
    reads_add(reads, dma_grant(replay, chip, work_ps), now_ps, depart_ps);
}

/* What leaves a chip by one way: a port of the grid; behind the ports levels, then the host. */
static inline struct hbm_reads *reads_at(const struct replay *replay, uint32_t way, uint32_t chip)
{
    return &replay->reads[(uint64_t)way * replay->chip_count + chip];
}

/* Work that DMA has done along a passage that ends now. */
static inline void dma_pass(struct replay *replay, uint32_t chip, int64_t work_ps, int64_t from_ps,
                            int64_t now_ps)
{
    struct hbm_state *hbm = &replay->hbm[chip];
    work_ps = dma_grant(replay, chip, work_ps);
    if (from_ps < hbm->edge_ps) hbm_passed(hbm, work_ps, from_ps, now_ps);
}

/* Whether the time of a message on its way matters where it lands, if it is at most `most_ps`. */
static inline bool landing_looks_back(const struct replay *replay, const struct message_cost *cost,
                                      uint32_t chip, int64_t most_ps, int64_t now_ps)
{
    if (replay->dma_may_exceed) return true;
    return cost->write_ps > 0 && now_ps - most_ps < replay->hbm[chip].edge_ps;
}

/* Charges what a message of a plain lane costs where it lands; it delays nothing. HBM has time for
 * all that links carry, so their own limits keep its sum from overflowing. */
static inline void landing_plain(struct replay *replay, const struct message_cost *cost,
                                 uint32_t chip, int64_t now_ps)
{
    struct hbm_state *hbm = &replay->hbm[chip];
    if (cost->vector_ps > 0) replay->vector_ps[chip] += cost->vector_ps;
    if (cost->write_ps == 0) return;
    hbm->dma_ps += cost->write_ps;
    if (now_ps - cost->link_ps < hbm->edge_ps)
        hbm_passed(hbm, cost->write_ps, now_ps - cost->link_ps, now_ps);
}

/* Charges what a message costs where it lands; `link_ps` is its own time. Where HBM or the VPU is
 * behind, it counts as arrived when they have caught up: at the instant that is returned, if that
 * is later than now. */
static inline int64_t landing_ps(struct replay *replay, const struct message_cost *cost,
                                 int64_t link_ps, uint32_t chip, int64_t now_ps)
{
    if (cost->vector_ps > 0) replay->vector_ps[chip] += cost->vector_ps;
    int64_t const began_ps = now_ps - link_ps;
    if (!replay->dma_may_exceed) {
        if (cost->write_ps > 0) dma_pass(replay, chip, cost->write_ps, began_ps, now_ps);
        return 0;
    }
    int64_t clear_ps = 0;
    if (cost->write_ps > 0) clear_ps = dma_clock(replay, chip, began_ps, cost->write_ps, now_ps);
    int64_t const vector_ps = scaled_ps(cost->vector_ps, chip_class_of(replay, chip)->math_ppm);
    if (clear_ps < began_ps + vector_ps) clear_ps = began_ps + vector_ps;
    /* Streams share HBM while they run, so a backlog counts only beyond the message's own time. */
    return clear_ps - link_ps;
}

#endif
