/*
 * routing_load.h: what ranks of ep have when a router prefers some experts. Experts are drawn token
 * by token as the ragged exchange draws them (ragged.h), so experts compute the rows that travel.
 */
#ifndef SIM_STEP_ROUTING_LOAD_H
#define SIM_STEP_ROUTING_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/cancel.h"
#include "sim/base/status.h"
#include "sim/collective/group.h"
#include "sim/collective/plan.h"

struct routing_load {
    uint64_t dropped;   /* Assignments that no expert computes, of all ranks. */
    uint64_t rows_most; /* Assignments that the rank with most computes. */
    uint64_t hit_most;  /* Experts that have rows, on the rank with most such experts. */
    uint64_t came_most; /* Tokens that come to the rank that gets most, its own among them. */
    uint64_t sent_most; /* Tokens of the rank that sends most, once for each rank that a token goes
                           to. */
    uint64_t sent;      /* Rows that all ranks send. */
    /* By dimension. Of a group on switches: the rows that all ranks send on along it. On a grid,
     * where each copy goes its own way: as many rows as would cross its links if each rank sent
     * evenly to all ranks, itself among them. There every dimension has the number of the dimension
     * with the fewest, and at most as many rows as are sent. */
    uint64_t crossing[GROUP_DIMENSIONS_MAX];
};

/* What a load is drawn for. */
struct routing_request {
    const struct group *group; /* On switches only, or on a grid that is not twisted. */
    const struct plan_ragged *ragged;
    uint64_t tokens;   /* Tokens of each rank, or of the first ranks (ragged->tokens). */
    uint64_t capacity; /* Rows that an expert computes at most; 0: all. */
    const struct cancel *cancel;
};

/* The last load that was drawn, with its request. Drawing takes long, and several callers ask for
 * one load. */
struct routing_drawn {
    bool filled;
    struct group group;
    struct plan_ragged ragged;
    uint64_t tokens, capacity;
    struct routing_load load;
};

/* Draws a load, unless `drawn` has it, and keeps it there; `drawn` may be NULL. Errors:
 * STATUS_INTERRUPTED, or a request that cannot be drawn. */
enum status routing_load_draw(const struct routing_request *request, struct routing_drawn *drawn,
                              struct routing_load *ret_load, struct error *reterr);

#endif
