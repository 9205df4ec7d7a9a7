/*
 * backward.h: the gradients of a layer in the order in which they are computed: ops from the last
 * to the first, of each the gradients of its weights and of its inputs in the order that is asked
 * for.
 *
 * A gradient may be a sum over ranks that is still due. Where an op is linear in it, nothing has to
 * be summed before: the sum stays due until a gather of the forward pass, which is a ReduceScatter
 * backward, ends it. Gradients of weights that such a sum leaves in parts are added up by one
 * AllReduce of their own.
 */
#ifndef SIM_GRAPH_BACKWARD_H
#define SIM_GRAPH_BACKWARD_H

#include "sim/graph/op.h"

enum { GRAPH_GRADIENTS_MAX = 2 * GRAPH_OPS_MAX };

struct graph_gradient {
    uint8_t op;
    enum op_pass pass;
};

struct graph_backward {
    struct graph_gradient gradient[GRAPH_GRADIENTS_MAX];
    uint32_t count;
    uint32_t due[GRAPH_TENSORS_MAX];    /* Axes that a tensor's gradient is a sum over. */
    uint32_t parts[GRAPH_TENSORS_MAX];  /* Of a weight: ranks that have a part of its gradient. */
    uint8_t readers[GRAPH_TENSORS_MAX]; /* Ops whose gradients of the tensor add up. */
};

void graph_backward(const struct graph_sharded *sharded, struct graph_backward *ret_backward);

/* Where several ops read a tensor: the sum of the gradients that they give. */
struct work graph_gradient_sum(const struct graph_sharded *sharded, tensor of);

/* Weights of a block whose gradients are in parts: elements, ranks that have parts, and the op that
 * gives the last gradient. Ranks 1: no gradient is in parts. */
struct graph_partial {
    uint64_t elements;
    uint32_t ranks;
    enum op_axis axis; /* TP: parts are of tokens that tp splits. HOLDERS: they are of heads. */
    uint8_t last;
};
struct graph_partial graph_partial_of(const struct graph_sharded *sharded,
                                      const struct graph_backward *backward, uint8_t block);

#endif
