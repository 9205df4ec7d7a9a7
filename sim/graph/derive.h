/*
 * derive.h: a part of a model with every product that does not depend on a request: all products
 * but the steps of a pass (steps.h), and what follows from them.
 */
#ifndef SIM_GRAPH_DERIVE_H
#define SIM_GRAPH_DERIVE_H

#include "sim/graph/block.h"
#include "sim/graph/remat.h"

struct graph_derived {
    struct graph graph;
    struct graph_sharded sharded; /* Points to the graph, so the whole is not to be copied. */
    struct graph_backward backward;
    struct graph_kept kept;
};

/* Writes a part, as block_write_part() does, and derives the rest. `terms` have to live as long as
 * the result. */
void graph_derive(const struct graph_terms *terms, const struct model *model, enum block_part part,
                  struct graph_derived *ret_derived);

#endif
