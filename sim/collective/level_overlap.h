/*
 * level_overlap.h: how the pieces of a level are cut once more, into portions, so that it goes
 * along with the exchange of the level outside it, message by message.
 *
 * A direct exchange between M nodes brings a rank the shards of M - 1 others, one after the other.
 * The gather inside the node that follows need not wait for all of them: its portion k passes on
 * those of a range of nodes, and begins when they have come. A reduction is the mirror image: its
 * portion k adds up what is for a range of nodes, and the exchange sends to a node as soon as the
 * portion for it is done. So one round of the exchange, M - 1 messages, overlaps with the level
 * inside, where equal pieces of the array would each need a round of their own.
 *
 * Nodes are counted as the exchange comes to them:
 *   gather      0 the own one, whose shard is there from the start; then 1 before it, and so on
 *   reduction   0 the next one, then the one after it, and so on; M - 1 the own one, whose shares
 *               stay
 */
#ifndef SIM_COLLECTIVE_LEVEL_OVERLAP_H
#define SIM_COLLECTIVE_LEVEL_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/collective/choice.h"
#include "sim/collective/pieces.h"

struct arena;

enum { PORTIONS_MAX = 32 };

/* The portions of a piece, for both halves of an AllReduce. */
struct level_overlap {
    uint32_t count; /* 0: pieces are whole. */
    uint32_t nodes;
    const uint32_t *gather_end;  /* [portion]: nodes up to its last one. */
    const uint32_t *gather_wait; /* [portion]: messages of the exchange before it. */
    const uint32_t *reduce_end;  /* [portion] */
    const uint32_t *reduce_wait; /* [message of the exchange]: portions that it waits for. */
};

/* How many pieces and portions let two levels overlap, the outer one first: nothing is exposed but
 * the inner level's shortest portion, and it is the last to be gathered, or the first to be
 * reduced, where the outer level is the slower one. From there they grow by as much as one level is
 * faster than the other, so that none waits and few are enough. */
struct level_overlap_choice {
    uint32_t pieces;
    uint32_t portions;                /* 1: whole pieces. */
    uint32_t shortest;                /* In nodes. */
    units_wide longer_ps, shorter_ps; /* A node's part on either level, not to scale. */
    bool grows;                       /* In a gather: the inner level is the slower one. */
};

/* Whether pieces can be cut so: two levels, a direct exchange on the outer one, and within no
 * switches that copy or add, which play all their messages alike. */
bool level_overlap_applies(const struct plan_request *request, const struct choice *choice);

/* `nodes`: positions of the outer level. `pieces`, `portions`: 0, or how many there have to be. */
struct level_overlap_choice level_overlap_choose(const struct pieces_level levels[2],
                                                 uint32_t nodes, uint32_t pieces,
                                                 uint32_t portions);

enum status level_overlap_build(struct arena *arena, const struct level_overlap_choice *choice,
                                uint32_t nodes, struct level_overlap *ret_overlap,
                                struct error *reterr);

#endif
