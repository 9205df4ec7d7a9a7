/* attention.h: attention of whole heads: its projections, and what lies between them. */
#ifndef WORKLOADS_BLOCKS_ATTENTION_H
#define WORKLOADS_BLOCKS_ATTENTION_H

#include "sim/graph/block.h"
#include "sim/graph/write.h"
#include "sim/model/model.h"

/* Q, K and V; and of these what is rotated by position. */
struct attention_heads {
    tensor q, k, v;
    struct graph_rotated rotated;
};

/* Q, K and V of an input, as products of the last op. */
struct attention_heads attention_products(struct graph *graph, const struct model *model,
                                          tensor in);

/* A: what the heads give, that W_O projects. */
tensor attention_between(struct graph *graph, const struct model *model,
                         struct attention_heads heads);

/* `explain` of a block: windows, and layers that borrow keys. */
void attention_explain(const struct graph *layer, const struct layer_kinds *kinds,
                       struct strbuf *text);

#endif
