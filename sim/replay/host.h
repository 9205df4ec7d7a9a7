/*
 * host.h: copies between a chip and its host, over the link that leads there.
 *
 * A copy is cut into pieces, so that other traffic finds a turn between them: copies of other chips
 * that share the link, and messages over a DCN, which use the same link. A piece joins the link's
 * queue when the one before has passed, and the first one a latency after the op began. Rounding
 * happens once a copy: its picoseconds and bytes are dealt to the pieces as evenly as integers
 * allow.
 *
 * Chips may share a link, so it is touched in events only whose key holds the chip's place among
 * those that share it: kind, KEY_HOST, stream, place (engine.h, rule 1).
 */
#ifndef SIM_REPLAY_HOST_H
#define SIM_REPLAY_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct link_state;
struct link_waits;
struct replay;

struct copy_table {
    uint32_t piece_count;
    uint32_t longer;       /* The first `longer` pieces take 1 ps more. */
    uint32_t bytes_larger; /* The first `bytes_larger` pieces have one byte more. */
    bool to_host;
    int64_t link_ps; /* Time of a piece on the link. */
    uint64_t bytes;  /* Bytes of a piece. */
    int64_t hbm_ps;  /* HBM time of a piece on a chip of class 0. */
};

struct host_links {
    struct copy_table *copies;   /* [copy of the program] */
    const uint32_t *unit;        /* [chip]: number of its link. */
    const uint32_t *place;       /* [chip]: its place among the chips that share the link. */
    struct link_state *links[2]; /* Up, down: [unit] */
    struct link_waits *waits[2];
    uint32_t unit_count;
    uint8_t port[2];
    uint8_t kind;  /* Kind of the cables in message_cost, with `on_level`. */
    bool on_level; /* The links are the first cables of a level. */
};

/* Builds nothing where the program has no copies. Refused: a machine without a link to the host. */
enum status host_build_links(struct arena *arena, struct replay *replay, struct error *reterr);

/* A copy begins. Its end is an EVENT_COLLECTIVE_END. */
void host_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);

/* EVENT_HOP: a piece joins the queue. EVENT_ARRIVE: it has passed. EVENT_LAND: HBM has caught up
 * with writing it. */
void host_event(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                int64_t now_ps);

#endif
