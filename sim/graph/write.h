/*
 * write.h: what blocks are written with.
 *
 * Tensors are text in the notation, "Q[B_ZX, N_Y, H]". X splits the batch and the parameters, Y is
 * tp, Z is dp in addition to fsdp, W is tp_d. Axes that the mesh does not have fall away, of
 * weights X where parameters are not split, and W of all but D where terms->cache does not say so.
 * A name alone, "Out", lies as arrays between blocks do: [B_ZX, D_WY], or [B_ZXY, D_W] where tp
 * splits tokens.
 *
 * A new tensor and its gradient have the format of the activations. Results of products are kept by
 * `big_matmuls` and weaker policies, all else without remat only. The functions graph_set_...()
 * say what differs.
 */
#ifndef SIM_GRAPH_WRITE_H
#define SIM_GRAPH_WRITE_H

#include "sim/graph/graph.h"

/* --- The stream --- */

/* What a block's norm reads: the residual stream with the result of the block before. The norm's
 * kernel adds them up. */
tensor graph_residual(struct graph *graph);
/* What a block of a layer reads: the norm of the stream; of a model without norms before its
 * blocks, the stream. */
tensor graph_layer_input(struct graph *graph);
/* What a block without norm reads: the result of the block before. */
tensor graph_block_input(struct graph *graph);
/* The stream as it comes from other parts, which read it too. It is kept. */
tensor graph_shared_input(struct graph *graph);
/* The block's result, which ends it. */
void graph_block_output(struct graph *graph, tensor out);

/* --- Ops. What follows one adds to it. --- */

/* Norms in one kernel; and a norm of the kernel over the last dimension, with a weight for each
 * column, or with the weights that `weight` says. */
struct graph_op *graph_norm(struct graph *graph, const char *name);
tensor graph_normed(struct graph *graph, tensor in, const char *text);
tensor graph_normed_by(struct graph *graph, tensor in, const char *weight, const char *text);

/* The input of a linear layer, as its products read it. Where the step has a recipe of fp8, an op
 * called `name` casts the array; else the array itself is returned. */
tensor graph_cast(struct graph *graph, tensor in, const char *name);

/* Rows of tables: of tokens, and by position, which are added. They are kept. */
tensor graph_lookup(struct graph *graph, const char *table, const char *by_position,
                    const char *text);

/* Products in one kernel; a product of the kernel; a copy of `in` that is written with the results.
 */
struct graph_op *graph_matmul(struct graph *graph, const char *name);
/* Products head by head have a kernel in a format of its own, which the graph's formats say. */
struct graph_op *graph_batched_matmul(struct graph *graph, const char *name);
tensor graph_product(struct graph *graph, tensor left, const char *weight, const char *text);
tensor graph_copied(struct graph *graph, tensor in, const char *text);
/* A product with a weight that an op before has, too: both read it, and it lies there once. */
tensor graph_product_again(struct graph *graph, tensor left, tensor weight, const char *text);
/* One more product, which is added to the result of the last one. */
void graph_product_added(struct graph *graph, tensor left, const char *weight);

/* Weights of the block in no matrix and no norm: "Sinks[N_Y]"; and whether each rank of tp has all
 * of them. */
void graph_vector(struct graph *graph, const char *text, bool whole);

/* An op of any kind, with its inputs; a result of the op; a result that is one fp32 a row. */
struct graph_op *graph_op(struct graph *graph, const struct op_kind *kind, const char *name,
                          uint8_t count, const tensor *in);
tensor graph_result(struct graph *graph, const char *text);
tensor graph_statistic(struct graph *graph, const char *text);
/* An op that rotates up to two tensors by position as it reads them; GRAPH_NONE: none. */
struct graph_op *graph_rotating(struct graph *graph, const struct op_kind *kind, const char *name,
                                uint8_t count, const tensor *in, struct graph_rotated rotated);
static inline struct graph_rotated graph_rotated(tensor one, tensor other)
{
    return (struct graph_rotated){.of = {one, other}};
}
/* A function of each element, whose gradient `map` says the cost of. The product that reads the
 * result computes it on the way and nothing is kept of it; where the stack has kernels for
 * functions (graph_functions_apart), one of its own does, and the result is kept as every input of
 * a product is. `formula` as that of op_notation. */
tensor graph_function(struct graph *graph, const char *name, const char *formula,
                      const struct graph_map *map, uint8_t count, const tensor *in,
                      const char *text);
bool graph_functions_apart(const struct graph *graph);
/* A result whose rows stay for later passes, in the format of the cache. */
tensor graph_cached(struct graph *graph, const char *text);
/* Rows of a cache that an earlier layer has written: nothing in this layer gives them. */
tensor graph_borrowed(struct graph *graph, const char *text);

/* --- What differs --- */

/* Formats of a tensor and of its gradient. */
void graph_set_formats(struct graph *graph, tensor of, enum format format, enum format gradient);
/* Only linear layers read the tensor: it is written in their format, or, if tp gathers it first, in
 * the format of activations. */
void graph_set_linear(struct graph *graph, tensor of);
/* The strongest policies that keep the tensor, and that keep it as its readers gather it. */
void graph_set_kept(struct graph *graph, tensor of, enum graph_remat kept,
                    enum graph_remat kept_gathered);
/* The weight's gradient is added to what another use of the weight has left in the same backward
 * pass. */
void graph_set_used(struct graph *graph, tensor weight);
/* A framework keeps this array of the tensor too. It counts where the policy counts frameworks. */
void graph_set_framework(struct graph *graph, tensor of, enum graph_framework framework,
                         enum format format, enum graph_remat kept);
/* Whether the matrix of the last product has a bias for each of its columns. */
void graph_set_biased(struct graph *graph, bool biased);
/* Whether the result of the last product is further columns of the one before, so that both are one
 * product; and the same of all products of the last op. */
void graph_set_joined(struct graph *graph, bool joined);
void graph_set_all_joined(struct graph *graph);
/* A weight is stored as further columns of the one before. */
void graph_set_columns_of_previous(struct graph *graph, tensor weight);
/* How the tensor's gradient lies. */
void graph_set_gradient(struct graph *graph, tensor of, const char *text);
/* The tensor is a sum over tp that stays due: the op that reads it reduces its own result. */
void graph_set_due(struct graph *graph, tensor of);
/* Names of the last op's gradients: of its inputs, and of its weights. */
void graph_set_names(struct graph *graph, const char *input_name, const char *weight_name);
/* What collectives over tp call the tensor. */
void graph_set_moved_as(struct graph *graph, tensor of, const char *name);
/* Gradients of the ops from `first` up to `end` come directly behind the gradients of `behind`. */
void graph_set_behind(struct graph *graph, uint8_t first, uint8_t end, uint8_t behind);

#endif
