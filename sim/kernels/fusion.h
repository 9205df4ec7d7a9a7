/*
 * fusion.h: the kernels that stand between matmuls, as software makes them: which functions have
 * kernels of their own, and how often these go over their arrays. A graph without a fusion has the
 * fewest: what a matmul can compute on the way has no kernel.
 *
 * Facts of frameworks, in bytes an element of 16-bit arrays. An array in 32 bits on the way counts
 * twice.
 */
#ifndef SIM_KERNELS_FUSION_H
#define SIM_KERNELS_FUSION_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/work.h"
#include "sim/kernels/function_pass.h"
#include "sim/kernels/recipe.h"
#include "sim/kernels/shards.h"

/* Which products of one input a stack runs as one, whose result has the columns of all. */
enum product_joins {
    PRODUCT_JOINS_DEFAULT, /* What the stack does. */
    PRODUCT_JOINS_NONE,
    PRODUCT_JOINS_QKV, /* Q, K and V. */
    PRODUCT_JOINS_ALL, /* Q, K and V; gate and up of an MLP. */
};
/* The words of the key `joined_products`, from PRODUCT_JOINS_NONE on, ended by NULL. */
extern const char *const product_joins_names[];

/* Rows of experts, forward and backward: in the order of experts, and added up by token. Bytes are
 * those of an element of the rows. */
struct expert_kernels {
    struct function_pass permute[2], unpermute[2];
    uint8_t permute_each[2], unpermute_each[2]; /* Kernels for each expert of a rank. */
};

struct autocast_kernels;

struct fusion {
    const char *name;
    const char *help;
    const char *source;
    bool sums_apart;      /* The residual sum is no part of the norm behind it. */
    bool functions_apart; /* Gates and functions are no part of the matmul behind them. */
    bool rotates_apart;   /* Q and K are rotated by a kernel of their own, not by attention's. */
    bool norms_rotate;    /* Where Q and K are normed, the kernel of their norms rotates them. */
    enum product_joins joins;   /* Products that are one; never the default. */
    bool joins_latents;         /* Latents of queries and of keys come from one product. */
    enum recipe_library linear; /* The library whose linear layers train in fp8. */
    bool norms_belong;          /* Norms are kernels of that library, or of its compiler. */
    bool buffers_gradients;     /* Kernels scale and clear all gradients of a rank, not its part. */
    struct expert_kernels experts;
    struct function_pass gradient_norm; /* Of all gradients of a rank, for clipping. No kernels: one
                                           that reads them as they are. */
    struct function_pass clipping;      /* Of an update that clips. No kernels: Adam's clips. */
    struct function_pass forward[WORK_FUNCTION_COUNT];
    struct function_pass backward[WORK_FUNCTION_COUNT];
    struct function_pass layernorm, layernorm_backward; /* No kernels: as other norms. */
    bool biases_apart; /* A kernel of its own adds gradients of biases up. */
    bool joins_parts;  /* A copy joins gradients of parts of one result. */
    int64_t host_ps;   /* Of the host for an op that it launches by itself; 0: not known. */
    const struct autocast_kernels *autocast; /* NULL: the software has no autocast. */
    enum shard_kernels shards;               /* The software's own way to shard weights; 0: none. */
};

/* Whose kernels of the loss a training step runs; `none`: the stack's own. */
#define LOSS_FUSION_TABLE(X)                                                                       \
    X(NONE, "none")                                                                                \
    X(NATIVE, "native")                                                                            \
    X(TE, "te")                                                                                    \
    X(FLASH_ATTN, "flash_attn")                                                                    \
    X(COMPOSER, "composer")

enum loss_fusion {
#define X(name, word) LOSS_FUSION_##name,
    LOSS_FUSION_TABLE(X)
#undef X
        LOSS_FUSION_COUNT,
};

/* The words of the key `loss_fusion`, by enum loss_fusion, ended by NULL. */
extern const char *const loss_fusion_names[];

/* A fused loss. Its first pass reads the logits, and its last writes their gradient. */
struct loss_kernels {
    const char *help;
    const char *source;
    struct function_pass made;
    uint8_t kept_bytes; /* For the backward pass, in addition to 16-bit logits. */
};

/* A fused loss; NULL for the stack's own and past the last. */
const struct loss_kernels *loss_kernels_of(enum loss_fusion fusion);

/* How gradients of weights of a microbatch are added to those of earlier ones. */
#define GRADIENT_SUMS_TABLE(X)                                                                     \
    X(FUSED, "fused")                                                                              \
    X(APART, "apart")                                                                              \
    X(CAST, "cast")

enum gradient_sums {
#define X(name, word) GRADIENT_SUMS_##name,
    GRADIENT_SUMS_TABLE(X)
#undef X
        GRADIENT_SUMS_COUNT,
};

/* The words of the key `gradient_sums`, by enum gradient_sums, ended by NULL. */
extern const char *const gradient_sums_names[];

/* The kernels that add a gradient of `bytes` an element to a sum of `sum_bytes`. No kernels: the
 * product adds. */
struct function_pass fusion_sums(enum gradient_sums sums, uint8_t bytes, uint8_t sum_bytes);

/* The list of fusions, and one by its index; NULL past the end. */
extern const struct fusion fusion_list[];
const struct fusion *fusion_at(uint32_t index);

/* How a fusion makes a function: in one kernel that adds nothing, where it is NULL. */
struct function_pass fusion_pass(const struct fusion *fusion, enum work_function function,
                                 bool backward);

/* How a fusion makes a norm: a layernorm if `centred`, else an RMSNorm. */
struct function_pass fusion_norm(const struct fusion *fusion, bool centred, bool backward);
/* How apex's FastLayerNorm makes a layernorm, whatever the fusion: backward one kernel gives the
 * gradient of the input and parts of those of weight and bias, and a second one adds the parts up.
 */
struct function_pass fusion_persistent_norm(bool backward);

/* How a fusion permutes rows of experts; `sums`: rows of a token are added up. */
struct function_pass fusion_permute(const struct fusion *fusion, bool sums, bool backward);
/* Kernels that it has for each expert of a rank, in addition. */
uint32_t fusion_permute_each(const struct fusion *fusion, bool sums, bool backward);

/* How a fusion makes the norm of a rank's gradients. */
struct function_pass fusion_gradient_norm(const struct fusion *fusion);

/* How a fusion makes the update of weights, by clipped gradients or by whole ones. */
struct function_pass fusion_update(const struct fusion *fusion, bool clips);

/* Whether the loss of a fusion is several kernels, which a fused loss replaces. */
bool fusion_splits_loss(const struct fusion *fusion);

/* How a fusion makes the loss, which is forward and backward at once. */
struct function_pass fusion_loss(const struct fusion *fusion, enum loss_fusion loss);

#endif
