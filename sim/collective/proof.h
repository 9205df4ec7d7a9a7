/*
 * proof.h: the state of a proof on sets: what every rank holds while a plan is played.
 *
 * The array is split into atoms: what one rank contributes, or ends up with, or has for another;
 * and each of these in two for every dimension, as an even ring splits a chunk in halves. Pieces of
 * an order are apart. What a rank may send must not depend on luck, so every atom remembers the
 * message that brought it, and only messages that the step waits for count.
 */
#ifndef SIM_COLLECTIVE_PROOF_H
#define SIM_COLLECTIVE_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"

struct arena;

enum {
    PROOF_RANKS_MAX = 64,
    PROOF_HALVINGS_MAX = 1 << GROUP_DIMENSIONS_MAX, /* Atoms that a chunk may be cut into. */
};
static const uint32_t proof_any = UINT32_MAX;

/* The message that brought an atom: counted from 1, 0 for what was there from the start. */
struct proof_tag {
    uint8_t item;
    uint8_t lane;
    uint16_t index;
};

/* One atom at one rank. Gathers: whether it is held. Sums: who has contributed. */
struct proof_atom {
    uint64_t who;
    struct proof_tag tag;
};

/* A message on its way: lane `lane` of the plan, its step of its piece, at the sending rank. */
struct proof_message {
    const struct plan_item *item;
    const struct plan_lane *lane;
    uint32_t from, to;
    uint32_t piece, step;
    uint32_t index; /* It is the receiver's index-th of this lane and piece, from 1. */
    struct primitive_step content;
};

struct proof {
    const struct plan *plan;
    const char *where;
    uint32_t rank_count;
    uint32_t halvings; /* 2^dimensions */
    uint32_t position[PROOF_RANKS_MAX][GROUP_DIMENSIONS_MAX];
    uint8_t level[PLAN_ITEMS_MAX]; /* Items of the same kind before it in its chain. */
    uint8_t done[PLAN_ITEMS_MAX];  /* Bits: dimensions that those have covered. */
    struct proof_atom *sum;        /* [piece][rank][destination][halving] */
    struct proof_atom *gather;     /* [piece][rank][source][halving] */
    struct proof_atom *where_is; /* AllToAll: [piece][source][destination][halving]; who = rank. */
    struct error *reterr;
};

enum status proof_create(struct arena *arena, const struct plan *plan, const char *where,
                         struct proof *ret_proof, struct error *reterr);

/* Moves what a message carries, or refuses it. */
enum status proof_deliver(struct proof *proof, const struct proof_message *message);

/* Whether everything is where the kind promises it. */
enum status proof_end(struct proof *proof);

enum status proof_refuse(struct proof *proof, const struct proof_message *message,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The rank at these positions. */
uint32_t proof_rank(const struct proof *proof, const uint32_t position[GROUP_DIMENSIONS_MAX]);

#endif
