/* emit_parts.h: what emission (emit.h) is made of. */
#ifndef SIM_WORKLOAD_EMIT_PARTS_H
#define SIM_WORKLOAD_EMIT_PARTS_H

#include "sim/graph/block.h"
#include "sim/graph/live.h"
#include "sim/workload/lower.h"

/* A kind of layer with all that follows from its graph. */
struct lower_graph {
    struct graph_terms terms;
    struct graph graph;
    struct graph_sharded sharded;
    struct graph_backward backward;
    struct graph_kept kept;
    uint8_t place[GRAPH_OPS_MAX]; /* [op]: of its matrices; LOCAL_PLACE_COUNT: it has none. */
    struct graph_steps steps, later;
    struct graph_live live;
};

/* A pass under construction. */
struct emit {
    struct lower *lower;
    const struct lower_graph *of;
    const struct graph *graph;
    const struct graph_steps *steps;
    uint32_t repeated;              /* Steps that repeat the layer; gradients follow. */
    uint32_t op[GRAPH_STEPS_MAX];   /* [step] */
    uint32_t plan[GRAPH_STEPS_MAX]; /* [step]: of a collective; LOWER_NONE: not yet. */
};

/* "attention.QKV again", "attention.dIn" */
const char *emit_compute_name(const struct emit *emit, const struct graph_step *step);
/* What a collective moves: "attention.In", "dRows". */
const char *emit_moved_name(const struct emit *emit, const struct graph_step *step);

#endif
