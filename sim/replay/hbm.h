/*
 * hbm.h: what messages take of a chip's HBM, and what compute ops owe for it. Internal to
 * sim/replay; landing.h has what is done for each message.
 *
 * DMA goes before the tiles of compute ops, so a message never waits for an op, and an op that
 * needs HBM ends later by the HBM time of the DMA beside it. The HBM time of a message counts along
 * its passage:
 *
 *   reads    from the message's departure to the instant at which its tail leaves, evenly
 *   writes   known only where the message has landed: [landing - link time, landing], evenly
 *   where all links together may ask more than HBM has, HBM's DMA side is a clock, and work counts
 *            when the clock does it
 *
 * A chip's time consists of runs, in which ops that need HBM follow one another without a break,
 * and of the rest, in which DMA disturbs nobody. What of a passage fell into a run is owed; what
 * fell outside is settled at once. An op that needs HBM pays all that is owed when it ends: what
 * ran beside it, and what is left from ended runs, the debt. An op with HBM to spare pays from what
 * it spares. What is owed when all streams have come to their end, the chip pays alone, and
 * finishes later by that. So HBM never does more than its rate.
 */
#ifndef SIM_REPLAY_HBM_H
#define SIM_REPLAY_HBM_H

#include <stdbool.h>
#include <stdint.h>

struct replay;

/* Ended runs that a chip remembers. Of more, the two with the shortest break between them count as
 * one, break included: a long passage then owes too much, never too little. */
enum { HBM_RUNS = 8 };

struct hbm_run {
    int64_t begin_ps;
    int64_t end_ps;
};

/* All times but instants are HBM time at the chip's own rate. */
struct hbm_state {
    int64_t dma_ps;       /* Granted to messages since the start. */
    int64_t edge_ps;      /* The instant at which `needed` became what it is; */
    int64_t run_begin_ps; /* and when the latest run began. */
    int64_t settled_ps;   /* Of what was served: paid, or beside nobody; valid in a run and at the
                             instant of its end. */
    int64_t debt_ps;      /* Outside a run: owed from ended ones. */
    int64_t spared_ps;    /* Outside a run: what the op that ended last had left over. */
    int64_t free_ps;      /* The clock, where DMA may exceed HBM. */
    bool needed;          /* An op that needs HBM runs. */
    uint8_t run_count;
    struct hbm_run run[HBM_RUNS]; /* Ended before the latest, in order. */
};

/* Reads of the messages that leave a chip by one of its ports, or into one level, or to the host:
 * `work_ps` of HBM time, evenly from `since_ps` to `until_ps`. */
struct hbm_reads {
    int64_t work_ps;
    int64_t since_ps;
    int64_t until_ps;
};

/* work · part / whole, rounded down; all at least 0, part <= whole. */
int64_t hbm_share_ps(int64_t work_ps, int64_t part_ps, int64_t whole_ps);
/* Splits work that DMA has done evenly over a passage that began before `edge_ps` into what fell
 * into runs, which is owed, and the rest. The work has been granted. */
void hbm_passed(struct hbm_state *hbm, int64_t work_ps, int64_t from_ps, int64_t until_ps);

/* A part of an op that needs HBM begins; */
void hbm_part_begin(struct replay *replay, uint32_t chip, int64_t now_ps);
/* what it owes if it ends now; */
int64_t hbm_owed_ps(const struct replay *replay, uint32_t chip, int64_t now_ps);
/* and it ends, has paid that, and had `spared_ps` left over. */
void hbm_part_end(struct replay *replay, uint32_t chip, int64_t owed_ps, int64_t spared_ps,
                  int64_t now_ps);
/* A part of an op with HBM to spare ends, and pays from that. */
static inline void hbm_spare(struct hbm_state *hbm, int64_t spare_ps)
{
    if (hbm->debt_ps > 0) hbm->debt_ps -= hbm->debt_ps < spare_ps ? hbm->debt_ps : spare_ps;
}
/* HBM time that is still to be had when all streams of a chip have come to their end. */
int64_t hbm_left_ps(const struct replay *replay, uint32_t chip, int64_t now_ps);

#endif
