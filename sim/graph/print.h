/*
 * print.h: what is derived of a graph as text, in the notation of the book, for people: figures are
 * rounded. FLOP are of matmuls; with a v, of the vector unit. A value with a star is whole:
 * gathered for its readers, or not reduced yet.
 */
#ifndef SIM_GRAPH_PRINT_H
#define SIM_GRAPH_PRINT_H

#include "sim/base/strbuf.h"
#include "sim/graph/count.h"
#include "sim/graph/live.h"

/* Tensors, with their shape and bytes on a chip, and the strongest remat policy that keeps them or
 * which weights have biases; weights in no matrix. */
void graph_print_tensors(const struct graph_sharded *sharded, struct strbuf *text);
/* Ops as they are written, and their collectives over tp. */
void graph_print(const struct graph_sharded *sharded, struct strbuf *text);
/* Gradients in their order; sums that stay due; weights whose gradients lie in parts. */
void graph_print_backward(const struct graph_sharded *sharded,
                          const struct graph_backward *backward, struct strbuf *text);
/* What is kept, and what is computed again. */
void graph_print_kept(const struct graph_sharded *sharded, const struct graph_kept *kept,
                      struct strbuf *text);
/* The steps of a pass: what each asks of a chip or moves, what it reads and writes. */
void graph_print_steps(const struct graph_sharded *sharded, const struct graph_steps *steps,
                       struct strbuf *text);
/* From which to which of the steps each value lies in memory, and when most does. */
void graph_print_live(const struct graph_sharded *sharded, const struct graph_live *live,
                      uint32_t steps, struct strbuf *text);
/* Sums over the steps of a layer. */
void graph_print_count(const struct graph_count *count, struct strbuf *text);

/* "big_matmuls"; "never". */
const char *graph_remat_name(enum graph_remat remat);
/* "block"; "block with lists". */
const char *graph_policy_name(const struct graph_policy *policy);

#endif
