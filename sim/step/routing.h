/*
 * routing.h: where tokens go when a router sends each to k of E experts, and what a layer's experts
 * are on one chip: rows, columns, and what is exchanged over ep.
 *
 * Ranks of ep split the experts as they split the tokens. Expert weights lie once in an ep group,
 * so their gradients are reduced over the other data ranks only. Where ep lies over tp too, ranks
 * of tp have whole experts, and each exchanges its own tokens.
 */
#ifndef SIM_STEP_ROUTING_H
#define SIM_STEP_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/group.h"
#include "sim/collective/plan.h"
#include "sim/graph/terms.h"
#include "sim/model/model.h"

struct ranks;

/* Ranks that hold copies of the same weights. Each may keep only a part of the optimizer state, and
 * of the gradients, of these weights (ZeRO). */
struct replicas {
    uint32_t count; /* 1: each rank has weights of its own. */
    struct group group;
    const char *name;         /* Mesh axes of the group: "dp". */
    uint32_t state_shards;    /* Ranks that the optimizer state is split over. */
    uint32_t gradient_shards; /* Ranks that gradients are split over once they are reduced. */
};

struct routing {
    uint32_t ranks;  /* ep: ranks that share one set of experts. */
    uint64_t tokens; /* Tokens of a microbatch that a rank of ep exchanges for itself and, where
                        these split its experts, for its ranks of tp. */
    uint64_t count;  /* E / ep: experts of one rank. */
    uint64_t asked;  /* Experts of a rank that have rows. With a capacity: all experts of the rank,
                        as rows may be empty. Without one: the mean number of experts that tokens
                        ask for, rounded up; where routing is drawn, the number on the rank with
                        the most of these experts. */
    /* The share of the weights of a rank's experts that products read. A rank that has all experts
     * reads the weights of the mean number of experts that tokens ask for. */
    struct graph_share read;
    uint64_t rows;      /* Rows of each expert that is asked: an even part of `all`, rounded up. */
    uint64_t kept;      /* Assignments of a rank that are computed, on average. */
    uint64_t dropped;   /* Assignments of all ranks that are not computed. */
    uint64_t all;       /* Rows of a rank: the tokens' assignments, evenly; of the most loaded
                           rank where routing is drawn. */
    uint64_t arrivals;  /* Tokens that come to a rank. A token comes once, however many experts of
                           the rank want it, or once for each of them (workload_token_copies).
                           Where routing is drawn, the rank is the one that gets most. */
    uint64_t sent;      /* Arrivals that come from one rank: from the one that sends most. */
    uint64_t exchanged; /* Rows that all ranks exchange. */
    struct plan_ragged drawn; /* How assignments are drawn; `token_bytes` is not set. Without
                                 experts routing is not drawn. */
    uint64_t crossing[GROUP_DIMENSIONS_MAX]; /* By dimension, the tokens that all ranks exchange
                                                over it. All 0: tokens go straight to their ranks.
                                              */

    struct replicas replicas;
};

/* Whether the skew of routing shows on this mesh, or in what is dropped. */
bool routing_is_drawn(const struct ranks *ranks);

/* Whether a token is sent once for each of its experts. */
bool routing_copies_each(const struct ranks *ranks);

/* Refused: experts that ep does not divide. `ranks` has the ranks of ep and the widths. */
enum status routing_build(struct ranks *ranks, struct error *reterr);

/* All experts alike to the router, counted, not drawn: how many of `tokens` have at least one of
 * their experts among `held` of them that lie next to each other (those of a rank, of a node), on
 * average and rounded up. */
uint64_t routing_hits(const struct model_experts *experts, uint64_t held, uint64_t tokens);

/* Whether `held` experts are part of a group of experts, or whole groups: what a token's limit to
 * a few groups means for others depends on where they begin. */
bool routing_fits_groups(const struct model_experts *experts, uint64_t held);

#endif
