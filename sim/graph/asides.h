/*
 * asides.h: kernels that a framework runs in addition to the kernels of an op. A framework without
 * a compiler adds gradients of biases up in a separate kernel. FSDP copies gradients of weights
 * into the array that it reduces, and weights around their gather. Kernels of their own add
 * gradients of microbatches up. Autocast casts operands of products. Flash attention of rows
 * without padding stands between copies, and autograd joins gradients of parts of one result by
 * one.
 */
#ifndef SIM_GRAPH_ASIDES_H
#define SIM_GRAPH_ASIDES_H

#include "sim/graph/op.h"

/* The copies around flash attention of rows without padding, in a pass of the attention. It is
 * empty without such copies, and for other ops. */
struct work graph_pads_work(const struct graph_sharded *sharded, const struct graph_op *op,
                            bool backward);

/* The copy that joins gradients of parts of one result, such as Q, K and V of one product. It is
 * empty where kernels write the parts to their place. */
struct work graph_parts_work(const struct graph_sharded *sharded, const struct graph_op *op);

/* The sums over tokens of gradients of results whose columns have biases. It is empty where the
 * kernels of the product compute them. */
struct work graph_biases_work(const struct graph_sharded *sharded, const struct graph_op *op);

/* Autocast's casts of inputs in fp32 that products multiply in 16 bits; backward those of the
 * gradients of the inputs. It is empty where a kernel before writes 16 bits. */
struct work graph_input_casts_work(const struct graph_sharded *sharded, const struct graph_op *op,
                                   bool backward);

/* Autocast's casts of weights in fp32; backward those of the gradients of the weights. It is empty
 * for weights in 16 bits. */
struct work graph_weight_casts_work(const struct graph *graph, const struct graph_op *op,
                                    bool backward);

/* The sums of gradients of matrices and tables with those of earlier microbatches. It is empty
 * where the kernels of the product add. */
struct work graph_sums_work(const struct graph *graph, const struct graph_op *op);

/* The copies of gradients of weights between the product and the reduction. */
struct work graph_copies_work(const struct graph *graph, const struct graph_op *op);

/* The casts and copies of sharded weights around their gather, forward or backward. */
struct work graph_shards_work(const struct graph *graph, const struct graph_op *op, bool backward);

/* The kernels of a pass that op_is_aside(), of casts to fp8 none. */
struct work graph_aside_work(const struct graph_sharded *sharded, const struct graph_op *op,
                             enum op_pass pass, bool backward);

#endif
