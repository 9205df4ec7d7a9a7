/*
 * tree.h: messages that switches copy or add on their way (SHARP, NVLink SHARP).
 *
 * A message climbs tier by tier, and may be joined with others or copied in each unit:
 *   MULTICAST    up from its source; each unit copies it down to all below it that have members,
 *                except where it came from, and up if there are members elsewhere
 *   REDUCE       contributions to one receiver are added in every unit on their way: what comes out
 *                of the units below, and what comes from above, goes on to where the receiver is
 *   ALL_REDUCE   every unit adds what comes from below; the highest copies the sum down to all
 * A unit passes a sum on as soon as the last head has come (cut-through), and its adders are a
 * queue: where they are slower than the cables, heads wait for them.
 *
 * Payload and order. A message of a unit is named by the lowest member in it (as replayed), and the
 * discriminator says how far from there its receiver (REDUCE) or its source (MULTICAST) is: that is
 * the same wherever a fold cuts. Nothing takes a cable but an event of its own, whose payload lies
 * in the unit that owns the cable; so where many copies or sums want a cable in one instant, the
 * key orders them: by group (the payload's place in the boxes that a shift keeps) and displacement.
 *
 * Folded, equal contributions of ALL_REDUCE are one, so a unit waits for as many as are replayed;
 * those of REDUCE differ by their receivers, and a unit waits for all.
 */
#ifndef SIM_REPLAY_TREE_H
#define SIM_REPLAY_TREE_H

#include "sim/replay/routed.h"

/* Kinds of events of a tree; the hop of an event's order. */
enum tree_step {
    TREE_UNIT_UP,   /* A head enters a unit from below. */
    TREE_UNIT_DOWN, /* A head enters a unit from above. */
    TREE_CABLE_UP,  /* A head is at the cable out of a unit. */
    TREE_CABLE_DOWN,
    TREE_STEPS, /* Times tier, plus step: the hop. */
};

/* Most collectives whose sums a unit gathers at once; a run with more is refused. */
enum { TREE_EPOCHS = EPOCHS_AHEAD };

/* Members of the group in a unit, along one axis: the lowest one in each unit below, ascending; on
 * the machine, not folded. */
struct tree_children {
    const uint32_t *at;
    uint32_t count;
    uint32_t folded; /* The first `folded` are replayed, the others are their images. */
};

/* The arrived contributions of one sum. */
struct tree_sum {
    uint32_t joined; /* Contributions so far; 0: `epoch` is not set. */
    uint32_t epoch;
};

struct tree_tier {
    struct tree_children *children[MACHINE_AXES_MAX]; /* [coordinate of a replayed chip] */
    bool *outside[MACHINE_AXES_MAX];                  /* Whether the group has members elsewhere. */
    bool folds[MACHINE_AXES_MAX]; /* A unit is longer than what is replayed along the axis. */
    struct tree_sum *sums;        /* [chip][receiver][epoch][piece] */
    int64_t *adders_ps;           /* [chip][receiver]: when its adders are free. */
    uint64_t reduce_flop_per_s;   /* Rate of these adders: the unit's, shared evenly by all sums of
                                     the unit, so that it does not matter which sum comes first. */
};

struct tree {
    struct level_links *level;
    uint32_t level_index;
    uint32_t tier_count;
    uint32_t slots;                       /* Slots of a join: pieces times epochs. */
    uint32_t receivers;                   /* Receivers of a join. */
    uint32_t sum_first[MACHINE_AXES_MAX]; /* Radix of a receiver's place. */
    uint32_t open_count;                  /* Sums of which some contributions have come. */
    int64_t adders_latest_ps;             /* When the last of all adders is free. */
    struct tree_tier tier[LEVEL_TIERS_MAX];
};

enum status tree_build(struct arena *arena, struct replay *replay, struct lane_table *lane,
                       struct error *reterr);

/* The sender's message takes its first cable; returns when its tail has left. */
int64_t tree_send(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps);
void tree_hop(struct replay *replay, struct lane_table *lane, uint64_t key, const uint32_t *chips,
              uint32_t count, int64_t now_ps);
/* The message that has arrived at a chip, without its route. */
void tree_message(struct replay *replay, struct lane_table *lane, uint64_t key, uint32_t chip,
                  struct routed_message *ret_message);
/* Whether no sum has begun, and all adders are free. */
bool tree_is_idle(const struct tree *tree, int64_t now_ps);
/* The time of a message on the slowest cable of its whole route. */
int64_t tree_pace_ps(const struct lane_table *lane, const struct routed_cost *cost);
/* Events of a message that can be under way at once. */
uint64_t tree_bound(const struct lane_table *lane);

#endif
