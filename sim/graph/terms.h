/*
 * terms.h: what a layer's graph is written for: how many ranks split what, sizes of dimensions,
 * formats, policies. All that the graph knows of a model's numbers, of a mesh and of a plan.
 */
#ifndef SIM_GRAPH_TERMS_H
#define SIM_GRAPH_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/mesh/sharding.h"

enum { GRAPH_DIMENSIONS_MAX = 24 };

/* A dimension by its letter in the notation. The graph multiplies these sizes and no others. */
struct graph_dimension {
    const char *name;
    uint64_t padded;  /* Size where ranks of tp split it, on all of them together: equal parts. */
    uint64_t useful;  /* Size in the model: heads, columns or tokens without padding. */
    uint32_t holders; /* Ranks of tp with the same part: of a KV head; else 1. */
};

struct graph_sequence {
    uint64_t keys;    /* T, of a whole sequence. */
    uint64_t queries; /* T on one rank. */
    uint64_t count;   /* Sequences of a microbatch on one rank, whole or in part. */
    uint32_t parts;   /* Ranks that share a sequence; else 1. */
    bool causal;
    uint64_t window;       /* Keys of a query at most; 0: all. */
    uint64_t tile_columns; /* Edge of the tiles that a kernel multiplies. */
};

struct graph_formats {
    enum format weights;
    enum format activations;
    enum format gradients; /* Of weights. */
    enum format matmuls;   /* Linear layers, and arrays that only these read. */
    enum format dispatch;  /* Tokens, and gradients, on their way to experts. */
};

/* Remat policies from the one that keeps most to the one that keeps least. NEVER: of a tensor,
 * that no policy keeps it. */
enum graph_remat {
    GRAPH_REMAT_NEVER,
    GRAPH_REMAT_NONE,
    GRAPH_REMAT_NORMS,
    GRAPH_REMAT_BIG_MATMULS,
    GRAPH_REMAT_BLOCK, /* What the backward pass reads is computed again before it; */
    GRAPH_REMAT_LAYER, /* the whole layer is. */
};

struct graph_policy {
    enum graph_remat remat;
    bool by_tokens;       /* Between blocks tp splits tokens, not D. */
    bool keeps_whole;     /* Without remat a block's input is kept as tp has gathered it. */
    bool dx_first;        /* Of a matmul's two gradients. */
    bool weights_split;   /* Parameters are split over X. */
    bool adds;            /* Gradients of weights are added to what is there; */
    bool adds_of_experts; /* and of experts. */
};

struct graph_terms {
    struct sharding_mesh mesh; /* X, Y and Z, without axes of one rank. */
    uint32_t axis_x, axis_y;   /* Bits in `mesh`: batch and parameters, tp; 0: it has none. */
    uint32_t ranks;            /* Of all axes together. */
    uint32_t ranks_y;          /* tp */
    uint32_t ranks_exchange;   /* ep */
    struct graph_dimension dimension[GRAPH_DIMENSIONS_MAX]; /* Ended by a NULL name. */
    struct graph_sequence sequence;
    struct graph_formats formats;
    struct graph_policy policy;
};

/* The dimension of a name, which is there. */
const struct graph_dimension *graph_dimension_of(const struct graph_terms *terms, const char *name);

static inline bool graph_remat_repeats(enum graph_remat remat)
{
    return remat >= GRAPH_REMAT_BLOCK;
}

#endif
