#include "sim/graph/derive.h"

void graph_derive(const struct graph_terms *terms, const struct model *model, enum block_part part,
                  struct graph_derived *ret_derived)
{
    struct graph_derived *derived = ret_derived;
    block_write_part(terms, model, part, &derived->graph);
    graph_shard(&derived->graph, &derived->sharded);
    graph_backward(&derived->sharded, &derived->backward);
    graph_remat(&derived->sharded, &derived->backward, &derived->kept);
}
