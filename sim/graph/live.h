/*
 * live.h: from which step to which each value of a pass lies in memory: from the step that writes
 * it to the last step that reads it, or, if a later pass reads it, to the end of the pass. Weights
 * with their gradients, and the stream that comes from other layers, are left out: others take
 * them. Templates take and give memory by these lives (sim/step/emit.c).
 */
#ifndef SIM_GRAPH_LIVE_H
#define SIM_GRAPH_LIVE_H

#include "sim/graph/steps.h"

enum { GRAPH_LIVES_MAX = 4 * GRAPH_TENSORS_MAX };

struct graph_life {
    struct graph_value value;
    uint64_t bytes;
    uint32_t first, last; /* Steps: taken when the first begins, given back when the last ends. */
    bool before, after;   /* The value is there when the pass begins; after the pass has ended. */
};

struct graph_live {
    struct graph_life life[GRAPH_LIVES_MAX];
    uint32_t count;
};

/* Lives of the values of a pass. `later`: the steps of the second half, if `steps` are the first
 * half of a backward pass; else NULL. */
void graph_live(const struct graph_sharded *sharded, const struct graph_kept *kept,
                const struct graph_steps *steps, const struct graph_steps *later,
                struct graph_live *ret_live);

/* The life of a value, the last one if it has several. NULL: the value is left out. */
const struct graph_life *graph_life_of(const struct graph_live *live, struct graph_value value);

/* Bytes that lie in memory during a step. */
uint64_t graph_live_bytes(const struct graph_live *live, uint32_t step);

#endif
