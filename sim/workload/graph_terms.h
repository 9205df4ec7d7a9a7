/* graph_terms.h: the one way from a step's ranks and sizes (struct local) to a layer's graph. */
#ifndef SIM_WORKLOAD_GRAPH_TERMS_H
#define SIM_WORKLOAD_GRAPH_TERMS_H

#include "sim/graph/terms.h"

struct local;

/* What a layer's graph is written for. False: the layer has what no block describes yet, which is
 * context parallelism and unfused scores. */
bool graph_terms_of(const struct local *local, uint64_t layer, struct graph_terms *ret_terms);

#endif
