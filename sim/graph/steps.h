/*
 * steps.h: computes and collectives of a pass of one layer, in order.
 *
 * Forward: ops as they are written; what is gathered for later ops is gathered as soon as it is
 * made. Backward: gradients in their order; repetitions that an input's gradient waits for come at
 * the start of their block; the others, and what is gathered again, behind the gradients of the
 * op that ends the block, or before that of its weights, if it reads them; where the op has no
 * gradient of weights apart, at the block's start too. The exchange with experts that a gradient
 * begins with goes ahead of repetitions.
 */
#ifndef SIM_GRAPH_STEPS_H
#define SIM_GRAPH_STEPS_H

#include "sim/graph/remat.h"

enum { GRAPH_STEPS_MAX = 128 };

/* Pipelines may split a backward pass: gradients of inputs, and later gradients of weights. */
enum graph_half { GRAPH_WHOLE, GRAPH_INPUT_HALF, GRAPH_WEIGHT_HALF };

struct graph_request {
    bool backward;
    enum graph_half half; /* The part of a backward pass. */
    bool sums_partial;    /* Gradients of weights that lie in parts are summed behind the pass. */
    bool again;           /* The forward pass as a whole once more, for a backward pass to come. */
    bool weights_held;    /* An earlier pass has gathered the weights. */
    bool gradients_stay;  /* Another pass reduces the gradients of weights. */
};

struct graph_step {
    bool is_compute;
    uint8_t op;          /* The op that the step belongs to. */
    enum op_pass pass;   /* The pass of the op. */
    tensor of;           /* The tensor that is moved, or whose gradients are added up. GRAPH_NONE:
                            the step is the op's own compute or collective. */
    struct work work;    /* The work of a compute. */
    struct op_move move; /* The move of a collective. */
    struct graph_value read[GRAPH_VALUES_MAX], written[GRAPH_VALUES_MAX];
    uint8_t read_count, written_count;
};

struct graph_steps {
    struct graph_request request;
    struct graph_step step[GRAPH_STEPS_MAX];
    uint32_t count;
    uint32_t again, repeated; /* Steps from `again` to before `repeated` repeat the layer, where
                                 remat repeats it before all gradients. */
};

void graph_steps(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 const struct graph_kept *kept, struct graph_request request,
                 struct graph_steps *ret_steps);

/* The tensor whose value, or gradient, stands for the value or gradient of `of`: an op without
 * compute and collective hands on what it reads (values.c). */
tensor graph_value_at(const struct graph_sharded *sharded, tensor of, bool gradient);

bool graph_step_writes(const struct graph_step *step, struct graph_value value);
/* The first value that `reader` reads and `writer` writes; NULL: none. */
const struct graph_value *graph_step_met(const struct graph_step *reader,
                                         const struct graph_step *writer);

/* What a collective moves, by name: "moe.Logits SharedLogit", "attention.dQKNorm". */
struct graph_label graph_step_label(const struct graph *graph, const struct graph_step *step);

/* Whether an op has neither compute nor collective: steps that read its result read its inputs. */
bool graph_is_silent(const struct graph_sharded *sharded, uint8_t op);

/* Whether an op without compute and collective makes an array of its own: its inputs lie there side
 * by side (values.c). */
bool graph_makes_silently(const struct graph_sharded *sharded, uint8_t op);

/* Whether a collective sums parts of weights' gradients. */
static inline bool graph_step_sums_weights(const struct graph *graph, const struct graph_step *step)
{
    return !step->is_compute && step->of != GRAPH_NONE &&
           graph->tensor[step->of].role == GRAPH_WEIGHT;
}

/* Fills in what a step reads and writes. All else of the step is set (values.c). */
void graph_step_values(const struct graph_sharded *sharded, const struct graph_kept *kept,
                       struct graph_step *step);

#endif
