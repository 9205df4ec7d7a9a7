/*
 * shard.h: which collectives follow from shardings. A product gathers its left operand and reduces
 * its result by the four cases (mesh/sharding.h, the book, chapter 3); any other op gathers what
 * its result does not have split, and reduces a sum that was left due. In the backward pass a
 * gather becomes a reduction, and a reduction a gather.
 *
 * Over tp and tp_d alone: weights are gathered by buckets, not by ops.
 */
#ifndef SIM_GRAPH_SHARD_H
#define SIM_GRAPH_SHARD_H

#include "sim/graph/graph.h"

/* Axes, a bit each. */
struct graph_shard {
    uint32_t gather;     /* Axes over which the inputs are gathered. */
    uint32_t scatter;    /* Axes over which sums are reduced into parts, as they split the results.
                          */
    uint32_t all_reduce; /* Axes over which sums are reduced so that every rank has all. */
};

struct graph_sharded {
    const struct graph *graph;
    struct graph_shard op[GRAPH_OPS_MAX];
    uint32_t gathered[GRAPH_TENSORS_MAX]; /* Axes over which some reader of the tensor gathers it.
                                           */
    uint32_t summed[GRAPH_TENSORS_MAX];   /* Axes over which the gradient that a reader gives is a
                                             sum that every rank gets. */
    uint32_t whole[GRAPH_TENSORS_MAX];    /* Ranks whose parts of a sequence lie here at once, as
                                             some op reads whole sequences. 0: no op does. */
};

/* Collectives of a product, over tp and tp_d alone. A result that would come out more split than it
 * is wanted has its left operand gathered instead, which is as many bytes and comes before. */
struct graph_shard graph_product_shard(const struct graph *graph,
                                       const struct graph_product *product);

void graph_shard(const struct graph *graph, struct graph_sharded *ret_sharded);

static inline const struct graph_shard *graph_shard_of(const struct graph_sharded *sharded,
                                                       const struct graph_op *op)
{
    return &sharded->op[graph_index(sharded->graph, op)];
}

/* Axes over which a result of an op is a sum that is scattered; axes over which it is a sum that
 * every rank gets. */
uint32_t graph_scattered(const struct graph_sharded *sharded, const struct graph_op *op, tensor of);
uint32_t graph_all_reduced(const struct graph_sharded *sharded, const struct graph_op *op,
                           tensor of);

/* Elements of a tensor as its readers see it. */
uint64_t graph_gathered_elements(const struct graph_sharded *sharded, tensor of);

#endif
