/*
 * pieces.h: into how many pieces the shares of a plan over several dimensions are cut, and whether
 * its items take turns on a dimension.
 *
 * With one piece a dimension waits at the beginning or the end for data of the others, unless all
 * are alike; with P pieces that wait is a P-th, but each piece pays its hops anew, as a lane sends
 * one message at a time. So there is a best P, and for small arrays it is 1.
 */
#ifndef SIM_COLLECTIVE_PIECES_H
#define SIM_COLLECTIVE_PIECES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/collective.h"
#include "sim/collective/group.h"
#include "sim/collective/shares.h"

enum { PIECES_CHOSEN_MAX = 32, PIECES_LEVELS_MAX = 256, PIECES_MESSAGES_MAX = 16384 };
enum { PIECES_BARE_PPM = 5000 };

struct pieces {
    uint32_t count;
    bool turns;
};

struct pieces pieces_choose(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                            const struct shares *shares, enum collective_kind kind,
                            uint64_t size_bytes);

/* How many chunks a plan over several dimensions may be cut into for ops that go chunk by chunk
 * with it. Nothing hides the first or last chunk, and each pays its hops anew: a step with P chunks
 * has about M/P + P·h/2 on top, M the shorter of links' time T and the ops'. Plans do not know M;
 * P = sqrt(2·T/h) is the best where it is T, and for small arrays less. 0 or 1: the hops are so
 * long that the array had better not be cut. */
uint32_t pieces_beside(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                       uint64_t size_bytes);

/* How a level's messages follow one another. */
enum pieces_series {
    PIECES_FREE,     /* No message waits for an earlier one's arrival. */
    PIECES_RING,     /* All are as long, each goes on when it has come. */
    PIECES_FILLED,   /* A ring next to items whose messages fill the level's links. */
    PIECES_DOUBLING, /* From whole shares down to single shards, or the other way. */
    PIECES_GRID,     /* Rings of several orders, each along every axis. */
};

/* What a plan asks of one of its levels: the grid as a whole, or a dimension that switches serve.
 */
struct pieces_level {
    uint64_t bytes; /* Over the links of one rank. */
    uint64_t bytes_per_s;
    uint64_t hop_bytes; /* Bytes that these links carry while a message is on its way. */
    uint32_t messages;  /* Messages that a rank sends for each piece. */
    uint32_t passes; /* How often a rank's bytes go there, each time over other links; 0: once. */
    uint32_t shards; /* Shards that the bytes consist of; 0: unknown. */
    enum pieces_series series;
    bool in_network;   /* Switches copy or add. */
    bool longer_alone; /* A piece by itself takes longer here than its bytes do. */
    bool twice;        /* Sums and what they gather share the links. */
    uint64_t again_ps; /* The way that each piece has to go anew. */
};

/* How long a level takes for `bytes`. */
int64_t pieces_level_ps(const struct pieces_level *level, uint64_t bytes);

/* Into how many pieces levels that follow one another had best be cut, however many messages that
 * takes: at least 1 and at most PIECES_LEVELS_MAX. */
uint64_t pieces_wanted(const struct pieces_level *levels, uint32_t count);

/* How many pieces let levels that follow one another overlap: with P of them a plan takes as long
 * as its slowest level, and a P-th of the others. A piece is no shorter than the way through them,
 * which would only be waited for, or than a quarter of it where switches copy or add; and a rank
 * sends no more than PIECES_MESSAGES_MAX messages. Where each piece goes its way anew, P of them
 * add as many ways to a P-th of the others, which is least at the root; but two rings fill each
 * other's. */
uint32_t pieces_of_levels(const struct pieces_level *levels, uint32_t count);

/* The least number P of pieces that leave less than PIECES_BARE_PPM of the longest level's time
 * bare: a P-th of the other levels, the first piece's before the longest level and the last piece's
 * behind it. More pieces gain next to nothing, and are more messages. UINT64_MAX where a piece by
 * itself takes longer on a level than its bytes do, so that this is not all that is bare. */
uint64_t pieces_needed(const struct pieces_level *levels, uint32_t count);

#endif
