/*
 * remat.h: what the backward pass reads of the forward pass; of that, what is kept, and what is
 * computed again.
 *
 * With `none`, `norms` and `big_matmuls` an op is repeated in the backward pass of the last block
 * that reads its result, if the result is not kept. With `block` all that is read is repeated
 * before a layer's backward pass: the rest is dead code. With `layer` the whole forward pass is.
 */
#ifndef SIM_GRAPH_REMAT_H
#define SIM_GRAPH_REMAT_H

#include "sim/graph/backward.h"

/* How much of a tensor is read, or kept. */
enum graph_part { GRAPH_NOTHING, GRAPH_OWN, GRAPH_GATHERED };

struct graph_kept {
    enum graph_part read[GRAPH_TENSORS_MAX]; /* By gradients, and by what is repeated for them. */
    enum graph_part kept[GRAPH_TENSORS_MAX]; /* A chip's own part: of the tensor that it lies in. */
    bool offloaded[GRAPH_TENSORS_MAX];       /* What is kept is kept in the memory of the host. */
    bool again[GRAPH_OPS_MAX];
    bool for_input[GRAPH_OPS_MAX]; /* The gradient of an input, or a gradient of the op that ends
                                      the block, waits for the repetition. Else only gradients of
                                      weights wait for it. */
    uint8_t block[GRAPH_OPS_MAX];  /* The last block whose part of the backward pass waits for the
                                      repetition: the op's own, or one behind. */
};

void graph_remat(const struct graph_sharded *sharded, const struct graph_backward *backward,
                 struct graph_kept *ret_kept);

/* How much of a tensor is there when the backward pass begins, wherever it lies. */
enum graph_part graph_kept_part(const struct graph *graph, const struct graph_kept *kept,
                                tensor of);

/* Bytes that a layer keeps from its forward to its backward pass. */
uint64_t graph_kept_bytes(const struct graph_sharded *sharded, const struct graph_kept *kept);
/* The part of these bytes that lists of names keep in the memory of the host. */
uint64_t graph_offloaded_bytes(const struct graph_sharded *sharded, const struct graph_kept *kept);
/* Bytes of the arrays that frameworks keep in addition to tensors (graph_set_framework()). */
uint64_t graph_framework_bytes(const struct graph *graph);

/* How a repeated op is computed. */
enum op_pass graph_again_pass(const struct graph_sharded *sharded, const struct graph_kept *kept,
                              uint8_t op);

#endif
