/*
 * live.h: from which step to which each value of a pass lies in memory: from the step that writes
 * it to the last one that reads it, or, if a later pass reads it, to the end of the pass. Left out
 * is what others take: weights with their gradients, the stream that comes from other layers.
 * What templates take and give is this (sim/step/emit.c).
 */
#ifndef SIM_GRAPH_LIVE_H
#define SIM_GRAPH_LIVE_H

#include "sim/graph/steps.h"

enum { GRAPH_LIVES_MAX = 4 * GRAPH_TENSORS_MAX };

struct graph_life {
    struct graph_value value;
    uint64_t bytes;
    uint32_t first, last; /* Steps: taken when the first begins, given back when the last ends. */
    bool before, after;   /* The value is there when the pass begins; when the pass has ended. */
};

struct graph_live {
    struct graph_life life[GRAPH_LIVES_MAX];
    uint32_t count;
};

/* Of a pass' steps. `later`: of a backward pass' first half, the steps of the other; else NULL. */
void graph_live(const struct graph_sharded *sharded, const struct graph_kept *kept,
                const struct graph_steps *steps, const struct graph_steps *later,
                struct graph_live *ret_live);

/* The life of a value, of several the last, or NULL: others take it. */
const struct graph_life *graph_life_of(const struct graph_live *live, struct graph_value value);

/* Bytes that lie in memory during a step. */
uint64_t graph_live_bytes(const struct graph_live *live, uint32_t step);

#endif
