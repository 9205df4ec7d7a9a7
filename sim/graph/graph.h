/*
 * graph.h: what a part of a model computes, written once: tensors in the book's notation, and ops
 * between them. Parts are its layers and its ends. Everything else is derived, by functions from
 * constant input to one product each:
 *
 *   shard.h     collectives from shardings: the four cases of a product, and sums that stay due
 *   backward.h  gradients in their order, and weights whose gradients are partial sums
 *   named.h     which arrays the policy, and lists of names, keep for the backward pass
 *   remat.h     what the backward pass reads; of it what is kept, and what is computed again
 *   steps.h     computes and collectives of a pass, in order
 *   live.h      from which step to which each value lies in memory
 *   count.h     sums over the steps, which rooflines are computed from
 *   overlap.h   products that run while collectives over tp travel
 *   extent.h    how large numbers of these become, in integers that do not wrap
 *   list.h      the steps as equations of the book, with gathers of weights among them
 *
 * `podsim show graph` writes the products from shard.h to count.h (print.h).
 *
 * A block (block.h, workloads/blocks) writes tensors and ops (write.h). A kind of op (op.h,
 * workloads/ops) states what an op asks of a chip, what it reads and what it moves.
 *
 * Not in the graph: gathers and reductions of weights by buckets, in which biases and the norms'
 * weights travel too. They follow from how often and when a step needs weights, for all blocks
 * alike.
 */
#ifndef SIM_GRAPH_GRAPH_H
#define SIM_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/work.h"
#include "sim/collective/collective.h"
#include "sim/graph/terms.h"

enum {
    GRAPH_TENSORS_MAX = 80,
    GRAPH_OPS_MAX = 56,
    GRAPH_ARRAYS_MAX = 6, /* Inputs of an op, its weights, its outputs. */
    GRAPH_BLOCKS_MAX = 2,
    GRAPH_VALUES_MAX = 12, /* Values that a step reads, or writes. */
    GRAPH_VECTORS_MAX = 16,
};

/* The index of a tensor, or of an op. */
typedef uint8_t tensor;
static const uint8_t GRAPH_NONE = UINT8_MAX;

/* A tensor, or its gradient. A full one is gathered for the ops that read it, or not reduced yet.
 * Any other lies as between ops. */
struct graph_value {
    tensor of;
    bool gradient, full;
};

static inline bool graph_value_same(struct graph_value a, struct graph_value b)
{
    return a.of == b.of && a.gradient == b.gradient && a.full == b.full;
}

enum graph_role {
    GRAPH_ACTIVATION,
    GRAPH_WEIGHT,
    GRAPH_STATISTIC, /* For the backward pass alone: it has no gradient. */
    GRAPH_CACHE,     /* Rows of earlier passes lie in it, and rows of this pass stay in it. */
};

/* The array that a framework keeps of a tensor in addition to the tensor. No op of the graph reads
 * that array. */
enum graph_framework {
    GRAPH_FRAMEWORK_NOTHING,
    GRAPH_FRAMEWORK_OUTPUT, /* The output of a function that a product computes on the way here. */
    GRAPH_FRAMEWORK_MASK,   /* The mask of the elements that are dropped. */
};

struct graph_framework_array {
    enum graph_framework what;
    enum format format;
    enum graph_remat kept; /* The strongest policy that keeps it. */
};

struct graph_tensor {
    struct sharding at;          /* How it lies between ops. */
    struct sharding gradient_at; /* How its gradient does. */
    enum graph_role role;
    enum format format;             /* In HBM. */
    enum format gradient;           /* The gradient's. */
    enum graph_remat kept;          /* The strongest policy that keeps it for the backward pass. */
    enum graph_remat kept_gathered; /* The strongest one that keeps it as its readers gather it. */
    struct graph_framework_array framework;
    bool saved;           /* The policy, or a list, keeps the tensor for the backward pass. */
    bool saved_gathered;  /* The tensor is kept as its readers gather it. */
    bool framework_saved; /* The array of a framework is kept. */
    bool repeated;        /* The tensor is computed again, whether a gradient reads it or not. */
    bool offloaded;       /* The tensor is kept in the memory of the host. */
    bool grouped;         /* A weight that has one matrix for each expert. */
    bool adds;            /* A weight: its gradient is added to what is there. */
    bool columns_of_previous; /* A weight that is stored as further columns of the weight before. */
    bool biased;              /* A weight of a norm: each of its elements has a bias. */
    bool shared;              /* Other parts read it too: its gradient is added to theirs. */
    const char *moved_as;     /* What collectives over tp call it; NULL: as it is here. */
    uint8_t made_by;          /* The op; GRAPH_NONE: it comes from before the layer. */
};

struct block;
struct op_kind;

/* The sequences of a pass that attention to the cache is for. */
enum graph_serves { GRAPH_SERVES_ALL, GRAPH_SERVES_ANSWERS, GRAPH_SERVES_PROMPTS };

/* left · weight -> out */
struct graph_product {
    tensor left, weight, out;
    bool joined; /* The result is further columns of the one before, from one product. */
};

/* `out` has the values of `in` once more for each head. */
struct graph_copy {
    tensor in, out;
};

/* How the gradients of an op are computed. */
struct graph_gradients {
    const char *input_name;  /* Of the op that gives the gradient of the inputs: "dIn". NULL: the
                                name of the op with a d. */
    const char *weight_name; /* Of the op that gives the gradient of the weights: "dW_QKV". NULL:
                                the name of the op with a d. */
    bool one_kernel;         /* Both gradients come from one kernel. */
    bool right_first;        /* Of gradients apart, that of the second input comes first. */
    uint8_t behind;          /* The op whose gradients come directly before these. GRAPH_NONE: the
                                next op that is written. */
};

/* Numbers of a kind of op that not every kind has (`as` of an op). */

struct graph_matmul {
    struct graph_product product[GRAPH_ARRAYS_MAX];
    struct graph_copy copy[1]; /* Written with the results. */
    uint8_t copy_count;
    enum format math;  /* Format that the products are computed in. */
    bool reads_copies; /* Weights are read from copies in this format. */
};

struct graph_map {
    uint64_t flop;               /* For an element of the result. */
    uint64_t flop_backward;      /* For the gradient of an element. */
    enum work_function function; /* Where the function has a kernel of its own. */
    bool reads_inputs;           /* The gradient reads the inputs. */
    bool reads_result;           /* The gradient reads the result. */
};

/* What an op rotates by position (rope) as it reads it. */
struct graph_rotated {
    tensor of[2];  /* GRAPH_NONE: none. */
    uint32_t ways; /* Ranks whose rows lie in the tensors; 0: the rank's own alone. */
};

struct graph_exchange {
    struct sharding sent; /* Rows that all ranks send together. */
    bool spreads;         /* Rows go out to experts. Else they come back. */
};

struct graph_spread {
    enum collective_kind kind;
    bool over_width;    /* Over tp_d. */
    bool over_sequence; /* Over ranks that share sequences. */
};

struct graph_quantise {
    enum recipe_array array; /* What is cast. */
};

struct graph_sort {
    bool sums; /* Rows are added up. Else each is copied to where it is wanted. */
};

struct graph_op {
    const struct op_kind *kind;
    const char *name;    /* "QKV" */
    const char *formula; /* The op's own formula, written as that of op_notation; NULL: the formula
                            of the kind. */
    uint8_t block;       /* Index of the block in the graph. */

    /* Arrays; behind the last of each GRAPH_NONE. Without inputs an op has gradients of weights
     * alone. */
    tensor in[GRAPH_ARRAYS_MAX];
    tensor weight[GRAPH_ARRAYS_MAX];
    tensor out[GRAPH_ARRAYS_MAX];
    uint8_t in_count, weight_count, out_count;

    /* How the results are computed. */
    bool fused;     /* The op that reads the result computes it on the way. */
    bool sums_rows; /* Of a norm: a collective of its own adds up the parts of a row that ranks of
                       tp have. A row is all dimensions but the tokens. */
    enum graph_serves serves;
    enum work_kernel kernel; /* Which measured kernels it is made of; NONE: as its kind. */
    uint8_t product_count;   /* Products of as.matmul; 0: the op is of another kind. */
    union {
        struct graph_matmul matmul;
        struct graph_map map;
        struct graph_rotated rotated;
        struct graph_exchange exchange;
        struct graph_spread spread;
        struct graph_sort sort;
        struct graph_quantise quantise;
    } as;

    struct graph_gradients gradients;
};

/* Weights in no matrix and no norm: biases of a product's columns, or others of a block. No op
 * reads them: they are parameters that travel with the block's matrices. */
struct graph_vector {
    struct sharding at; /* "b_in[F_Y]": the columns of the matrix as that lies. */
    tensor matrix;      /* The weight whose columns have these biases; GRAPH_NONE: no weight has. */
    bool whole;         /* Each rank of tp has all of it. Else it lies as D does between blocks. */
    uint8_t block;      /* Index of the block in the graph. */
};

/* A block's part of the graph. */
struct graph_span {
    const struct block *block;
    uint8_t first, count; /* Ops of the block: the first, and how many. */
    tensor out;           /* The block's result, which the residual stream adds. */
};

struct graph {
    const struct graph_terms *terms; /* Lives as long as the graph. */
    struct graph_tensor tensor[GRAPH_TENSORS_MAX];
    uint8_t tensor_count;
    struct graph_op op[GRAPH_OPS_MAX];
    uint8_t op_count;
    struct graph_vector vector[GRAPH_VECTORS_MAX];
    uint8_t vector_count;
    struct graph_span block[GRAPH_BLOCKS_MAX];
    uint8_t block_count;
    tensor stream; /* What the last block has for input: the residual stream, if it has norms. */
    tensor added;  /* The last block's result. */
    bool begins_backward; /* No gradient comes to it: it is the model's end. */
};

/* An array of the notation; see write.h. */
struct sharding graph_sharding(const struct graph *graph, const char *text, enum graph_role role);

/* Elements of an array on one chip, once it is gathered over some axes. */
uint64_t graph_elements(const struct graph *graph, const struct sharding *array, uint32_t gathered);
/* Elements of a weight on one chip as products read it, which is gathered over X. */
uint64_t graph_weight_elements(const struct graph *graph, tensor weight);
/* Elements of a weight that products read: not the experts that no token asks for. */
uint64_t graph_read_elements(const struct graph *graph, tensor weight);
/* Of an amount of all experts of a weight, the part of the experts that tokens ask for. A weight of
 * no experts has all. */
uint64_t graph_asked(const struct graph *graph, tensor weight, uint64_t amount);

/* Bytes of elements of an array as they lie in HBM: weights, and rows of a cache, with scales. */
static inline uint64_t graph_bytes(enum graph_role role, enum format format, uint64_t elements)
{
    bool const scaled = role == GRAPH_WEIGHT || role == GRAPH_CACHE;
    return scaled ? format_stored_bytes(format, elements) : format_bytes(format, elements);
}

static inline uint64_t graph_tensor_bytes(const struct graph_tensor *of, uint64_t elements)
{
    return graph_bytes(of->role, of->format, elements);
}

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

/* Whether rows of a cache lie in an array: the rank's own rows, or rows that other ranks have
 * handed on. */
bool graph_is_of_cache(const struct graph *graph, tensor of);

/* The tensor in whose memory a tensor lies: itself, or the input of the op that makes it, if that
 * op's kind says so (`lies_in_input`). Steps read and write that tensor, remat keeps that tensor,
 * and that tensor has a life. An array that ranks have gathered lies apart. */
tensor graph_lies_in(const struct graph *graph, tensor of);

/* Whether an op is the first to read a tensor: then what is computed on the way is written down for
 * later ones. */
bool graph_reads_first(const struct graph *graph, const struct graph_op *op, tensor of);

/* What an op computes or moves, as a program and a report name it: "attention.dIn", with the prefix
 * of its block, or of a part of that, as "shared.Out" has. A gradient is "dNorm" of "norm". `op`
 * NULL: without a prefix. */
enum { GRAPH_LABEL_BYTES = 96 };
struct graph_label {
    char text[GRAPH_LABEL_BYTES];
};
struct graph_label graph_label(const struct graph *graph, const struct graph_op *op,
                               const char *name, bool gradient);
/* What labels of an op begin with: "attention.", "shared."; "" of NULL. */
struct graph_label graph_prefix(const struct graph *graph, const struct graph_op *op);
/* The name of an op without a prefix: "Out" of "shared.Out". */
const char *graph_op_name(const struct graph_op *op);
/* The op itself: "shared.Out", "attention.norm". */
struct graph_label graph_op_label(const struct graph *graph, const struct graph_op *op);

/* What collectives over tp call a tensor. */
static inline const char *graph_moved_as(const struct graph *graph, tensor of)
{
    const struct graph_tensor *at = &graph->tensor[of];
    return at->moved_as != NULL ? at->moved_as : at->at.name;
}

static inline uint8_t graph_index(const struct graph *graph, const struct graph_op *op)
{
    return (uint8_t)(op - graph->op);
}

#endif
