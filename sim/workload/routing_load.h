/*
 * routing_load.h: what ranks of ep have when a router prefers some experts: drawn token by token as
 * the ragged exchange draws it (ragged.h), so that the rows of the experts are those that travel.
 */
#ifndef SIM_WORKLOAD_ROUTING_LOAD_H
#define SIM_WORKLOAD_ROUTING_LOAD_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/group.h"
#include "sim/collective/plan.h"

struct routing_load {
    uint64_t kept; /* Assignments that experts compute, of all ranks, */
    uint64_t dropped;
    uint64_t rows_most; /* and of the rank that has most. */
    uint64_t came_most; /* Tokens that come to a rank, its own among them; */
    uint64_t sent_most; /* tokens of one rank, each as often as there are ranks that it goes to. */
    uint64_t sent;      /* Of all ranks. */
    /* Of a group on switches, what all ranks send on along a dimension. On a grid, where each copy
     * goes its own way, as many as would have to cross the dimension's links if they went evenly to
     * all ranks, those for the sender itself among them: of all dimensions the least, and no more
     * than that many are sent. */
    uint64_t crossing[GROUP_DIMENSIONS_MAX];
};

/* `tokens` of each rank of a group, on switches only or on a grid that is not twisted. An expert
 * computes `capacity` rows at most; 0: all. */
enum status routing_load_draw(const struct group *group, const struct plan_ragged *ragged,
                              uint64_t tokens, uint64_t capacity, struct routing_load *ret_load,
                              struct error *reterr);

#endif
