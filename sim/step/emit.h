/*
 * emit.h: the passes of a part of a model as ops of a template: each step of its graph
 * (sim/graph/steps.h) is one op. Internal to sim/step.
 *
 *   stream  by the collective's kind and ranks
 *   needs   whoever wrote a value that the step reads; chunk by chunk where a product is coupled
 *           with the collective that brings its operand or takes its result
 *   memory  each value from the step that writes it to the last one that reads it (graph/live.h)
 *
 * Gathers and reductions of weights by buckets, updates and copies stand around it
 * (lower_weights.c).
 */
#ifndef SIM_STEP_EMIT_H
#define SIM_STEP_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/graph/backward.h"
#include "sim/graph/block.h"
#include "sim/program/program.h"
#include "sim/step/lower.h"

/* How a block of an end uses its weights, which are one bucket. */
struct emit_use {
    const char *prefix;   /* Before the block's own: "mtp." of a module's embedding. */
    struct bucket bucket; /* Weights that are reduced and updated together. */
    struct bucket read;   /* The part of the weights that is gathered. */
    bool gathers;         /* The weights are gathered before an op reads them. */
    bool ahead;           /* The gather lies at the start of the block in the backward pass, too. */
    bool gives;           /* Gathered weights are given back behind the op that reads them. */
    bool opens;           /* The use is the first of a backward pass to add to the gradient. */
    bool closes; /* The use is the last of a backward pass, after which the gradient is reduced. */
    bool last;   /* The pass is of the last microbatch that adds to the gradient. */
    uint64_t autograd_elements; /* What frameworks write before it is added to the gradient. */
};

/* An end of a model, or a module's own part. */
struct emit_end {
    enum block_part part;
    bool used_before;                      /* struct step_part */
    bool shares_input;                     /* Other ops keep the input of the end. */
    struct emit_use use[GRAPH_BLOCKS_MAX]; /* By block. */
};

/* The forward pass of the end; its backward pass, or a half of the backward pass. */
void emit_end(struct lower *lower, const struct emit_end *end, bool backward);

/* The forward pass of the layer that the template is of; the backward pass, or its half. */
void emit_forward(struct lower *lower);
void emit_backward(struct lower *lower);

/* What comes before a reduction that stands apart from the passes: copies of all gradients of the
 * module's weights, and of a layer's the sums of what ranks of tp have parts of. */
void emit_reduction(struct lower *lower, enum lower_module module);

/* Emits the cast of a layer's weights, where they stay in the format of the products until the next
 * update. */
void emit_weights_cast(struct lower *lower, enum lower_module module);

/* The streams on which collectives of the model's graphs lie. */
void emit_streams(struct lower *lower, bool ret_used[LOWER_STREAM_COUNT]);

/* Bytes that the layer keeps in the memory of the host from its forward to its backward pass. */
uint64_t emit_offloaded_bytes(struct lower *lower);

#endif
