/*
 * casts.h: kernels that cast the operands of linear layers to fp8, as the recipe of a step says. An
 * op of its own casts inputs (workloads/ops/quantise.c). Gradients of results are cast before the
 * gradients of inputs and weights. Second arrays are made of arrays that tp has gathered.
 */
#ifndef SIM_GRAPH_CASTS_H
#define SIM_GRAPH_CASTS_H

#include "sim/graph/op.h"

/* Whether the products of an op multiply operands that kernels of their own have cast. */
bool graph_casts(const struct graph *graph, const struct graph_op *op);

/* What a recipe calls an array that the next op casts, by the op that makes the array. An array
 * that an op before reads too is written in the format of that op, whatever makes it. */
enum recipe_array graph_cast_array(const struct graph *graph, tensor of);

/* The kernels that cast an array. If tp gathers the array (`travels`), they write the first array
 * alone; else they also write the second array, where one is wanted. */
struct recipe_cast graph_cast_of(const struct graph *graph, enum recipe_array array, bool travels);
/* Adds the kernels of a cast over `elements` elements to a work. */
void graph_cast_add(struct recipe_cast cast, uint64_t elements, struct work *work);

/* The casts of the gradients of an op's results. They come before the gather of the gradients. */
struct work graph_cast_gradients(const struct graph_sharded *sharded, const struct graph_op *op);
/* The kernels that make second arrays of inputs and of gradients of results, once tp has gathered
 * them. */
struct work graph_cast_seconds(const struct graph_sharded *sharded, const struct graph_op *op);

/* The format in which a tensor, or its gradient, travels to an op or from it. An array that is cast
 * behind its gather travels in the format of activations. The step has the cast of such an array
 * before the gather all the same, over all elements that are gathered, and it takes as long. */
enum format graph_cast_format(const struct graph *graph, const struct graph_op *op, tensor of,
                              bool gradient);

/* The cast of an op's weights in a pass. It is empty where weights are cast once a step. */
struct work graph_cast_by_pass(const struct graph *graph, const struct graph_op *op, bool backward);

/* The cast of all weights of the part that products multiply in fp8, as one chip reads them. */
struct work graph_cast_weights(const struct graph *graph);

#endif
