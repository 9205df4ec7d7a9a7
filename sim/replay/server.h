/*
 * server.h: what messages take of the servers of a chip that compute ops need too, and what the ops
 * owe for it: of HBM, which DMA reads and writes, and of the VPU, which adds what arrives. Internal
 * to sim/replay; landing.h has what is done for each message.
 *
 * Messages go before the tiles of compute ops, so a message never waits for an op, and an op that
 * needs the server ends later by what messages take of it meanwhile. That counts along a message's
 * passage:
 *
 *   reads       from the message's departure to the instant at which its tail leaves, evenly
 *   writes and  known only where the message has landed: [landing - link time, landing], evenly
 *   additions
 *   where all links together may ask more than a server has, it is a clock for messages, and work
 *               counts when the clock does it
 *
 * A chip's time consists of runs, in which ops that need the server follow one another without a
 * break, and of the rest, in which messages disturb nobody. What of a passage fell into a run is
 * owed; what fell outside is settled at once. An op that needs the server pays all that is owed
 * when it ends: what messages took while it ran, and the debt, which ended runs have left. An op
 * with time of the server to spare pays from what it spares. What is owed when all streams have
 * come to their end, the chip pays alone, and finishes later by that. So no server does more than
 * its rate.
 */
#ifndef SIM_REPLAY_SERVER_H
#define SIM_REPLAY_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct replay;
struct compute_time;
struct op_table;

enum server { SERVER_HBM, SERVER_VPU, SERVER_COUNT };

/* Ended runs that a chip remembers. Of more, the two with the shortest break between them count as
 * one, break included: a long passage then owes too much, never too little. */
enum { SERVER_RUNS = 8 };

struct server_run {
    int64_t begin_ps;
    int64_t end_ps;
};

/* All times but instants are the server's, at the chip's own rate. */
struct server_state {
    int64_t dma_ps;       /* Granted to messages since the start. */
    int64_t edge_ps;      /* The instant at which `needed` became what it is; */
    int64_t run_begin_ps; /* and when the latest run began. */
    int64_t settled_ps; /* Of what was served: paid, or disturbing nobody; valid in a run and at the
                           instant of its end. */
    int64_t debt_ps;    /* Outside a run: owed from ended ones. */
    int64_t spared_ps;  /* Outside a run: what the op that ended last had left over. */
    int64_t free_ps;    /* The clock, where messages may exceed a server. */
    bool needed;        /* An op that needs the server runs. */
    uint8_t run_count;
    struct server_run run[SERVER_RUNS]; /* Ended before the latest, in order. */
};

/* Reads of the messages that leave a chip by one of its ports, or into one level, or to the host:
 * `work_ps` of HBM time, evenly from `since_ps` to `until_ps`. */
struct server_reads {
    int64_t work_ps;
    int64_t since_ps;
    int64_t until_ps;
};

/* server_tables.c: what the links of a chip can ask of each server; */
void servers_build(struct replay *replay);
/* and what an op, of so long, takes of one and leaves of it. */
void server_op_build(const struct replay *replay, enum server server,
                     const struct compute_time *time, struct op_table *table);

/* work · part / whole, rounded down; all at least 0, part <= whole. */
int64_t server_share_ps(int64_t work_ps, int64_t part_ps, int64_t whole_ps);
/* Splits work that messages had done evenly over a passage that began before `edge_ps` into what
 * fell into runs, which is owed, and the rest. The work has been granted. */
void server_passed(struct server_state *state, int64_t work_ps, int64_t from_ps, int64_t until_ps);

/* What of a chip's time of a server messages are to have; */
struct server_state *server_at(const struct replay *replay, enum server server, uint32_t chip);
/* a part of an op that needs the server begins; */
void server_part_begin(struct replay *replay, enum server server, uint32_t chip, int64_t now_ps);
/* what it owes if it ends now; */
int64_t server_owed_ps(const struct replay *replay, enum server server, uint32_t chip,
                       int64_t now_ps);
/* and it ends, has paid that, and had `spared_ps` left over. */
void server_part_end(struct replay *replay, enum server server, uint32_t chip, int64_t owed_ps,
                     int64_t spared_ps, int64_t now_ps);
/* A part of an op with time to spare ends, and pays from that. */
static inline void server_spare(struct server_state *state, int64_t spare_ps)
{
    if (state->debt_ps > 0) state->debt_ps -= state->debt_ps < spare_ps ? state->debt_ps : spare_ps;
}
/* What of all servers is still to be had when all streams of a chip have come to their end: they
 * do it side by side. */
int64_t servers_left_ps(const struct replay *replay, uint32_t chip, int64_t now_ps);

#endif
