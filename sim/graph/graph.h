/*
 * graph.h: what a layer of a model computes, written once: tensors in the book's notation, and ops
 * between them. Everything else is derived, by passes from constant input to one product each:
 *
 *   shard.h     collectives from shardings: the four cases of a product, and sums that stay due
 *   backward.h  gradients in their order, and weights whose gradients are partial sums
 *   remat.h     what the backward pass reads; of it what is kept, and what is computed again
 *   steps.h     computes and collectives of a pass, in order
 *   live.h      from which step to which each value lies in memory
 *
 * A block (block.h, workloads/blocks) writes tensors and ops through the functions below. A kind
 * of op (op.h, workloads/ops) knows what an op asks of a chip, what it reads and what it moves.
 *
 * Not in the graph: how weights are gathered and reduced by buckets, with norms' weights and biases
 * of the layer, which is about how often and when, once for all blocks.
 */
#ifndef SIM_GRAPH_GRAPH_H
#define SIM_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/graph/terms.h"

enum {
    GRAPH_TENSORS_MAX = 64,
    GRAPH_OPS_MAX = 32,
    GRAPH_ARRAYS_MAX = 4, /* Inputs of an op, its weights, its outputs. */
    GRAPH_BLOCKS_MAX = 2,
};

/* The index of a tensor, or of an op. */
typedef uint8_t tensor;
static const uint8_t GRAPH_NONE = UINT8_MAX;

enum graph_role {
    GRAPH_ACTIVATION,
    GRAPH_WEIGHT,
    GRAPH_STATISTIC, /* One number a row, for the backward pass. */
    GRAPH_CACHE,     /* Keys and values of earlier tokens. */
};

struct graph_tensor {
    struct sharding at;          /* As it lies between ops. */
    struct sharding gradient_at; /* The same of its gradient. */
    enum graph_role role;
    enum format format, gradient;   /* In HBM, and of its gradient. */
    enum graph_remat kept;          /* The strongest policy that keeps it for the backward pass, */
    enum graph_remat kept_gathered; /* and as its readers have gathered it. */
    bool grouped;                   /* Of a weight: one matrix for each expert. */
    uint8_t made_by;                /* The op, or GRAPH_NONE: it comes from before the layer. */
};

struct block;
struct op_kind;

/* left · weight -> out */
struct graph_product {
    tensor left, weight, out;
};

/* The same values once more for each head. */
struct graph_copy {
    tensor in, out;
};

struct graph_op {
    const struct op_kind *kind;
    const char *name; /* "QKV" */
    uint8_t block;    /* Of the graph. */
    tensor in[GRAPH_ARRAYS_MAX];
    tensor weight[GRAPH_ARRAYS_MAX];
    tensor out[GRAPH_ARRAYS_MAX];
    uint8_t in_count, weight_count, out_count;
    bool fused;     /* The op that reads its result computes it on the way. */
    uint8_t behind; /* The op whose gradients come directly before this op's; GRAPH_NONE: those of
                       the op that is written behind it. */
    union {
        struct graph_matmul {
            struct graph_product product[GRAPH_ARRAYS_MAX];
            struct graph_copy copy[1]; /* What comes to lie with the results. */
            uint8_t product_count, copy_count;
            bool joined;      /* The columns of all weights are one product. */
            bool one_kernel;  /* Both gradients come from one. */
            enum format math; /* Of the products. */
        } matmul;
        struct graph_map {
            uint64_t flop, flop_backward; /* Of an element of the result. */
            bool reads_inputs;            /* Its gradient does; */
            bool reads_result;            /* or reads its result. */
        } map;
        struct graph_attention {
            tensor turned[2]; /* By position; GRAPH_NONE: none are. */
        } attention;
        struct graph_exchange {
            struct sharding sent; /* By all ranks together. */
        } exchange;
        struct graph_sort {
            bool sums; /* Rows are added up; else each is copied to where it is wanted. */
        } sort;
    } as;
};

/* A block's ops in the graph. */
struct graph_span {
    const struct block *block;
    uint8_t first, count;
    tensor out;
};

struct graph {
    const struct graph_terms *terms; /* Lives as long as the graph. */
    struct graph_tensor tensor[GRAPH_TENSORS_MAX];
    uint8_t tensor_count;
    struct graph_op op[GRAPH_OPS_MAX];
    uint8_t op_count;
    struct graph_span block[GRAPH_BLOCKS_MAX];
    uint8_t block_count;
    tensor stream; /* The residual stream before the block, */
    tensor added;  /* and what the block before adds to it. */
};

/* --- What blocks are written with. ---
 *
 * Tensors are text in the notation, "Q[B_ZX, N_Y, H]". Axes that the mesh does not have fall away,
 * of weights X too where parameters are not split. A name alone, "Out", lies as arrays between
 * blocks do: [B_ZX, D_Y], or [B_ZXY, D] where tp splits tokens.
 *
 * What a function makes has the format of the activations, gradients as well. Results of matmuls
 * are kept by `big_matmuls` and weaker policies, all else is kept without remat only. What differs
 * is said behind. */

/* The layer's input, or the sum of the stream and what the block before gave: what a block's norm
 * reads. The sum is fused with the norm. */
tensor graph_residual(struct graph *graph);
/* The result of the block before, alone: the input of a block without norm. */
tensor graph_block_input(struct graph *graph);
/* Ends a block. */
void graph_block_output(struct graph *graph, tensor out);

/* Norms of `in`, each with a weight for each of its columns. */
struct graph_op *graph_norm(struct graph *graph, const char *name);
tensor graph_normed(struct graph *graph, tensor in, const char *text);

/* Products of one kernel; the first two add to the op that was begun last. */
struct graph_op *graph_matmul(struct graph *graph, const char *name);
tensor graph_product(struct graph *graph, tensor left, const char *weight, const char *text);
/* A copy of `in`, to lie with the products' results. */
tensor graph_copied(struct graph *graph, tensor in, const char *text);

/* An op of another kind, with `count` inputs; and one result more. */
struct graph_op *graph_op(struct graph *graph, const struct op_kind *kind, const char *name,
                          uint8_t count, const tensor *in);
tensor graph_result(struct graph *graph, const char *text);
tensor graph_statistic(struct graph *graph, const char *text);
struct sharding graph_sharding(const struct graph *graph, const char *text, enum graph_role role);

/* Formats of a tensor and its gradient; policies that keep it, and keep it gathered; and how its
 * gradient lies, where not as itself. */
void graph_set_formats(struct graph *graph, tensor of, enum format format, enum format gradient);
/* What a linear layer alone reads is written in its format; over tp it travels first. */
void graph_set_linear(struct graph *graph, tensor of);
void graph_set_kept(struct graph *graph, tensor of, enum graph_remat kept,
                    enum graph_remat kept_gathered);
void graph_set_gradient(struct graph *graph, tensor of, const char *text);
/* Sums over tp that are left due until another op reduces them. */
void graph_set_due(struct graph *graph, tensor of);
/* Gradients of ops from `first` to the last come behind those of `behind`, which is written yet. */
void graph_set_behind(struct graph *graph, uint8_t first, uint8_t end, uint8_t behind);

/* --- Sizes --- */

/* Elements on one chip: of an array as it lies; gathered over axes; of weights over X as well. */
uint64_t graph_elements(const struct graph *graph, const struct sharding *array, uint32_t gathered);
uint64_t graph_weight_elements(const struct graph *graph, tensor weight);

/* The op that makes a tensor, or NULL: it comes from before the layer. */
static inline const struct graph_op *graph_maker(const struct graph *graph, tensor of)
{
    uint8_t const by = graph->tensor[of].made_by;
    return by == GRAPH_NONE ? NULL : &graph->op[by];
}

/* The op that whoever reads a tensor computes on the way, or NULL. */
static inline const struct graph_op *graph_fused(const struct graph *graph, tensor of)
{
    const struct graph_op *maker = graph_maker(graph, of);
    return maker != NULL && maker->fused ? maker : NULL;
}

static inline uint8_t graph_index(const struct graph *graph, const struct graph_op *op)
{
    return (uint8_t)(op - graph->op);
}

#endif
