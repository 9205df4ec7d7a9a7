/*
 * kernel_of_work.h: what a table of measured kernels says of a compute op.
 */
#ifndef SIM_KERNELS_KERNEL_OF_WORK_H
#define SIM_KERNELS_KERNEL_OF_WORK_H

#include "sim/base/work.h"
#include "sim/kernels/kernels.h"

struct work_kernels {
    const struct kernel_table
        *table;              /* The table of the first kernel. NULL: no table has the op. */
    uint32_t share_ppm;      /* The roofline's share of the time of all kernels. */
    bool is_outside;         /* A side lies outside its grid. */
    bool is_of_other_layout; /* A product's layout has no table; TN's was taken. */
    bool is_derived;         /* A table was made from others. */
    bool is_of_other_mask;   /* A whole sequence stands for what is none, or a causal one for what
                                has no mask. */
    bool is_of_single;       /* The table has single products, the work is a batch of them. */
    bool is_of_other_scales; /* The table has operands with one scale an array, the work has other
                                scales. */
};

/* One kernel of an op, or more that are alike. */
struct work_call {
    enum kernel_family family;
    enum kernel_layout layout; /* The layout of a product. */
    enum format stored;        /* Of keys and values of attention. */
    enum format result;        /* The result's format, for a product. */
    enum work_cast cast;       /* The cast of a product's operands. */
    uint64_t side[KERNEL_SIDES_MAX];
    uint64_t whole[KERNEL_SIDES_MAX]; /* Sides of what `chunk_count` kernels compute together. */
    uint64_t count;                   /* Such wholes. */
    uint64_t chunk_count;             /* Kernels of each whole, 1 or more. */
    bool is_of_other_mask;
    bool is_of_experts; /* Each product belongs to one expert. */
    bool is_batched;    /* One kernel has products of a batch: `whole` has their number and sides.
                           `side` are those of one product for all of them where no table has the
                           batch. */
};

/* The calls of an op with a stack (NULL: none), whose families of tables decide which kernel of
 * attention stands for another: of products one each, of attention one for its decodes and one for
 * the rest. dX[m, k] = dY[m, n] · W[n, k] and dW[n, k] = dY[m, n] · X[m, k] of Y[m, n] = X[m, k] ·
 * W[k, n]: rows are m there. Products without a kernel are as forward ones. Of a product in chunks
 * each chunk is a kernel, and products of a batch are one. */
uint32_t work_calls(const struct kernel_stack *stack, const struct work *work,
                    struct work_call ret_calls[WORK_MATMULS_MAX]);

/* The table that has a call whose operands are of a format, or stands for it; NULL: none does. */
const struct kernel_table *kernel_table_of_call(const struct kernel_stack *stack,
                                                enum format format, const struct work_call *call);

/* All kernels of an op, each by its own share: together they have the share of the op's roofline,
 * of all math or all bytes, in the sum of their times. Of no stack (NULL) none has a table;
 * `core_count` as kernel_table_share() has it. */
struct work_kernels kernel_of_work(const struct kernel_stack *stack, uint32_t core_count,
                                   const struct work *work);

/* Whether a work is kernels between matmuls whose rates the stack has. */
bool kernel_is_between(const struct kernel_stack *stack, const struct work *work);
/* The share of HBM's rate that such kernels reach together, by the bytes of each kind. */
uint32_t kernel_between_ppm(const struct kernel_stack *stack, const struct work *work);
/* Whether a work takes no time of its own: that of another op's kernel has it. */
bool kernel_is_within(const struct kernel_stack *stack, const struct work *work);
/* Whether the time of a work is measured, its launch with it: as one of both. */
bool kernel_is_measured(const struct kernel_stack *stack, const struct work *work);

/* The rates of an op's kernels where 0 to `held_most` of a GPU's `core_count` cores are not theirs,
 * in millionths of the rate on all: each kernel takes as much longer as its tiles have more steps.
 * False: no table has the kernels. */
bool kernel_waves_ppm(const struct kernel_stack *stack, uint32_t core_count,
                      const struct work *work, uint32_t held_most, uint32_t *ret_ppm);

#endif
