/* emit_parts.h: what emission (emit.h) is made of. */
#ifndef SIM_STEP_EMIT_PARTS_H
#define SIM_STEP_EMIT_PARTS_H

#include "sim/graph/derive.h"
#include "sim/graph/live.h"
#include "sim/step/graph_terms.h"
#include "sim/step/lower.h"

struct lower_pass {
    struct graph_steps steps;
    struct graph_live live;
};

/* A kind of layer, or an end, with all that follows from its graph. */
struct lower_graph {
    const struct graph_derived *derived;
    uint8_t place[GRAPH_OPS_MAX]; /* [op]: of its matrices, in the order of the forward pass;
                                     MATRICES_MAX: it has none. */
    struct lower_pass *backward[3][2][2][2]; /* [half][sums_partial][weights_held][gradients_stay]:
                                                once it is asked for. */
    struct lower_pass *forward[3][2][2];     /* [place in a group][again][weights_held]: once it is
                                                asked for. */
};

struct emit_end;

/* A pass under construction. */
struct emit {
    struct lower *lower;
    const struct lower_graph *of;
    const struct graph *graph;
    const struct graph_steps *steps;
    const struct graph_live *live;
    uint32_t op[GRAPH_STEPS_MAX];      /* [step] */
    uint32_t plan[GRAPH_STEPS_MAX];    /* [step]: of a collective; LOWER_NONE: not yet. */
    const struct emit_end *end;        /* NULL: it is a layer's. */
    uint32_t gather[GRAPH_BLOCKS_MAX]; /* Gathers of an end's weights, by block. */
};

/* Whether a tensor is a layer's input, which every remat keeps. */
static inline bool emit_is_input(const struct graph *graph, tensor of)
{
    return graph->tensor[of].kept == GRAPH_REMAT_LAYER;
}

/* The graph of a part of the model, or NULL: there is no room. */
struct lower_graph *emit_graph(struct lower *lower, const struct step_part *part);
/* That of the layer which the template is of. */
struct lower_graph *emit_layer_graph(struct lower *lower);
/* A pass of a graph, or NULL: there is no room. What the first half of a backward pass leaves is
 * for the second. */
const struct lower_pass *emit_pass_of(struct lower *lower, struct lower_graph *of,
                                      struct graph_request request);

/* The ops of a pass of a graph. NULL: there was no room for it. */
void emit_pass(struct lower *lower, struct lower_graph *of, const struct emit_end *end,
               struct graph_request request);
/* What the template under construction asks of a graph, forward or backward. */
struct graph_request emit_request(const struct lower *lower, bool backward);

/* Whether a step is the last that writes a gradient of weights: the product, or a kernel behind it.
 */
bool emit_ends_gradient(const struct emit *emit, uint32_t at);

/* Weights of an end (emit_ends.c): emits the gather of weights that a step, or a step behind it,
 * reads; then the needs, memory and reductions of the weights that a step uses. */
void emit_end_gather(struct emit *emit, uint32_t at);
void emit_end_weights(struct emit *emit, uint32_t at);

/* Where a collective goes (emit_plans.c); whether its chunks are coupled with the chunks of a
 * compute; its plan. */
struct emit_route {
    enum lower_stream stream;
    const struct group *group;
};
struct emit_route emit_route(const struct ranks *ranks, const struct graph *graph,
                             const struct graph_step *step);
bool emit_is_chunked(const struct emit *emit, const struct graph_step *step);
uint32_t emit_plan(struct emit *emit, uint32_t at);

/* What the ops take and give back (emit_memory.c), once all ops are there. */
void emit_memory(struct emit *emit);

/* "attention.QKV again", "attention.dIn" */
const char *emit_compute_name(const struct emit *emit, const struct graph_step *step);
/* What a collective moves: "attention.In", "dRows". */
const char *emit_moved_name(const struct emit *emit, const struct graph_step *step);
/* The array that an op waits for: "attention.Q", "mlp.dOut"; what goes from slot to slot is "x",
 * and "dx". */
const char *emit_value_name(const struct emit *emit, struct graph_value value);

#endif
