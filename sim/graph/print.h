/* print.h: each product of the passes as text, in the notation of the book. */
#ifndef SIM_GRAPH_PRINT_H
#define SIM_GRAPH_PRINT_H

#include "sim/base/text.h"
#include "sim/graph/count.h"
#include "sim/graph/live.h"

/* Ops as they are written, and their collectives over tp. */
void graph_print(const struct graph_sharded *sharded, struct text *text);
/* Gradients in their order; sums that stay due; weights whose gradients lie in parts. */
void graph_print_backward(const struct graph_sharded *sharded,
                          const struct graph_backward *backward, struct text *text);
/* What is kept, and what is computed again. */
void graph_print_kept(const struct graph_sharded *sharded, const struct graph_kept *kept,
                      struct text *text);
/* The steps of a pass. */
void graph_print_steps(const struct graph_sharded *sharded, const struct graph_steps *steps,
                       struct text *text);
/* From which step to which each value lies in memory. */
void graph_print_live(const struct graph_sharded *sharded, const struct graph_live *live,
                      struct text *text);
/* Sums over the steps of a layer. */
void graph_print_count(const struct graph_count *count, struct text *text);

#endif
