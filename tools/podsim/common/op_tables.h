/*
 * op_tables.h: what gives a compute op its time, in words: the stack, its tables, and the cells of
 * these that the op lies in.
 */
#ifndef TOOLS_PODSIM_COMMON_OP_TABLES_H
#define TOOLS_PODSIM_COMMON_OP_TABLES_H

#include "sim/kernels/kernel_of_work.h"
#include "sim/machine/chip.h"

enum {
    OP_TABLES_SIDES_BYTES = 64,
    OP_TABLES_BY_BYTES = 64,
    OP_TABLES_NAME_BYTES = 128,
    OP_TABLES_LIST_BYTES = 512,
};

/* Texts of an op. */
struct op_tables {
    struct work_kernels kernels;
    uint32_t call_count;
    struct work_call call;               /* The first kernel that a table may have. */
    uint64_t products;                   /* Number of all kernels, chunks of a product each. */
    uint32_t share_ppm;                  /* 0: the time has no share of the roofline. */
    bool is_of_stack;                    /* The time comes from the stack. */
    char by[OP_TABLES_BY_BYTES];         /* "te bf16 NT fp32" */
    char sides[OP_TABLES_SIDES_BYTES];   /* "8192 x 1280 x 8192"; of several products the first. */
    char calls[OP_TABLES_LIST_BYTES];    /* Sides, layout and number of all kernels. */
    char table[OP_TABLES_LIST_BYTES];    /* "matmul bf16 NT into fp32"; several with ";". */
    char table_of[OP_TABLES_NAME_BYTES]; /* "h100-sxm.sglang" */
    char row[OP_TABLES_LIST_BYTES];      /* "m 8192, n 1024-1536, k 8192"; several with ";". */
};

void op_tables_find(const struct chip *chip, const struct work *work, struct op_tables *ret_tables);

/* Gives an op whose time is in another op's kernel the table, the row and the stack of that
 * kernel. */
void op_tables_share(const struct chip *chip, const struct work *kernel, struct op_tables *tables);

#endif
