/*
 * attention_cores.h: cores that work apart share the sequences and heads of attention to a cache.
 */
#ifndef WORKLOADS_OPS_ATTENTION_CORES_H
#define WORKLOADS_OPS_ATTENTION_CORES_H

#include "workloads/ops/attention_scores.h"

/* What attends, and to what. */
struct attention_served {
    const struct graph *graph;
    const struct graph_op *op;
    struct attention_shape shape;
    const struct graph_served *decodes, *prompts; /* Sequences that the op is for. */
};

/* Adds the products of a number of rows of queries for each sequence, or of all prompts. */
void attention_served_products_add(const struct attention_served *of,
                                   const struct graph_served *served, uint64_t rows,
                                   struct work *work);

/* Adds what reading rows of an input asks for: bytes of HBM, and FLOP that widen keys which the
 * cache has in a narrower format. Rows that were gathered from a cache have its scales. */
void attention_rows_read(const struct graph *graph, tensor in, uint64_t rows, struct work *work);

/* Adds to a work what further tiles read and what parts leave to be merged, and the share of time
 * in which cores are idle. Cores multiply whole tiles. `besides_bytes`: what the work reads and
 * writes besides keys and values. */
void attention_cores_share(const struct attention_served *of, uint64_t besides_bytes,
                           struct work *work);

#endif
