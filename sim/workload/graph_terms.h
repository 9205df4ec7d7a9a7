/* graph_terms.h: the one way from a step's ranks and sizes (struct local) to a layer's graph. */
#ifndef SIM_WORKLOAD_GRAPH_TERMS_H
#define SIM_WORKLOAD_GRAPH_TERMS_H

#include "sim/graph/terms.h"

struct local;

/* What a layer's graph is written for. */
void graph_terms_of(const struct local *local, uint64_t layer, struct graph_terms *ret_terms);

/* Whether the graph's op of attention is the step's. No block describes context parallelism and
 * unfused scores yet: then all of the graph is, but that op and what it makes. */
bool graph_terms_attend(const struct local *local);

#endif
