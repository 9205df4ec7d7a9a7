/*
 * collective.h: what a collective must achieve, and the primitives it is composed of.
 *
 * A primitive works on one dimension of a group, in lanes that advance independently (the two
 * directions of a ring). It is a pure function from (size, lane, position, step) to what that rank
 * sends in that step: asked for while the simulation runs, never stored. It knows positions in a
 * dimension, not chips, links, bytes or time. A new one is one file in workloads/collectives/ and
 * one line in workloads/collectives.def; it is then proved on sets for every size up to 64.
 *
 * There are two sorts. A neighbour primitive sends along the dimension, lane 0 to the next position
 * and lane 1 to the one before: rings and lines. A routed primitive names the receiver of each
 * message, and how it gets there is the machine's affair: trees, halving and doubling, direct
 * exchange, what switches do. It runs on any dimension, or on all of a group's at once.
 *
 * Bytes are counted in units, half a chunk each, because on an even ring the antipodal chunk goes
 * half each way. What a chunk is depends on the kind; except for AllToAll there are as many as
 * positions:
 *   AllGather       chunk c: what position c contributes. A move names its source.
 *   ReduceScatter   chunk c: what position c ends up with. A move names its destination.
 *   AllReduce       chunk c: a slice of the array. A move names it as its destination, and as its
 *                   source primitive_any while it is a partial sum, else 0.
 *   AllToAll        chunk (s, d): what position s has for d. A move names both.
 *   Broadcast       chunk c: a slice of what position 0 has. A move names it as its destination.
 *   Reduce          chunk c: a slice of what position 0 ends up with, the sum of all.
 *   Gather          chunk c: what position c has for position 0. A move names its source.
 *   Scatter         chunk c: what position 0 has for position c. A move names its destination.
 *   Permute         one chunk a position, to one other.
 */
#ifndef SIM_COLLECTIVE_COLLECTIVE_H
#define SIM_COLLECTIVE_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"

enum collective_kind {
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_REDUCE, /* A primitive, or a plan of the two above. */
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_REDUCE,
    COLLECTIVE_GATHER,
    COLLECTIVE_SCATTER,
    COLLECTIVE_KIND_COUNT,
};

/* NCCL's algorithms, whose constants and names families have. */
enum nccl_algorithm {
    NCCL_NONE,  /* NCCL has no such algorithm. Its ring lends the constants. */
    NCCL_RING,  /* A chain is what its ring does from or to a root. */
    NCCL_TREE,  /* A tree that adds. */
    NCCL_NVLS,  /* Switches copy or add. */
    NCCL_PEERS, /* No algorithm of its own: sends and receives, with the constants of its ring. */
};

/* Kinds of collectives as bits. */
enum {
    NCCL_KINDS_NONE = 0,
    NCCL_KINDS_SUM = 1 << COLLECTIVE_ALL_REDUCE,
    NCCL_KINDS_HALF = 1 << COLLECTIVE_ALL_GATHER | 1 << COLLECTIVE_REDUCE_SCATTER,
    NCCL_KINDS_SPREAD = 1 << COLLECTIVE_BROADCAST | 1 << COLLECTIVE_REDUCE,
    NCCL_KINDS_EXCHANGE = 1 << COLLECTIVE_ALL_TO_ALL | 1 << COLLECTIVE_PERMUTE |
                          1 << COLLECTIVE_GATHER | 1 << COLLECTIVE_SCATTER,
};

/* What a scenario or the command line calls a way to do it, whatever is to be done; which of NCCL's
 * algorithms it is like, and the kinds that NCCL itself runs by it. */
#define PRIMITIVE_FAMILY_TABLE(X)                                                                  \
    X(LINE, "line", NCCL_NONE, NCCL_KINDS_NONE)                                                    \
    X(RING, "ring", NCCL_RING, NCCL_KINDS_SUM | NCCL_KINDS_HALF | NCCL_KINDS_SPREAD)               \
    X(RING_ONE_WAY, "ring-one-way", NCCL_NONE, NCCL_KINDS_NONE)                                    \
    X(DIRECT, "direct", NCCL_PEERS, NCCL_KINDS_EXCHANGE) /* All pairs. */                          \
    /* Halving or doubling, of the array with the distance. */                                     \
    X(RECURSIVE, "recursive", NCCL_NONE, NCCL_KINDS_NONE)                                          \
    X(RECURSIVE_DOUBLING, "recursive-doubling", NCCL_NONE, NCCL_KINDS_NONE)                        \
    X(BRUCK, "bruck", NCCL_NONE, NCCL_KINDS_NONE)                                                  \
    X(TREE, "tree", NCCL_TREE, NCCL_KINDS_NONE)                                                    \
    X(DOUBLE_TREE, "double-tree", NCCL_TREE, NCCL_KINDS_SUM)                                       \
    X(CHAIN, "chain", NCCL_RING, NCCL_KINDS_HALF | NCCL_KINDS_SPREAD)                              \
    X(SHARP, "sharp", NCCL_NVLS, NCCL_KINDS_SUM | NCCL_KINDS_HALF)                                 \
    X(SHIFT, "shift", NCCL_NONE, NCCL_KINDS_NONE)

enum primitive_family {
#define X(name, text, nccl, kinds) PRIMITIVE_##name,
    PRIMITIVE_FAMILY_TABLE(X)
#undef X
        PRIMITIVE_FAMILY_COUNT,
    PRIMITIVE_MSCCL =
        PRIMITIVE_FAMILY_COUNT, /* Of none, as out of a file: called by its own name. */
};

/* What switches do with the messages of a routed primitive on their way. */
enum primitive_network {
    PRIMITIVE_NETWORK_NONE,
    PRIMITIVE_NETWORK_MULTICAST,  /* One message up, a copy down to each other member. */
    PRIMITIVE_NETWORK_REDUCE,     /* Messages to one receiver are added: one comes down to it. */
    PRIMITIVE_NETWORK_ALL_REDUCE, /* Both: one up from each member, their sum down to each. */
};

enum {
    PRIMITIVE_LANES_MAX = 4,
    PRIMITIVE_HALF_FIRST = 1, /* Bits of primitive_move.halves. */
    PRIMITIVE_HALF_SECOND = 2,
    PRIMITIVE_HALVES = 3,
};
static const uint32_t primitive_any = UINT32_MAX;

/* One chunk, or half of one, that a step sends. */
struct primitive_move {
    uint32_t source;      /* Position; primitive_any for a partial sum. */
    uint32_t destination; /* Position; primitive_any for a chunk that every position wants. */
    uint8_t halves;
};

/* What a rank sends in one step of one lane, and what it waits for. */
struct primitive_step {
    uint32_t units;      /* Half chunks in this one message. */
    uint32_t arrivals;   /* Messages of this lane (routed: of `wait_lane`), in the order of their
                            slots, that must have arrived here before. */
    uint32_t chunks;     /* ReduceScatter: of the local operand's chunks, in the order of
                            chunk_at(), how many must have been computed. 0 for other kinds. */
    uint32_t move_count; /* For the proof: how many moves make up the message. */
    /* Routed primitives only. */
    uint32_t peer;     /* Position of the receiver; its displacement where the primitive translates;
                          primitive_any where switches send it to all. */
    uint32_t slot;     /* Which of the receiver's arrivals in the lane of the same number it is;
                          the parts of a sum made on the way share one. Unused under MULTICAST. */
    uint8_t wait_lane; /* Whose arrivals are counted; the step's own lane unless it says so. */
};

/* How far the messages of a primitive go whose receivers lie along an axis of a grid, and so how
 * often they cross its busiest link. */
enum primitive_reach {
    PRIMITIVE_REACH_NEXT,     /* To the next position, or to the one before. */
    PRIMITIVE_REACH_NEAR,     /* A link is crossed by what one member sends: trees, switches. */
    PRIMITIVE_REACH_ALL,      /* A message to each of the others, or from each. */
    PRIMITIVE_REACH_DOUBLING, /* 1, 2, 4, ... positions, messages of one length. */
    PRIMITIVE_REACH_SCALED,   /* 1, 2, 4, ... positions, messages as much longer as they go far. */
};

/* How positions pass on the whole array, once they have it or have added it up. */
enum primitive_relay {
    PRIMITIVE_RELAY_NONE,   /* No position has all of the array from others and sends all of it. */
    PRIMITIVE_RELAY_WHOLE,  /* In one message to each: storey by storey, up a tree or down. */
    PRIMITIVE_RELAY_CHUNKS, /* Chunk after chunk, from one position to the next. */
};

/* Figures of a cost, as bits. */
enum { PRIMITIVE_COST_DEPTH = 1, PRIMITIVE_COST_UNITS = 2 /* Those of the ports, too. */ };

/* What a primitive costs where each position sends and gets one message at a time, neighbours one
 * each way. Exactly what its moves take, as the tests' catalogue proves by playing them for every
 * size up to 64, but for what `bounds` names. */
struct primitive_cost {
    uint32_t depth;      /* Messages in series, each of which waits for the one before. */
    uint64_t units;      /* Half chunks from the first message to the last arrival. */
    uint64_t port_units; /* Half chunks all in all through the busiest port. */
    bool serial; /* A member's later messages wait for what came of its earlier ones, so that a
                    further piece begins when the one before ends. */
    bool paired; /* Of what the busiest member sends or gets, each block of others has a part as
                    large as the block; else some member sends all of it the farthest way. */
    enum primitive_reach reach;
    enum primitive_relay relay;
    uint8_t bounds; /* Figures that are at most twice what the moves take, and never less. */
};

/* Who sends a message, and as which of its own. */
struct primitive_origin {
    uint32_t position;
    uint32_t step;
};

struct primitive {
    const char *name; /* "all_gather_ring": equal to the file's name. */
    const char *help;
    const char *source; /* Book chapter or paper and section. */
    enum collective_kind kind;
    enum primitive_family family;
    bool ring;           /* Needs a dimension that closes into a ring. */
    uint32_t lane_count; /* Neighbours: lane 0 goes to higher positions, lane 1 to lower ones. */
    bool routed;         /* Steps of the primitive name their receivers. */
    bool translates;     /* Routed: position p does what position 0 does, moved by p; a peer is
                            then a displacement, digit by digit where dimensions are taken
                            together, and the dimension may be folded. */
    bool digits;         /* Translating: such displacements may be added digit by digit; else
                            dimensions taken together are one ring, and are not folded. */
    bool partners;       /* Routed: position p talks to p with some of its bits turned, so that a
                            shift by half the positions maps it onto itself. */
    bool ordered;        /* Routed: some step waits for particular arrivals, so that counting them
                            is not enough: neither for none nor for all, and not from one sender
                            in the order in which it sends. */
    enum primitive_network network;
    /* Routed: why a dimension of this size cannot be served, as the end of a sentence ("needs a
     * power of two"), or NULL if it can. The function itself may be NULL: every size from 2 on. */
    const char *(*refuses)(uint32_t size);

    /* How many messages a position sends and receives in a lane. */
    uint32_t (*send_count)(uint32_t size, uint32_t lane, uint32_t position);
    uint32_t (*arrival_count)(uint32_t size, uint32_t lane, uint32_t position);
    struct primitive_step (*step)(uint32_t size, uint32_t lane, uint32_t position, uint32_t step);
    struct primitive_move (*move)(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                  uint32_t move);
    /* ReduceScatter: the chunk that a producer should compute as its `index`-th, so that the lanes
     * never wait longer than they must. NULL for other kinds. */
    uint32_t (*chunk_at)(uint32_t size, uint32_t position, uint32_t index);
    /* Routed primitives that others mirror (mirror.h): the origin of the message that a position
     * gets as its `arrival`-th. NULL for all others, and where partners, or all that translate,
     * send and get their n-th messages together. */
    struct primitive_origin (*origin)(uint32_t size, uint32_t position, uint32_t arrival);
    /* NULL where the primitive comes out of a file. */
    struct primitive_cost (*cost)(uint32_t size);
};

extern const struct primitive *const primitive_table[];
extern const uint32_t primitive_count;

/* NULL if there is none. Of a family there may be one that sends to neighbours, and a routed one.
 */
const struct primitive *primitive_find(enum collective_kind kind, enum primitive_family family,
                                       bool routed);

const char *collective_kind_name(enum collective_kind kind); /* "AllGather" */

const char *primitive_family_name(enum primitive_family family); /* "ring-one-way" */

/* What a scenario calls it. */
static inline const char *primitive_algorithm(const struct primitive *primitive)
{
    return primitive->family == PRIMITIVE_MSCCL ? primitive->name
                                                : primitive_family_name(primitive->family);
}

/* How many messages of a member go one after the other, each of which has to come round before the
 * next: a line passes on what has come while it goes on, and a direct exchange or a tree waits for
 * nobody. 0 of NULL. */
static inline uint32_t primitive_series(const struct primitive *primitive, uint32_t size)
{
    if (primitive == NULL) return 0;
    struct primitive_cost const cost = primitive->cost(size);
    return cost.serial ? cost.depth : 0;
}

/* Whether each position sends one message to each other, or to or from the root, and nobody passes
 * on what it got. */
static inline bool primitive_is_pairwise(const struct primitive *primitive, uint32_t size)
{
    struct primitive_cost const cost = primitive->cost(size);
    return cost.reach == PRIMITIVE_REACH_ALL && cost.depth == 1;
}

/* Whether one rank is unlike the others: broadcast, reduce, gather, scatter. */
static inline bool collective_is_rooted(enum collective_kind kind)
{
    return kind == COLLECTIVE_BROADCAST || kind == COLLECTIVE_REDUCE || kind == COLLECTIVE_GATHER ||
           kind == COLLECTIVE_SCATTER;
}

/* Of a size as nccl-tests prints it, what an ideal fabric has to carry to and from each rank, so
 * that kinds and numbers of ranks compare (nccl-tests, doc/PERFORMANCE.md): busbw = algbw ·
 * numerator / denominator. */
struct collective_factor {
    uint64_t numerator, denominator;
};
struct collective_factor collective_bus_factor(enum collective_kind kind, uint64_t ranks);

/* Sizes of nccl-tests in an array of a plan: each rank of an AllToAll has a buffer of one. */
uint64_t collective_sizes(enum collective_kind kind, uint64_t ranks);

#endif
