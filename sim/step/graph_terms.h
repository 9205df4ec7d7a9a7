/* graph_terms.h: the one way from a step's ranks and sizes (struct ranks) to a layer's graph. */
#ifndef SIM_STEP_GRAPH_TERMS_H
#define SIM_STEP_GRAPH_TERMS_H

#include "sim/graph/terms.h"

struct ranks;

/* What a layer's graph is written for. */
void graph_terms_of(const struct ranks *ranks, uint64_t layer, struct graph_terms *ret_terms);

/* The same layer with the model's window, or without one. */
void graph_terms_window(const struct ranks *ranks, bool windowed, struct graph_terms *terms);

/* What the graph of an end of a model, or of a module's own, is written for: whatever remat is, no
 * more of it is repeated than norms. `used_before`: of the embedding, or of the head, another use
 * has left its gradient in the same backward pass. So has any other use of the head than the
 * model's own, and of the embedding in modules any but the last one's. */
void graph_terms_of_end(const struct ranks *ranks, bool used_before, struct graph_terms *ret_terms);
/* Whether one has when the embedding's own gradient comes. */
bool graph_terms_embedding_used(const struct ranks *ranks);

#endif
