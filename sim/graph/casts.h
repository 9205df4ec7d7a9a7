/*
 * casts.h: kernels that bring what a linear layer multiplies to fp8, as the recipe of a step says:
 * inputs by an op of their own (workloads/ops/quantise.c); gradients of results before the
 * gradients of inputs and weights; second arrays of what tp has gathered.
 */
#ifndef SIM_GRAPH_CASTS_H
#define SIM_GRAPH_CASTS_H

#include "sim/graph/op.h"

/* Whether the products of an op multiply what kernels beside them have cast. */
bool graph_casts(const struct graph *graph, const struct graph_op *op);

/* The kernels for an array. Of one that tp gathers, the first array alone. */
struct recipe_cast graph_cast_of(const struct graph *graph, enum recipe_array array, bool travels);
/* Adds kernels over so many elements to a work. */
void graph_cast_add(struct recipe_cast cast, uint64_t elements, struct work *work);

/* The gradients of an op's results as its own, before they are gathered. */
struct work graph_cast_gradients(const struct graph_sharded *sharded, const struct graph_op *op);
/* Second arrays, of inputs and of gradients of results that tp has gathered. */
struct work graph_cast_seconds(const struct graph_sharded *sharded, const struct graph_op *op);

/* The format that a tensor travels in from an op or to it, or its gradient. Where an array is cast
 * behind its gather, it travels in the format of activations; the cast stands before it all the
 * same, over all that is gathered, and takes as long. */
enum format graph_cast_format(const struct graph *graph, const struct graph_op *op, tensor of,
                              bool gradient);

/* The weights of an op, by a pass. Nothing where they stay from step to step. */
struct work graph_cast_by_pass(const struct graph *graph, const struct graph_op *op, bool backward);

/* All weights that products of the part multiply in fp8, as these read them on one chip. */
struct work graph_cast_weights(const struct graph *graph);

#endif
