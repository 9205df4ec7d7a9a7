/* attention.h: what flash attention asks of a chip, alone and as parts of a ring. */
#ifndef WORKLOADS_OPS_ATTENTION_H
#define WORKLOADS_OPS_ATTENTION_H

#include "sim/graph/op.h"

/* Beside the values that a part of the keys has given, of a row's scores: their maximum and sum. */
enum { ATTENTION_STATISTICS = 2 };

/* Bytes of K and V of whole sequences, as they are read. */
uint64_t attention_key_bytes(const struct graph *graph, const struct graph_op *op);

/* FLOP of attention in inference, an even share for each rank; the rank with the longest sequences
 * has more. `scores`: of one head, over all sequences on all ranks. `columns`: of a key and a value
 * together. */
uint64_t attention_served_flop(const struct graph *graph, units_wide scores, uint64_t columns);

/* FLOP of the vector unit for a score: its softmax, and where scores are capped the cap before it.
 * Backward the scores are capped again. */
uint64_t attention_score_flop(const struct graph *graph, bool backward);

/* As members of op_kind. */
void attention_work(const struct graph_sharded *sharded, const struct graph_op *op,
                    enum op_pass pass, struct work *ret_work);
void attention_spare(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_spare *ret_spare);
uint8_t attention_reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                        tensor ret_reads[OP_READS_MAX]);

#endif
