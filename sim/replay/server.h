/*
 * server.h: time of HBM and of the VPU that messages take from compute ops, and the debt of the
 * ops. DMA reads and writes HBM, and the VPU adds the arriving data of reductions. Internal to
 * sim/replay; arrival_cost.h has the work of each message.
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
 * break, and of breaks, in which messages disturb nobody. What of a passage fell into a run is
 * owed; what fell into a break is settled at once, as far as the break has room: it holds no more
 * than its length, less the work of ops in it that have time to spare. Passages may ask for more.
 * A message that shared its link took longer than its own time on it, so passages of messages that
 * shared a link overlap, and an AllReduce writes its shard while its second half reads and writes
 * at the pace of the link. What a break has no room for is owed.
 *
 * An op that needs the server pays all that is owed when it ends: what messages took while it ran,
 * and the debt, which ended runs have left. An op with time of the server to spare pays from what
 * it spares. What is owed when all streams have come to their end, the chip pays alone, and
 * finishes later by that. So no server does more than its rate.
 */
#ifndef SIM_REPLAY_SERVER_H
#define SIM_REPLAY_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/fold/fold.h"
#include "sim/replay/cores.h"

struct compute_time;
struct grid_port;
struct replay;

enum server { SERVER_HBM, SERVER_VPU, SERVER_COUNT };

/* Ended runs that a chip remembers. Of more, the two with the shortest break between them count as
 * one, break included: a long passage then owes too much, never too little. */
enum { SERVER_RUNS = 8 };

struct server_run {
    int64_t begin_ps;
    int64_t end_ps;
};

/* What nearly every message and part of an op reads of a server. All times but instants are the
 * server's, at the chip's own rate. */
struct server_state {
    int64_t dma_ps;     /* Granted to messages since the start. */
    int64_t edge_ps;    /* Instant of the latest change of `needed`. */
    int64_t settled_ps; /* In a run: time served that is paid or disturbed no op. Outside: the same
                           up to the end of the latest run, less the work since then of ops with
                           time to spare. */
    int64_t debt_ps;    /* Outside a run: time owed from ended runs. */
};

/* The servers of a chip: a line of the cache. */
struct chip_servers {
    struct server_state of[SERVER_COUNT];
};

/* The runs of a server, and its clock. */
struct server_past {
    int64_t run_begin_ps; /* Instant at which the latest run began. */
    int64_t spared_ps;    /* Outside a run: time that the last ended op had to spare. */
    int64_t free_ps;      /* Clock of the server, where messages may ask for more than it has. */
    int64_t earlier_ps;   /* When the ended run before the latest ended one began, by itself. */
    bool needed;          /* An op that needs the server runs. */
    uint8_t run_count;
    struct server_run run[SERVER_RUNS]; /* Runs that ended before the latest, in order. */
    int64_t room_ps[SERVER_RUNS + 1];   /* [run]: time that the break before the run has left;
                                           [run_count]: before the latest. */
};

struct chip_pasts {
    struct server_past of[SERVER_COUNT];
};

/* Reads of the messages that leave a chip by one of its ports, or into one level, or to the host:
 * `work_ps` of HBM time, evenly from `since_ps` to `until_ps`. */
struct server_reads {
    int64_t work_ps;
    int64_t since_ps;
    int64_t until_ps;
};

/* A part of a compute op at a server. */
struct op_server {
    int64_t shared_ps; /* Time of a part that the server bounds: its work on the server, and the
                          work that does not overlap it. 0: no work on the server. */
    int64_t own_ps;    /* Work of a part on the server, rounded up. */
    int64_t spare_ps;  /* Time of the server that a part surely leaves, if `spares`. */
    uint32_t shared_longer;
    bool spares; /* No load of messages can delay the op. */
};

/* A run that has ended, as it was put among those that a chip remembers. */
struct server_push {
    int64_t begin_ps, end_ps;
    int64_t room_ps; /* That the break before it had left when the next one ended. */
};

enum { SERVER_PUSHES_MAX = 32 };

/* What servers of a chip note while a stretch is recorded (stretch.h). */
struct server_notes {
    bool is_on;
    bool looks_back; /* A message looked behind the latest of the ended runs; or there were more. */
    bool spared[SERVER_COUNT]; /* A part has ended. */
    uint32_t count[SERVER_COUNT];
    struct server_push push[SERVER_COUNT][SERVER_PUSHES_MAX];
};

struct servers {
    struct cores cores;
    struct chip_servers *states; /* [chip] */
    struct chip_pasts *pasts;    /* [chip] */
    struct grid_port *ports;     /* [way][chip]: reads by ports of the grid (link.h). */
    struct server_reads *reads;  /* [way][chip]: by the ways behind these. */
    struct server_notes *notes;  /* [chip]; NULL: nothing is noted. */
    /* Messages that looked behind the two latest ended runs; NULL: not counted. */
    uint64_t *look_backs;
    uint32_t chip_count;
    uint32_t read_ways;         /* Ways by which reads leave a chip: ports, levels, the host. */
    uint32_t port_ways;         /* Of these, ports of the grid. */
    const struct fold *fold;    /* Classes of chips. */
    bool differs[SERVER_COUNT]; /* Some chip's server has another rate. */
    bool may_exceed;            /* False: no server ever delays a collective. */
    uint32_t most_ppm[SERVER_COUNT]; /* Share of a server's time that all links of a chip can ask
                                        for; at most all. */
};

/* server_tables.c: the most that the links of a chip can ask of each server. */
void servers_build(struct replay *replay);
/* server_tables.c: the time of a server that an op of `time` takes in each of its parts, and the
 * time that it leaves. */
struct op_server server_op(const struct servers *servers, enum server server,
                           const struct compute_time *time, uint32_t parts);

/* work · part / whole, rounded down; all at least 0, part <= whole. */
int64_t server_share_ps(int64_t work_ps, int64_t part_ps, int64_t whole_ps);
/* Splits work that messages had done evenly over a passage that began before `edge_ps` into what
 * is settled by breaks, and what is owed: what fell into runs, and what breaks have no room for.
 * The work has been granted. */
void server_passed(const struct servers *servers, enum server server, uint32_t chip,
                   int64_t work_ps, int64_t from_ps, int64_t until_ps);

/* The state of a server of a chip. */
static inline struct server_state *server_at(const struct servers *servers, enum server server,
                                             uint32_t chip)
{
    return &servers->states[chip].of[server];
}

static inline struct server_past *server_past_at(const struct servers *servers, enum server server,
                                                 uint32_t chip)
{
    return &servers->pasts[chip].of[server];
}

/* A part of an op that needs the server begins. */
void server_part_begin(const struct servers *servers, enum server server, uint32_t chip,
                       int64_t now_ps);
/* The time that the part owes if it ends now. */
int64_t server_owed_ps(const struct servers *servers, enum server server, uint32_t chip,
                       int64_t now_ps);
/* The part ends, has paid `owed_ps`, and had `spared_ps` left over. */
void server_part_end(const struct servers *servers, enum server server, uint32_t chip,
                     int64_t owed_ps, int64_t spared_ps, int64_t now_ps);
/* Puts a run that has ended among those that a chip remembers, as server_part_begin() does. */
void server_run_push(struct server_past *past, const struct server_push *push, bool has_room);

/* A part of an op ends, and pays debt from the time that it had to spare. */
static inline void server_spare(struct server_state *state, const struct op_server *own)
{
    state->settled_ps -= own->own_ps;
    if (state->debt_ps > 0)
        state->debt_ps -= state->debt_ps < own->spare_ps ? state->debt_ps : own->spare_ps;
}
/* The time until all servers have paid their debts, when all streams of a chip have ended; the
 * servers pay at the same time. */
int64_t servers_left_ps(const struct servers *servers, uint32_t chip, int64_t now_ps);

#endif
