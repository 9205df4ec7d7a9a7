/*
 * arrival_cost.h: HBM and VPU time of messages where they depart and land; inline, since every
 * message needs it.
 */
#ifndef SIM_REPLAY_ARRIVAL_COST_H
#define SIM_REPLAY_ARRIVAL_COST_H

#include "sim/base/units.h"
#include "sim/replay/link.h"
#include "sim/replay/server.h"

/* Time and memory traffic of a message, by its units: a line of the cache. */
struct message_cost {
    int64_t link_ps;   /* On a link of one class. */
    int64_t read_ps;   /* HBM time where it departs, on a chip of class 0. */
    int64_t write_ps;  /* HBM time where it lands. */
    int64_t vector_ps; /* VPU time of adding it where it lands. */
    uint64_t bytes;
    /* Of a lane that is `single`: */
    int64_t latency_ps;  /* From the instant at which it leaves to that of its arrival. */
    uint64_t arrive_key; /* Order of its arrival. */
    bool differs;        /* Some chip takes another time where it lands. */
};

/* Work at this chip's own rate, out of work at the rate of the others; rounded up, as all work. */
static inline int64_t scaled_ps(int64_t ps, uint32_t ppm)
{
    uint64_t wide = 0;
    if (ppm == PPM_ONE || ps == 0) return ps;
    if (!__builtin_mul_overflow((uint64_t)ps, (uint64_t)PPM_ONE, &wide) &&
        !__builtin_add_overflow(wide, (uint64_t)ppm - 1, &wide))
        return (int64_t)(wide / ppm);
    return (int64_t)(((units_wide)(uint64_t)ps * PPM_ONE + ppm - 1) / ppm);
}

static inline const struct fold_chip_class *chip_class_of(const struct servers *servers,
                                                          uint32_t chip)
{
    const struct fold *fold = servers->fold;
    return &fold->chip_classes[fold->chip_class == NULL ? 0 : fold->chip_class[chip]];
}

/* Grants a message time of a server, at the chip's own rate. Returns the time. */
static inline int64_t dma_grant(const struct servers *servers, enum server server, uint32_t chip,
                                int64_t work_ps)
{
    struct server_state *state = server_at(servers, server, chip);
    if (servers->differs[server]) {
        const struct fold_chip_class *kind = chip_class_of(servers, chip);
        work_ps = scaled_ps(work_ps, server == SERVER_HBM ? kind->hbm_ppm : kind->math_ppm);
    }
    if (work_ps > TIME_PS_END - state->dma_ps) work_ps = TIME_PS_END - state->dma_ps;
    state->dma_ps += work_ps;
    return work_ps;
}

/* Work of a server for messages where that is a clock: it may be done from `since_ps` on. Returns
 * when it is done. */
static inline int64_t dma_clock(const struct servers *servers, enum server server, uint32_t chip,
                                int64_t since_ps, int64_t work_ps, int64_t now_ps)
{
    struct server_past *past = server_past_at(servers, server, chip);
    int64_t const from_ps = past->free_ps > since_ps ? past->free_ps : since_ps;
    past->free_ps = from_ps + dma_grant(servers, server, chip, work_ps);
    if (from_ps < server_at(servers, server, chip)->edge_ps) {
        int64_t const until_ps = past->free_ps < now_ps ? past->free_ps : now_ps;
        server_passed(servers, server, chip, until_ps - from_ps, from_ps, until_ps);
    }
    return past->free_ps;
}

/* Where HBM may be behind, the tail of a message leaves no earlier than it has been read: at the
 * instant that is returned. */
static inline int64_t dma_read_ps(const struct servers *servers, uint32_t chip, int64_t work_ps,
                                  int64_t now_ps)
{
    return servers->may_exceed ? dma_clock(servers, SERVER_HBM, chip, now_ps, work_ps, now_ps) : 0;
}

/* Reads that have been granted go on until their message has left. */
static inline void reads_add(struct server_reads *reads, int64_t work_ps, int64_t now_ps,
                             int64_t depart_ps)
{
    if (reads->until_ps > now_ps) {
        work_ps += server_share_ps(reads->work_ps, reads->until_ps - now_ps,
                                   reads->until_ps - reads->since_ps);
        if (reads->until_ps > depart_ps) depart_ps = reads->until_ps;
    }
    *reads = (struct server_reads){.work_ps = work_ps, .since_ps = now_ps, .until_ps = depart_ps};
}

/* Where HBM is never behind, a message is read as it leaves. */
static inline void dma_leave(const struct servers *servers, struct server_reads *reads,
                             uint32_t chip, int64_t work_ps, int64_t now_ps, int64_t depart_ps)
{
    if (servers->may_exceed) return;
    reads_add(reads, dma_grant(servers, SERVER_HBM, chip, work_ps), now_ps, depart_ps);
}

/* Reads of one way out of a chip: ports of the grid first, then levels, then the host. */
static inline struct server_reads *reads_at(const struct servers *servers, uint32_t way,
                                            uint32_t chip)
{
    if (way < servers->port_ways)
        return &servers->ports[(uint64_t)way * servers->chip_count + chip].reads;
    return &servers->reads[(uint64_t)(way - servers->port_ways) * servers->chip_count + chip];
}

/* Work of a server along a passage that ends now. */
static inline void dma_pass(const struct servers *servers, enum server server, uint32_t chip,
                            int64_t work_ps, int64_t from_ps, int64_t now_ps)
{
    work_ps = dma_grant(servers, server, chip, work_ps);
    if (from_ps < server_at(servers, server, chip)->edge_ps)
        server_passed(servers, server, chip, work_ps, from_ps, now_ps);
}

/* Whether the passage of a message, of at most `most_ps`, can affect an op where it lands. */
static inline bool arrival_cost_looks_back(const struct servers *servers,
                                           const struct message_cost *cost, uint32_t chip,
                                           int64_t most_ps, int64_t now_ps)
{
    if (servers->may_exceed) return true;
    const struct chip_servers *states = &servers->states[chip];
    int64_t const from_ps = now_ps - most_ps;
    return (cost->write_ps > 0 && from_ps < states->of[SERVER_HBM].edge_ps) ||
           (cost->vector_ps > 0 && from_ps < states->of[SERVER_VPU].edge_ps);
}

/* The server has time for all that links carry, so their own limits keep its sum from
 * overflowing. */
static inline void pass_plain(const struct servers *servers, enum server server, uint32_t chip,
                              int64_t work_ps, int64_t link_ps, int64_t now_ps)
{
    struct server_state *state = server_at(servers, server, chip);
    if (work_ps == 0) return;
    state->dma_ps += work_ps;
    if (now_ps - link_ps < state->edge_ps)
        server_passed(servers, server, chip, work_ps, now_ps - link_ps, now_ps);
}

/* Whether a message may cost another time on some chip where it lands. */
static inline bool arrival_cost_differs(const struct servers *servers,
                                        const struct message_cost *cost)
{
    return (servers->differs[SERVER_HBM] && cost->write_ps > 0) ||
           (servers->differs[SERVER_VPU] && cost->vector_ps > 0);
}

/* HBM time of reading a message where it departs. */
static inline int64_t read_cost_ps(const struct servers *servers, const struct message_cost *cost,
                                   uint32_t chip)
{
    if (!servers->differs[SERVER_HBM]) return cost->read_ps;
    return scaled_ps(cost->read_ps, chip_class_of(servers, chip)->hbm_ppm);
}

/* Charges what a message of a lane that is `single` costs where it lands; it delays nothing. */
static inline __attribute__((always_inline)) void
arrival_cost_single(const struct servers *servers, const struct message_cost *cost, uint32_t chip,
                    int64_t now_ps)
{
    int64_t write_ps = cost->write_ps, vector_ps = cost->vector_ps;
    if (cost->differs) {
        const struct fold_chip_class *kind = chip_class_of(servers, chip);
        write_ps = scaled_ps(write_ps, kind->hbm_ppm);
        vector_ps = scaled_ps(vector_ps, kind->math_ppm);
    }
    pass_plain(servers, SERVER_VPU, chip, vector_ps, cost->link_ps, now_ps);
    pass_plain(servers, SERVER_HBM, chip, write_ps, cost->link_ps, now_ps);
}

/* Charges what a message costs where it lands; `link_ps` is its own time. Where HBM or the VPU is
 * behind, it counts as arrived when they have caught up: at the instant that is returned, if that
 * is later than now. */
static inline int64_t arrival_cost_ps(const struct servers *servers,
                                      const struct message_cost *cost, int64_t link_ps,
                                      uint32_t chip, int64_t now_ps)
{
    int64_t const work_ps[SERVER_COUNT] = {cost->write_ps, cost->vector_ps};
    int64_t const began_ps = now_ps - link_ps;
    int64_t clear_ps = 0;
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        if (work_ps[server] == 0) continue;
        if (!servers->may_exceed) {
            dma_pass(servers, server, chip, work_ps[server], began_ps, now_ps);
            continue;
        }
        int64_t const done_ps = dma_clock(servers, server, chip, began_ps, work_ps[server], now_ps);
        if (done_ps > clear_ps) clear_ps = done_ps;
    }
    /* Streams share a server while they run, so a backlog counts only beyond the message's own
     * time. */
    return clear_ps - link_ps;
}

#endif
