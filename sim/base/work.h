/*
 * work.h: what a compute op asks of a chip, in the units that the book counts: matmuls, vector
 * FLOP and bytes. It says nothing of a chip; sim/resource turns it into time.
 */
#ifndef SIM_BASE_WORK_H
#define SIM_BASE_WORK_H

#include <stdint.h>

#include "sim/base/format.h"

enum { WORK_MATMULS_MAX = 5 }; /* The backward of flash attention has five. */

/* Functions between matmuls, with their words in files of kernels and programs. */
#define WORK_FUNCTION_TABLE(X)                                                                     \
    X(REST, "rest")           /* None of the others: lookups, copies of rows. */                   \
    X(NORM, "norm")           /* RMSNorm, LayerNorm. */                                            \
    X(SUM, "sum")             /* The residual stream and what a block adds to it. */               \
    X(GATE, "gate")           /* silu(Gate) * Up */                                                \
    X(ACTIVATION, "function") /* GELU, ReLU: a function of one array. */                           \
    X(ROPE, "turn")           /* Columns of Q and K that are rotated by position (rope). */        \
    X(LOSS, "loss")           /* Softmax and cross-entropy of logits, with their gradient. */      \
    X(UPDATE, "update")       /* The optimizer: norm of the gradients, clipping, Adam. */          \
    X(CAST, "cast")           /* Numbers that products multiply, brought to a narrower format. */  \
    X(ROUTE, "route")         /* A router's softmax, and the choice of experts. */                 \
    X(PERMUTE, "permute")     /* Rows of tokens brought to the order of experts, and back. */

enum work_function {
#define X(name, text) WORK_FUNCTION_##name,
    WORK_FUNCTION_TABLE(X)
#undef X
        WORK_FUNCTION_COUNT,
};
/* "norm" */
const char *work_function_name(enum work_function function);

/* How the operands of a product are cast to its format: in which kernels, and how many numbers
 * share a scale. */
enum work_cast {
    WORK_CAST_WITHIN, /* The product's own casts, if any. */
    WORK_CAST_TENSOR, /* Kernels of their own; one scale for an array. */
    WORK_CAST_BLOCK,  /* Kernels of their own; a scale for 128 numbers, of weights for 128 x 128. */
    WORK_CAST_ROW,    /* Kernels of their own; a scale for a row or a column. */
    WORK_CAST_MX,     /* Kernels of their own; a scale, a power of two, for 32 numbers. */
    WORK_CAST_COUNT,
};
/* The name of a cast, such as "tensor". */
const char *work_cast_name(enum work_cast cast);

/* Which measured kernels a work is made of, with their words: none, so that its tiles decide; or
 * kernels that its matmuls are, as the comments say. */
#define WORK_KERNEL_TABLE(X)                                                                       \
    X(NONE, "none")                                                                                \
    X(FORWARD, "forward") /* Products of weights. */                                               \
    X(INPUT, "input")     /* Gradients of what weights are multiplied with. */                     \
    X(WEIGHT, "weight")   /* Gradients of weights. */                                              \
    X(GRADIENTS,                                                                                   \
      "gradients") /* The first half: gradients of inputs, the other half: of weights. */          \
    X(ATTENTION, "attention") /* One or two kernels of attention (`attended`). */                  \
    X(ATTENTION_BACKWARD, "attention backward") /* Gradients of attention. */                      \
    X(EXPERTS_IN, "experts in")   /* Part of a layer's experts in one: gate and up as columns of   \
                                     one product. */                                               \
    X(EXPERTS_OUT, "experts out") /* The other part: what goes back to the model's columns. */     \
    X(WITHIN, "within")           /* In the time of the experts' kernel. */                        \
    X(WITHIN_ATTENTION, "within attention") /* In the time of the kernels of attention. */

enum work_kernel {
#define X(name, text) WORK_KERNEL_##name,
    WORK_KERNEL_TABLE(X)
#undef X
        WORK_KERNEL_FUNCTIONS, /* The first of WORK_FUNCTION_COUNT: functions between matmuls (enum
                                  work_function). */
};

enum { WORK_ATTENDED_MAX = 2 };

/* Attention of `heads` heads of keys, counted over all sequences, with `group` queries for each
 * key. Without `decodes`, `tokens` are those of a causal sequence with as many keys a query as
 * here; with it, the keys of each of the queries of a group, which are of one token or a few. */
struct work_attended {
    uint64_t tokens;
    uint64_t heads; /* 0: there is none. */
    uint64_t group;
    uint64_t key_width, value_width;
    uint64_t stored;    /* enum format of keys and values */
    uint64_t is_latent; /* 1: keys and values are one array. */
    uint64_t decodes;   /* 1: the queries are of tokens that follow their keys one by one. */
    uint64_t
        is_other; /* 1: the sequences are not whole, causal and alike; others stand for them. */
    /* Where every query has all keys of a kernel: the keys of each, and the heads of queries of as
     * many sequences of this length as have as many queries. 0: queries are masked. */
    uint64_t full_tokens, full_heads;
    uint64_t full_is_other; /* 1: a kernel has fewer queries than keys, or more. */
};

/* The side of a product that chunks divide. */
enum work_side { WORK_SIDE_NONE, WORK_SIDE_ROWS, WORK_SIDE_INNER, WORK_SIDE_COLUMNS };

/* `count` independent products [rows x inner] · [inner x columns]. `rows` are tokens, padded to
 * the unit's rows of 8; `inner` and `columns` are weight dimensions, padded to the MXU. */
struct work_matmul {
    uint64_t rows;
    uint64_t inner;
    uint64_t columns;
    uint64_t count;
};

struct work {
    struct work_matmul matmul[WORK_MATMULS_MAX];
    uint64_t masked_rows; /* Padding rows of each matmul: the part of a mask's cut tiles that the
                             mask hides. */
    uint32_t matmul_count;
    enum format math_format;  /* Decides the MXU's rate. */
    uint64_t vector_flop;     /* FLOP of the VPU. */
    uint64_t hbm_read_bytes;  /* Through HBM -> VMEM. */
    uint64_t hbm_write_bytes; /* VMEM -> HBM. */
    uint64_t vmem_read_bytes; /* Operands that already lie in VMEM: they pay its rate, not HBM's. */
    uint64_t idle_core_ppm;   /* Millionths of the chip's cores that have no part of it: the rates
                                 of matrix units, vector units and VMEM are those of the others. */
    uint64_t useful_flop;     /* What MFU may count; executed FLOP is the matmuls' own. */
    uint64_t prefetch_bytes;  /* Of hbm_read_bytes: weights that may come to VMEM before the op,
                                 while the compute queue waits. */
    uint64_t kernel;          /* enum work_kernel */
    uint64_t kernel_count;    /* Of a function between matmuls: kernels one after the other. */
    uint64_t sum_bytes;   /* Of a norm's bytes: those of kernels that sum the residual stream. */
    uint64_t result;      /* enum format of the gradients of weights that products give. */
    uint64_t cast;        /* enum work_cast of products. */
    uint64_t chunk_count; /* Measured kernels of each product, one for each chunk; 0: one. */
    uint64_t chunked;     /* enum work_side that chunks divide. */
    uint64_t of_experts;  /* 1: each product belongs to one expert. */
    uint64_t batched;     /* 1: one kernel has all products of a shape. */
    uint64_t async_ps;    /* Starts and ends of asynchronous collectives, in which the chip
                             computes nothing. */
    struct work_attended attended[WORK_ATTENDED_MAX]; /* Where `kernel` is one of attention. */
};

/* Works are compared as bytes, so none of these may be padding. */
_Static_assert(sizeof(struct work) == WORK_MATMULS_MAX * sizeof(struct work_matmul) +
                                          19 * sizeof(uint64_t) +
                                          WORK_ATTENDED_MAX * sizeof(struct work_attended),
               "struct work has no padding");

/* 2·rows·inner·columns·count over the matmuls, unpadded. */
uint64_t work_matmul_flop(const struct work *work);

/* Multiples that a matrix unit pads the sides of its products to. */
struct work_edges {
    uint64_t rows, inner, columns;
};
enum { WORK_EDGE_ROWS = 8 };

/* FLOP of the MXU with padded shapes and the rows that a mask hides. The most of 64 bits where it
 * is more. */
uint64_t work_padded_flop(const struct work *work, struct work_edges edges);

#endif
