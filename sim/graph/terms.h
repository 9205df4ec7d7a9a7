/*
 * terms.h: what a layer's graph is written for: ranks, sizes of dimensions, formats, policies. The
 * graph has no other numbers of a mesh or a plan. Facts of the model that need no size on a rank
 * are read from the model itself.
 *
 * What a dimension is, its `meaning` says where it is set: B, D, N, K, H, V, F and the vocabulary
 * in terms.c; dimensions of one block's arrays in the file of the block (`dimensions`, block.h);
 * and dimensions of sequences and of a cache on ranks in sim/step/graph_terms.c.
 */
#ifndef SIM_GRAPH_TERMS_H
#define SIM_GRAPH_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/units.h"
#include "sim/kernels/autocast.h"
#include "sim/kernels/fusion.h"
#include "sim/kernels/recipe.h"
#include "sim/mesh/sharding.h"
#include "sim/model/layer_kinds.h"

enum { GRAPH_DIMENSIONS_MAX = 48 };

/* What a weight with a dimension counts as among a model's parameters (parameters.h). */
enum graph_counted {
    GRAPH_COUNTED_BY_PLACE, /* By the block that it lies in. */
    GRAPH_COUNTED_STREAM,   /* A matrix by its block; a vector of all of D as a norm's. */
    GRAPH_COUNTED_MLP,
    GRAPH_COUNTED_SHARED,
};

/* What of an array's parts ranks of tp_d have, by a dimension with W. */
enum graph_of_width {
    GRAPH_OF_WIDTH_TOKENS, /* Parts where these ranks attend with tokens of their own. */
    GRAPH_OF_WIDTH_HEADS,  /* Parts where these ranks attend with heads of their own. */
    GRAPH_OF_WIDTH_ALWAYS,
};

/* When ranks of tp split a dimension whose text has Y. */
enum graph_of_tp {
    GRAPH_OF_TP_ALWAYS,
    GRAPH_OF_TP_OF_EP,   /* Where ep lies over tp: each rank of tp has experts of its own. */
    GRAPH_OF_TP_EXPERTS, /* Where ep does not: ranks of tp split each expert. */
};

/* A dimension by its letter in the notation. The graph multiplies these sizes and no others. */
struct graph_dimension {
    const char *name;
    uint64_t padded;            /* The size on all ranks together, which split it in equal parts. */
    uint64_t useful;            /* The size without padding. */
    uint32_t holders;           /* Ranks that hold the same part, as of a KV head, or 1. */
    enum graph_counted counted; /* What a weight with this dimension counts as. */
    enum graph_of_width of_width;
    enum graph_of_tp of_tp;
    bool rounded;        /* Ranks of tp round it up. */
    const char *meaning; /* "attention heads", as listings and notes call them. */
};

struct graph_sequence {
    uint64_t keys;    /* Tokens of a whole sequence. */
    uint64_t queries; /* Tokens of a sequence that one rank attends with. */
    uint64_t count;   /* Sequences of a microbatch on one rank, whole or in part. */
    uint32_t parts;   /* Ranks that each attend with a part of a sequence, or 1. */
    bool rings;       /* These ranks pass keys and values round. Else each rank gathers all. */
    bool causal;
    uint64_t pairs;        /* Causal: keys of the first and the last query of a rank together. */
    uint64_t tile_columns; /* The edge of tiles that a kernel multiplies. */
};

/* Sequences of a rank that attend to rows of the cache. */
struct graph_served {
    uint64_t rows;     /* Queries of a head in one product of scores. */
    uint64_t columns;  /* Keys of all products together, so that the scores are rows x columns. */
    uint64_t read;     /* Rows of the cache that are read, each sequence's own. */
    uint64_t count;    /* Sequences. */
    uint64_t longest;  /* Keys of the one that has most. */
    uint64_t paired;   /* 1: a row is of two queries, and has the keys of both; 0: of one. */
    units_wide scores; /* Scores of one head, of all sequences on all ranks, without padding. */
};
/* Without padding: equal bytes are equal terms. */
_Static_assert(sizeof(struct graph_served) == 6 * sizeof(uint64_t) + sizeof(units_wide),
               "struct graph_served has padding");

/* What ranks of tp_d split of attention and its cache, which have no D. */
enum graph_apart {
    GRAPH_APART_NOTHING, /* All ranks of tp_d attend alike. */
    GRAPH_APART_HEADS,
    GRAPH_APART_TOKENS, /* Each attends with some of the sequences. */
    GRAPH_APART_ROWS,   /* Each keeps a part of each sequence. */
};

struct kernel_stack;

/* What the units of a chip do in a second, as far as an op can be bound by them. */
struct graph_units {
    struct work_edges edges;          /* Multiples that the matrix unit pads to. */
    const struct kernel_stack *stack; /* NULL: no kernels were measured. */
    const uint64_t *math_flop_per_s;  /* [format] */
    uint64_t vector_flop_per_s, vmem_bytes_per_s;
};

/* What a pass of inference reads of the cache. */
struct graph_cache {
    bool is_there;          /* The pass has no gradients, and keys and values stay. */
    uint32_t batch_ways;    /* Ranks with the same heads of keys that keep some sequences each. */
    uint32_t sequence_ways; /* Ranks with the same heads that keep a part of each sequence. */
    enum graph_apart apart;
    uint32_t context_ways; /* Ranks with tokens of their own that keep a part of each sequence, and
                              attend to it for the answering tokens of all. */
    uint32_t prompt_ways;  /* Ranks that each have a part of each prompt, and gather its rows. */
    bool own_rows; /* The prompts attend to no earlier rows, and of ranks that have parts of them
                      each gathers the rows as they were computed. */
    bool prompts_stay; /* Ranks with the same heads share the cache, but each attends for its own
                          heads of prompts to the rows that it has computed as all of them have. */
    bool kinds_apart;  /* Decodes and prompts attend by ops of their own. */
    bool begins;       /* Nothing but prompts is in the step, and they attend to no earlier rows. */
    bool makes_heads;  /* Of latent attention, with decodes and prompts in the pass: prompts attend
                          to no earlier rows, but to keys and values of all heads that are made of
                          their latents. Decodes attend to latents. */
    uint32_t cores;    /* Of the chip, that take sequences and heads apart; 1: all together. */
    uint32_t splits_most;        /* Parts of a sequence's keys that cores may take apart. */
    struct graph_units units;    /* The rates of the chip. */
    bool prefetches;             /* Weights may be read before the products that want them. */
    bool appends_within;         /* Measured kernels of attention write these rows. */
    uint64_t kept_rows;          /* New rows that a rank writes to the cache. */
    struct graph_served decodes; /* Sequences with a query or a few. */
    struct graph_served prompts; /* Sequences with a chunk of queries. */
};

struct graph_share {
    uint64_t part, whole;
};

/* Formats of a plan's arrays, from which the formats of a graph's tensors follow. */
struct graph_formats {
    enum format weights;
    enum format activations;
    enum format gradients;      /* Gradients of weights. */
    enum format optimizer;      /* Each of Adam's two moments. */
    enum format matmuls;        /* Linear layers, and arrays that only these read. */
    enum format dispatch;       /* Tokens, and gradients, on their way to experts. */
    enum format main_gradients; /* Of frameworks: what microbatches add to (overheads.h). */
    enum format head;           /* The head's matrix. */
    enum format cache;          /* Keys and values that stay. */
    enum format batched;        /* Products of weights head by head, in one kernel. */
};

/* Remat policies from the one that keeps most to the one that keeps least. NEVER: of a tensor,
 * that no policy keeps it. */
enum graph_remat {
    GRAPH_REMAT_NEVER = -1,
    GRAPH_REMAT_NONE,
    GRAPH_REMAT_NORMS, /* Norms, and of latent attention the projections up, are repeated. */
    GRAPH_REMAT_BIG_MATMULS,
    GRAPH_REMAT_BLOCK, /* Arrays that the backward pass reads are computed again before it, as
                          jax.checkpoint does. */
    GRAPH_REMAT_LAYER, /* The whole layer is computed again before its backward pass, as Megatron's
                          own checkpoint does. */
};
/* Names of arrays, as `podsim show graph` prints them: "A", "attention.A", "mlp.*". */
struct graph_names {
    const char *const *name;
    uint32_t count;
};

/* Arrays that differ from what the policy keeps. */
struct graph_named {
    struct graph_names save;    /* Arrays that are kept. */
    struct graph_names repeat;  /* Arrays that are computed again. */
    struct graph_names offload; /* Arrays that are kept in the memory of the host. */
};

/* By policy, ended by NULL: "none". */
extern const char *const graph_remat_names[];

/* How operands of products are cast to fp8. */
struct graph_casting {
    const struct recipe *recipe;  /* NULL: no kernels of their own cast. */
    const struct recipe_way *way; /* The recipe as the stack's library runs it. */
    bool norms_belong;            /* Norms are kernels of that library, or of its compiler. */
    bool two;                     /* The gradient of weights multiplies a second array. */
};

/* Kernels that cast and copy sharded weights, by element. */
struct graph_copying {
    struct function_pass shard;     /* Pass over a shard of weights before a gather. */
    struct function_pass gathered;  /* Pass over gathered weights. */
    struct function_pass gradients; /* Pass over a gradient of weights before its reduction. */
    bool again;                     /* The backward pass gathers weights anew. */
    bool once;                      /* Several passes have the weights of one gather. */
};

/* Products of one input that are one product. */
struct graph_joins {
    bool qkv;     /* Q, K and V. */
    bool gate;    /* Gate and up. */
    bool latents; /* Latents of queries and of keys. */
    bool all;     /* Whatever one op multiplies with its input, except gate and up alone. */
};

/* Other libraries' kernels in place of a fusion's own. */
struct graph_kernels {
    enum loss_fusion loss;     /* Whose kernels of the loss. */
    bool persistent_layernorm; /* Gradients of layernorms read their arrays once. */
};

struct graph_policy {
    enum graph_remat remat;
    const struct graph_named *named; /* Lists of a layer; NULL: none. */
    bool by_tokens;                  /* Between blocks tp splits tokens, not D. */
    bool replicated;                 /* Between blocks every rank of tp has all of D. */
    bool keeps_whole; /* Without remat a block's input is kept as tp has gathered it. */
    bool dx_first; /* The gradient of a matmul's input comes before the gradient of its weight. */
    bool bulk; /* Gradients that are reduced over tp come whole, and no product waits for chunks. */
    bool weights_split;      /* Parameters are split over X. */
    bool stores_scores;      /* Attention is not fused: its scores lie in HBM. */
    bool drops;              /* Dropout drops some of these scores. */
    bool pads;               /* Kernels of their own copy what attention reads and gives. */
    bool counts_frameworks;  /* Arrays that only frameworks keep are counted. */
    bool remakes_frameworks; /* Arrays of frameworks are not kept for the backward pass, whatever
                                remat is. */
    bool names_kernels;      /* Works say which measured kernels they are made of. */
    const struct fusion *fusion; /* Kernels between matmuls; NULL: the fewest. */
    struct graph_joins joins;
    bool experts_in_one;            /* One measured kernel has all experts of a layer. */
    struct graph_kernels replacing; /* Kernels that stand in for the fusion's. */
    struct graph_casting casts;     /* Casts for linear layers in fp8. */
    struct graph_copying copying;   /* Kernels of sharded weights. */
    struct function_pass sums;      /* Of a gradient of weights with earlier ones, by element. */
    enum autocast autocast;         /* Casts of PyTorch's autocast. */
    bool adds;                      /* Gradients of weights are added to an accumulator. */
    bool adds_of_experts;           /* Gradients of experts' weights are added to an accumulator. */
    bool used_before; /* Of the embedding, or of the head: another use of the matrix has left its
                         gradient in the same backward pass. */
};

struct model;

struct graph_terms {
    const struct model
        *model; /* Ops read the model's own facts here. Lives as long as the graph. */
    struct sharding_mesh mesh; /* X, Y, Z, W and C, without axes of one rank. */
    uint32_t axis_x;           /* The bit of batch and parameters in `mesh`, or 0. */
    uint32_t axis_y;           /* The bit of tp, or 0. */
    uint32_t axis_w;           /* The bit of tp_d, or 0. */
    uint32_t axis_c;           /* The bit of ranks of cp with Ulysses, or 0. X and Z have these
                                  ranks, too. */
    uint32_t ranks;            /* Ranks of the whole mesh. */
    uint32_t ranks_y;          /* Ranks of tp. */
    uint32_t ranks_w;          /* Ranks of tp_d. */
    uint32_t ranks_exchange;   /* Ranks of ep. */
    bool ep_over_tp;           /* Ep lies over tp. */
    uint64_t experts_held;     /* Experts of a rank. */
    uint64_t experts_asked;    /* Experts of a rank with rows: they alone are multiplied. */
    struct graph_share experts_read; /* Of the weights of a rank's experts, what is read. */
    struct graph_dimension dimension[GRAPH_DIMENSIONS_MAX]; /* Ended by a NULL name. */
    struct graph_sequence sequence;
    struct layer_kind layer; /* What a layer is, where the graph is of a layer. */
    struct graph_cache cache;
    struct graph_formats formats;
    struct graph_policy policy;
};

/* Begins with a model, and with the model's dimensions on one chip that has one token: no rank has
 * a part, and nothing is padded. Blocks add their own (block.h). */
void graph_dimensions_begin(const struct model *model, struct graph_terms *terms);

/* Sets both sizes of a dimension that is there, or of one that it adds, and returns it. */
struct graph_dimension *graph_dimension_set(struct graph_terms *terms, const char *name,
                                            uint64_t padded, uint64_t useful);

/* As graph_dimension_set() of a size without padding, with what the dimension means. */
struct graph_dimension *graph_dimension_plain(struct graph_terms *terms, const char *name,
                                              uint64_t size, const char *meaning);

/* Pads a dimension that is there: its useful size stays the model's. Returns it. */
struct graph_dimension *graph_dimension_pad(struct graph_terms *terms, const char *name,
                                            uint64_t padded);

/* The dimension of a name; the dimension whose name a text of the notation begins with: "N_Y, H]".
 * Both are there. */
const struct graph_dimension *graph_dimension_of(const struct graph_terms *terms, const char *name);
const struct graph_dimension *graph_dimension_at(const struct graph_terms *terms, const char *text);

/* The most keys of a query in the layer. 0: all. */
uint64_t graph_window(const struct graph_terms *terms);

static inline bool graph_named_any(const struct graph_named *named)
{
    return named->save.count + named->repeat.count + named->offload.count > 0;
}

static inline bool graph_remat_repeats(enum graph_remat remat)
{
    return remat >= GRAPH_REMAT_BLOCK;
}

#endif
