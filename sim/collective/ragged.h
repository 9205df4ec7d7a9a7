/*
 * ragged.h: which tokens go where in a ragged AllToAll, drawn from a seed.
 *
 * Every token of a rank goes to top_k different experts. Experts lie evenly on the ranks, in the
 * order of positions: those of a node are neighbours. A rank gets one copy of a token, however many
 * of its experts want it, as libraries for expert parallelism send it. (The book's factor
 * (1-((Z-1)/Z)^k)(Z-1)/Z is for draws with replacement; these are without, so a little more.)
 *
 * Expert number i in the order of popularity has the weight 1 - s + s/(i+1), s the skew: 0 makes
 * all alike, 1 is Zipf's law. Which expert is how popular is drawn too. All is integers: the same
 * seed gives the same bytes everywhere.
 */
#ifndef SIM_COLLECTIVE_RAGGED_H
#define SIM_COLLECTIVE_RAGGED_H

#include "sim/base/status.h"
#include "sim/collective/plan.h"

struct arena;

enum { RAGGED_TOP_K_MAX = 64, RAGGED_EXPERTS_MAX = 65536, RAGGED_RANKS_MAX = 4096 };

/* Refuses what cannot be drawn; `where` is the place of the request. */
enum status ragged_check(const struct plan_request *request, const char *where,
                         struct error *reterr);

/* Tokens of one rank: its buffer holds each once. */
uint64_t ragged_tokens(const struct plan_request *request);

/* Fills plan.ragged and plan.ragged_units of a plan whose group is set. */
enum status ragged_build(struct arena *arena, const struct plan_request *request, struct plan *plan,
                         struct error *reterr);

/* What ranks have for each other; what a rank has for itself is not sent. */
struct ragged_load {
    uint64_t sent_bytes; /* Of all ranks. */
    uint64_t sent_least_bytes, sent_most_bytes;
    uint64_t received_least_bytes, received_most_bytes;
};

/* Of a plan that has plan.ragged_units. */
struct ragged_load ragged_load(const struct plan *plan);

#endif
