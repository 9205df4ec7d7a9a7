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

/* By element. Weights that are gathered in another format than 16 bits have no passes before and
 * behind their gather. */
struct shard_copies {
    const char *source;
    bool wide;                         /* Shards are in fp32, and are cast for each gather. */
    struct function_pass shard;        /* Pass over a shard before it is gathered. */
    struct function_pass gathered;     /* Pass over gathered weights. */
    struct function_pass gradients[2]; /* Before a reduction: in 16 bits, in 32. */
};

/* The kernels of a way to shard; not of the default. */
const struct shard_copies *shard_copies_of(enum shard_kernels kernels);

#endif
