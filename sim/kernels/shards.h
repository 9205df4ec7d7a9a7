/*
 * shards.h: kernels that a framework runs for weights that are sharded: what it casts and copies
 * before weights are gathered, behind that, and before gradients are reduced.
 */
#ifndef SIM_KERNELS_SHARDS_H
#define SIM_KERNELS_SHARDS_H

#include <stdbool.h>

#include "sim/kernels/function_pass.h"

#define SHARD_KERNELS_TABLE(X)                                                                     \
    X(NONE, "none")                                                                                \
    X(FSDP1, "fsdp1")                                                                              \
    X(FSDP2, "fsdp2")                                                                              \
    X(DEEPSPEED, "deepspeed")

enum shard_kernels {
    SHARD_KERNELS_DEFAULT, /* Those of the stack. */
#define X(name, word) SHARD_KERNELS_##name,
    SHARD_KERNELS_TABLE(X)
#undef X
        SHARD_KERNELS_COUNT,
};

/* The words of the key `shard_kernels`, from SHARD_KERNELS_NONE on, ended by NULL. */
extern const char *const shard_kernels_names[];

/* Formats by their bits: 16, 32. */
enum shard_format { SHARD_NARROW, SHARD_WIDE, SHARD_FORMATS };

/* Arrays in memory, besides weights and gradients, while a collective moves weights or gradients.
 */
enum shard_array {
    SHARD_ARRAY_NONE,  /* Weights, or gradients, are what is gathered, or reduced. */
    SHARD_ARRAY_SHARD, /* The shard that has been cast. */
    SHARD_ARRAY_CAST,  /* What is reduced, if it has another format than gradients. */
    SHARD_ARRAY_ALL,
};

/* By element, and by the format that weights are gathered in. */
struct shard_copies {
    const char *source;
    bool wide;                                    /* Shards are in fp32. */
    bool tensors_stay;                            /* A weight that is gathered by itself stays. */
    struct function_pass shard[SHARD_FORMATS];    /* Pass over a shard before it is gathered. */
    struct function_pass gathered[SHARD_FORMATS]; /* Pass over gathered weights. */
    /* Before a reduction, also by the format that gradients are reduced in. */
    struct function_pass gradients[SHARD_FORMATS][SHARD_FORMATS];
    enum shard_array gathers, reduces;
};

/* The kernels of a way to shard; not of the default. */
const struct shard_copies *shard_copies_of(enum shard_kernels kernels);

#endif
