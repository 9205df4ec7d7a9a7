/*
 * kernel_lookups.h: what the tables of a stack have said of ops. A machine's stack keeps it, so
 * that the roofline, the run, the cores that collectives take and the tables of ops look an op up
 * once between them. It belongs to one stack, whose tables do not change; threads may share it.
 */
#ifndef SIM_KERNELS_KERNEL_LOOKUPS_H
#define SIM_KERNELS_KERNEL_LOOKUPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/kernels/kernel_of_work.h"

struct arena;

/* The most ops that are kept, a power of two. When there are more, all are forgotten, and looked up
 * again. */
enum { KERNEL_LOOKUPS_MAX = 512 };

/* The answer of tables for the kernels of one op. */
struct kernel_lookup {
    struct work_call call[WORK_MATMULS_MAX];
    const struct kernel_table *table[WORK_MATMULS_MAX]; /* Where `has_tables`. */
    struct kernel_share share[WORK_MATMULS_MAX];        /* 0: the call has no amount. */
    uint32_t call_count;
    bool has_tables; /* Each call has a table, and some call has an amount. */
    struct work_kernels kernels;
};

struct kernel_lookups {
    const struct kernel_stack *stack;
    atomic_bool lock;
    uint64_t made; /* Look-ups until now. */
    uint32_t count;
    uint16_t slot[2 * KERNEL_LOOKUPS_MAX]; /* Open addressing: entries from 1; 0: free. */
    struct kernel_lookups_entry *entry;    /* [KERNEL_LOOKUPS_MAX] */
};

/* Looks up which tables have an op. */
void kernel_lookup_tables(const struct kernel_stack *stack, const struct work *work,
                          struct kernel_lookup *ret_lookup);
/* Then what they say of it. */
void kernel_lookup_shares(const struct kernel_stack *stack, uint32_t core_count,
                          const struct work *work, struct kernel_lookup *lookup);

/* For `stack`, which nobody has asked yet. */
enum status kernel_lookups_create(struct arena *arena, struct kernel_stack *stack,
                                  struct error *reterr);
/* What is kept of an op, or else is looked up now. Which tables have it does not depend on cores,
 * nor on chunks but of a batch: without `wants_shares` those may be another op's, or not be there.
 */
void kernel_lookups_find(const struct kernel_stack *stack, uint32_t core_count,
                         const struct work *work, bool wants_shares,
                         struct kernel_lookup *ret_lookup);
#endif
