/*
 * kernels.h: measured kernels of one chip, as one stack of software makes them. A table has the
 * shares of the roofline that kernels of a family reach, by their sides; topology/kernels/ holds
 * those that are shipped, and tools/kernels/ makes them from published measurements.
 */
#ifndef SIM_KERNELS_KERNELS_H
#define SIM_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"
#include "sim/base/work.h"
#include "sim/kernels/fusion.h"

struct arena;
struct json;
struct kernel_lookups;
struct strbuf;

enum {
    KERNEL_FILE_VERSION = 1,
    KERNEL_TABLES_MAX = 24,
    KERNEL_EDGES_MAX = 128,
    KERNEL_SIDES_MAX = 4
};

/* Factors on what NCCL reckons, in millionths. With none are bytes faster than the link. */
enum { KERNEL_FACTOR_LEAST_PPM = 500000, KERNEL_FACTOR_MOST_PPM = 10000000 };

/* No chip is so short of power that a step leaves it less of its clock. */
enum { KERNEL_CLOCK_LEAST_PPM = 600000 };

/* What a table is of. */
enum kernel_family {
    KERNEL_MATMUL,             /* y[m, n] = x[m, k] · W[k, n] */
    KERNEL_GROUPED,            /* Such products of alike sides, one for each expert of a rank. */
    KERNEL_BATCHED,            /* Such products of alike sides, one for each head, in one kernel. */
    KERNEL_ATTENTION,          /* Causal attention of whole sequences. */
    KERNEL_ATTENTION_BACKWARD, /* Gradients of such attention, in one kernel or several. */
    KERNEL_FULL_ATTENTION,     /* Attention of whole sequences without a mask. */
    KERNEL_LATENT_ATTENTION,   /* Causal attention of whole prompts whose keys and values a latent
                                  gives: keys are wider than values. */
    KERNEL_DECODE,             /* Attention of a token a sequence to the rows of its cache. */
    KERNEL_LATENT_DECODE,      /* A decode whose keys and values are one array for all heads. */
    KERNEL_EXPERTS,            /* A layer's experts with gates, from routing to summed rows. */
    KERNEL_FAMILIES,
};

/* The sides of a product. */
enum { KERNEL_M, KERNEL_N, KERNEL_K };
/* The sides of products in a batch: how many, then m, n and k of each. */
enum { KERNEL_BATCH, KERNEL_EACH };
/* The sides of attention. */
enum {
    KERNEL_TOKENS, /* Tokens of a sequence; in a decode the tokens that it attends to. */
    KERNEL_HEADS,  /* Heads of keys, of all sequences together. */
    KERNEL_GROUP,  /* Heads of queries for each. */
    KERNEL_WIDTH,  /* The width of a head. */
};

/* The sides of experts: first KERNEL_TOKENS, of each expert that has any; then */
enum {
    KERNEL_EXPERT = 1, /* Experts that have tokens. */
    KERNEL_COLUMNS,    /* Columns of an expert on the rank. */
    KERNEL_MODEL,      /* Columns of the model. */
};

/* How both operands lie in memory, as BLAS has it: TN are forward products of a layer, NN the
 * gradients of its inputs, NT those of its weights. */
enum kernel_layout { KERNEL_TN, KERNEL_NN, KERNEL_NT, KERNEL_LAYOUTS };

struct kernel_table {
    enum kernel_family family;
    enum format format;        /* The operands' format. The result has two bytes. */
    enum kernel_layout layout; /* The layout of a product. */
    enum format stored;        /* A decode's format of keys and values; else `format`. */
    enum format result;        /* The result's format, for a product. */
    bool quantises;            /* The time of the casts to `format` is in that of products. */
    bool appends;              /* Attention's time has that of writing the cache in it. */
    enum work_cast cast;       /* A product's cast before it: which scales the operands have. */
    const char *source;
    const char *of;       /* The stack whose table it is, or was made from; NULL: its own. */
    const char *derived;  /* How it was made from that; NULL: it was measured. */
    bool is_part;         /* `of` names some edges: row_count and errors are the whole table's. */
    bool is_carried_over; /* A file of the user has it from a stack of the catalogue. */
    uint64_t flop_per_s;  /* The roofline that shares are of. */
    uint64_t bytes_per_s;
    uint32_t row_count;                             /* Measurements that it was made from. */
    uint32_t error_median_ppm, error_ninetieth_ppm; /* By which look-ups miss them. */
    uint32_t edge_count[KERNEL_SIDES_MAX];
    const uint32_t *edge[KERNEL_SIDES_MAX]; /* Sides with measurements, ascending. */
    const uint32_t *share_ppm;              /* [m][n][k], and so on */
    const struct kernel_table *factor;      /* What the shares were multiplied by, with its own
                                               sides, which may reach further; NULL: nothing. */
};

/* Kernels between matmuls: which there are, and how fast. */
struct kernel_between {
    const struct fusion *fusion; /* NULL: those of the graph alone, at the profile's rates. */
    const char *source;
    int64_t launch_ps;                       /* What each kernel takes in addition to its bytes. */
    uint32_t share_ppm[WORK_FUNCTION_COUNT]; /* Of the data sheet's rate of HBM. */
};

/* Times of collectives within a node, as factors on NCCL's own; 0: the factor of the chip's NVLink.
 */
struct kernel_collectives {
    const char *source;   /* NULL: the stack says nothing of collectives. */
    uint32_t latency_ppm; /* Latencies of all algorithms and protocols. */
    uint32_t byte_ppm;    /* A byte, where chips send all messages, but by LL. */
    uint32_t nvls_ppm;    /* A byte, where switches add or copy. */
};

struct kernel_stack {
    const char *name;  /* "trtllm" */
    const char *title; /* "TensorRT-LLM 1.3.0rc20" */
    const char *chip;  /* "h100-sxm" */
    bool is_own_file;  /* A file of the user, whatever its name, and none of the catalogue. */
    /* The share of its clock that the chip keeps in a whole step, where the tables are of kernels
     * that ran alone and cool; 0: the tables have the clock of a step. */
    uint32_t clock_ppm;
    const char *clock_source;
    uint32_t clock_fp8_ppm; /* Share of the clock in products in fp8; 0: `clock_ppm`. */
    const char *clock_fp8_source;
    struct kernel_table table[KERNEL_TABLES_MAX];
    uint32_t table_count;
    struct kernel_between between;
    struct kernel_collectives collectives;
    struct kernel_lookups *lookups; /* What was asked; NULL: nothing is kept. */
};

/* Whether two tables are of the same kind, of which a stack has one: of the same family, formats,
 * layout and scales. */
bool kernel_tables_alike(const struct kernel_table *one, const struct kernel_table *other);

/* Reads a user's file of kernels, which may take tables of the catalogue. Errors: what is no such
 * file, with its place. */
enum status kernel_stack_read(struct arena *arena, struct json *document,
                              struct kernel_stack *ret_stack, struct error *reterr);

/* Writes such a file, with the numbers of all tables. Tables that the stack lacks come from
 * `tables_of`, a stack of the catalogue by its full name; NULL: it has no others. */
void kernel_stack_write(const struct kernel_stack *stack, const char *tables_of,
                        struct strbuf *text);

/* A stack of the catalogue. Errors: STATUS_NOT_FOUND at `where`, with the chip's nearest stack. */
enum status kernel_stack_find(const char *name, const char *chip, const char *where,
                              struct kernel_stack *ret_stack, struct error *reterr);

/* A stack of the catalogue by its full name, "h100-sxm.trtllm". Errors: also STATUS_INVALID where
 * the name has no dot. */
enum status kernel_stack_find_full(struct arena *arena, const char *name, const char *where,
                                   struct kernel_stack *ret_stack, struct error *reterr);

/* "h100-sxm.trtllm": names of the catalogue, in its order; NULL past the end. */
const char *kernel_stack_name_at(uint32_t index);
/* Whether the catalogue has kernels of a stack for a chip. NULL: no stack, which has none. */
bool kernel_stack_is_shipped(const char *chip, const char *stack);
/* The edges of a table around a side, equal where it is one; outside both are the nearest. */
void kernel_table_edges(const struct kernel_table *table, uint32_t which, uint64_t side,
                        uint32_t *ret_low, uint32_t *ret_high);
const char *kernel_layout_name(enum kernel_layout layout);
/* "matmul": as files name the lists of their tables. */
const char *kernel_family_name(enum kernel_family family);
/* "matmul bf16 NT into fp32": what a table is of, for people. */
void kernel_table_name_add(const struct kernel_table *table, struct strbuf *text);
/* Whether a family is of products, whose tables have a layout, a result and a cast. */
bool kernel_is_of_products(enum kernel_family family);
/* Whether a family reads a cache, whose rows may have a format of their own (`stored`). */
bool kernel_reads_cache(enum kernel_family family);
uint32_t kernel_side_count(enum kernel_family family);
/* Numbers of a table: one for each edge of each side. */
uint64_t kernel_point_count(const struct kernel_table *table);
const char *kernel_side_name(enum kernel_family family, uint32_t side);

/* What a table says of a kernel. */
struct kernel_share {
    uint32_t ppm;    /* Of the roofline, 1 to 10^6. */
    bool is_outside; /* A side lies outside the grid. */
};

/* The table of matmuls in a format, for operands that are cast as `cast` says. It is the first that
 * the stack has of three: a table of the layout and the result, of the layout alone, of TN. Where
 * no table has the scales of the operands, a table of one scale an array is taken. NULL: the stack
 * has no table of the format. */
const struct kernel_table *kernel_table_of(const struct kernel_stack *stack, enum format format,
                                           enum kernel_layout layout, enum format result,
                                           enum work_cast cast);

/* The table of products for each expert, with the layout, the result and the cast; NULL: the stack
 * has none. */
const struct kernel_table *kernel_grouped_of(const struct kernel_stack *stack, enum format format,
                                             enum kernel_layout layout, enum format result,
                                             enum work_cast cast);

/* The table of a family other than those of products, or NULL. `stored`: the format of keys and
 * values; of families without a cache `format`. */
const struct kernel_table *kernel_other_of(const struct kernel_stack *stack,
                                           enum kernel_family family, enum format format,
                                           enum format stored);

/* The times of a kernel's math and of its bytes at the rates of a table; its time on the roofline:
 * the longer of both. */
struct kernel_demand {
    int64_t math_ps, move_ps;
};
struct kernel_demand kernel_demand(const struct kernel_table *table,
                                   const uint64_t side[KERNEL_SIDES_MAX]);
int64_t kernel_roofline_ps(const struct kernel_table *table, const uint64_t side[KERNEL_SIDES_MAX]);
/* Products in a batch, at the rates of a table that may be of single ones. */
struct kernel_demand kernel_batched_demand(const struct kernel_table *table,
                                           const uint64_t side[KERNEL_SIDES_MAX]);

/* What the time of a kernel grows with: steps of its tiles over the cores (1: they work as one), in
 * units of the family's own. Tiles of a size go in whole waves; of causal attention they differ. */
uint64_t kernel_tile_steps(enum kernel_family family, const uint64_t side[KERNEL_SIDES_MAX],
                           uint32_t core_count);

/* The number of a table at the sides, which outside the grid are the nearest edge's. */
uint32_t kernel_table_inside_ppm(const struct kernel_table *table,
                                 const uint64_t side[KERNEL_SIDES_MAX]);

/*
 * The share of a kernel. Between edges its logarithm is linear in the logarithms of the sides.
 * Outside, time grows from the nearest edge with the steps of its tiles; a share is never above 1.
 * `core_count` is 1 where cores work as one.
 */
struct kernel_share kernel_table_share(const struct kernel_table *table,
                                       const uint64_t side[KERNEL_SIDES_MAX], uint32_t core_count);

/* How far look-ups may miss points of the grid that they do not know: half, and nine of ten. */
enum { KERNEL_AIM_MEDIAN_PPM = 50000, KERNEL_AIM_NINETIETH_PPM = 150000 };

/* How far look-ups miss points of the grid that they do not know. */
struct kernel_error {
    uint32_t point_count;
    uint32_t median_ppm, ninetieth_ppm;
};

/* Of the points that are left out where every second edge of each side is. */
enum status kernel_error_of_edges(struct arena *arena, const struct kernel_table *table,
                                  struct kernel_error *ret_error, struct error *reterr);
/* Of all points of one edge of each side that is a bit of `sides`, within the grid, without these
 * edges: of a matmul with n and k, all m of each n and k. */
enum status kernel_error_of_shapes(struct arena *arena, const struct kernel_table *table,
                                   uint32_t sides, struct kernel_error *ret_error,
                                   struct error *reterr);

#endif
