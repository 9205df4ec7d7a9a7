/* attention.h: what flash attention asks of a chip, alone and as parts of a ring. */
#ifndef WORKLOADS_OPS_ATTENTION_H
#define WORKLOADS_OPS_ATTENTION_H

#include "workloads/ops/attention_scores.h"

/* Bytes of K and V of whole sequences, as they are read. */
uint64_t attention_key_bytes(const struct graph *graph, const struct graph_op *op);

/* As members of op_kind. */
void attention_work(const struct graph_sharded *sharded, const struct graph_op *op,
                    enum op_pass pass, struct work *ret_work);
void attention_spare(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_spare *ret_spare);
uint8_t attention_reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                        tensor ret_reads[OP_READS_MAX]);

#endif
