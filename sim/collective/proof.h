/*
 * proof.h: the state of a proof on sets: what every rank holds while a plan runs.
 *
 * The array is split into atoms: what one rank contributes, or ends up with, or has for another;
 * and each of these in two for every dimension, as an even ring splits a chunk in halves. Pieces of
 * an order are apart. An atom at a rank is the set of those whose contributions are in it: a sum
 * that is complete holds all of them, and so does what a gather or a broadcast begins with.
 *
 * What a rank may send must not depend on luck, so what each message brought is kept apart, and
 * only messages that the step waits for count.
 */
#ifndef SIM_COLLECTIVE_PROOF_H
#define SIM_COLLECTIVE_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

struct arena;

enum {
    PROOF_RANKS_MAX = 64,
    PROOF_HALVINGS_MAX = 1 << GROUP_DIMENSIONS_MAX, /* Atoms that a chunk may be cut into. */
};
static const uint32_t proof_any = UINT32_MAX;

/* The message that brought an atom: counted from 1 in its portion, 0 for what was there from the
 * start. */
struct proof_tag {
    uint8_t item;
    uint8_t lane;
    uint8_t portion;
    uint16_t index;
};

/* What one message added to an atom. */
struct proof_entry {
    uint64_t who;
    struct proof_tag tag;
    uint32_t next; /* In proof.entry; 0: the last. */
};

/* One atom at one rank: whose contributions it holds. */
struct proof_atom {
    uint64_t who;   /* Ranks whose contribution the atom has from the start. */
    uint32_t entry; /* What messages have added to it. 0: nothing. */
};

/* AllToAll: where an atom is. */
struct proof_holder {
    uint32_t rank;
    struct proof_tag tag;
};

/* A message on its way: lane `lane` of the plan, its step of its piece, at the sending rank. */
struct proof_message {
    const struct plan_item *item;
    const struct plan_lane *lane;
    uint32_t from, to;
    uint32_t piece, portion, step;
    uint32_t index; /* The message is the receiver's index-th of this lane and portion, counted
                       from 1. */
    struct primitive_step content;
    uint16_t waited[PRIMITIVE_LANES_MAX]; /* Arrivals of this portion that it or an earlier step of
                                             its lane has waited for, by lane of the item. */
};

struct proof {
    const struct plan *plan;
    const char *where;
    struct arena *arena;
    uint32_t rank_count;
    uint64_t all;                                   /* A bit for every rank. */
    uint32_t halvings;                              /* 2^dimensions */
    uint32_t at[PROOF_RANKS_MAX][MACHINE_AXES_MAX]; /* Coordinates on the machine. */
    uint32_t digit[PROOF_RANKS_MAX][GROUP_DIMENSIONS_MAX];
    uint32_t digits[PROOF_RANKS_MAX];         /* [rank]: the digits of a rank, a byte each. */
    uint32_t digits_mask[PROOF_HALVINGS_MAX]; /* [dimensions as bits]: the bytes of their digits. */
    uint8_t position[PLAN_ITEMS_MAX][PROOF_RANKS_MAX]; /* [item][rank]: the position in the item. */
    uint8_t seat[PLAN_ITEMS_MAX][PROOF_RANKS_MAX];     /* [item][rank]: where its counts lie. */
    uint8_t level[PLAN_ITEMS_MAX];     /* [item]: items of its kind that precede it in its chain. */
    uint8_t scattered[PLAN_ITEMS_MAX]; /* [item]: dimensions, as bits, along which ranks hold
                                          different parts when it begins. */
    uint8_t done[PLAN_ITEMS_MAX];      /* AllToAll, bits: dimensions already exchanged over. */
    struct proof_atom *atom;           /* [piece][rank][chunk][halving] */
    struct proof_holder *place;        /* AllToAll: [piece][source][destination][halving] */
    uint32_t *ragged[PLAN_ITEMS_MAX];  /* Halves of tokens: [(piece · ranks + rank) · size +
                                          position], of an item. */
    struct proof_entry *entry;
    uint32_t entry_count, entry_capacity;
    struct error *reterr;
};

enum status proof_create(struct arena *arena, const struct plan *plan, const char *where,
                         struct proof *ret_proof, struct error *reterr);

/* Moves what a message carries to `to`, or refuses it. */
enum status proof_deliver(struct proof *proof, const struct proof_message *message);

/* Adds what the messages carry in the switches and gives every sender the sum. */
enum status proof_all_reduce(struct proof *proof, const struct proof_message *messages,
                             uint32_t count);

/* Whether everything is where the kind promises it. */
enum status proof_end(struct proof *proof);

enum status proof_refuse(struct proof *proof, const struct proof_message *message,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The rank at these coordinates of the machine. */
uint32_t proof_rank(const struct proof *proof, const uint32_t at[MACHINE_AXES_MAX]);

/* Follows a lane's legs from a rank. False: they leave the machine, or end between members. */
bool proof_legs(const struct proof *proof, uint32_t rank, const struct plan_lane *lane,
                uint32_t *ret_receiver);

/* Plays a plan of at most PROOF_RANKS_MAX ranks and says what is wrong with it, if anything. */
enum status proof_play(struct arena *arena, const struct plan *plan, const char *where,
                       struct error *reterr);

/* Follows every token of a ragged exchange to the ranks that want it, once to each and, over
 * several items, once to each unit of the outermost dimension; fills proof.ragged, and holds the
 * units of the plan to it. */
enum status proof_ragged(struct arena *arena, struct proof *proof);

/* What can be said of a plan without playing it: its shares make up the array, translating
 * primitives translate, chunks are computed once. */
enum status proof_forms(const struct plan *plan, const char *where, struct error *reterr);

/* A move of a message, as a position sees it: translated where the primitive is. */
struct primitive_move proof_move(const struct plan *plan, const struct plan_item *item,
                                 uint32_t lane, uint32_t position, uint32_t step, uint32_t move);

/* The chunk that a position computes as its `index`-th. */
uint32_t proof_chunk_at(const struct plan *plan, const struct plan_item *item, uint32_t position,
                        uint32_t index);

/* Whether a portion of an item carries a rank's chunk, as a rank sees it that sends or receives. */
bool proof_carries(const struct proof *proof, const struct proof_message *message, uint32_t rank);

/* Bits: the dimensions that an item covers, and those along which ranks hold different parts of
 * its share when it begins. */
uint32_t proof_covered(const struct plan *plan, const struct plan_item *item);
uint32_t proof_scattered(const struct plan *plan, const struct plan_item *item);

#endif
