/*
 * autocast.h: kernels of PyTorch's autocast. Products take operands of 16 bits, and norms and
 * losses operands in fp32. Whatever else runs takes the wider format of its operands. Casts between
 * the formats are kernels of their own, or parts of a compiler's kernels.
 */
#ifndef SIM_KERNELS_AUTOCAST_H
#define SIM_KERNELS_AUTOCAST_H

#include "sim/kernels/fusion.h"

enum autocast {
    AUTOCAST_NONE,
    AUTOCAST_NARROW, /* Weights have 16 bits, and so has the residual stream. */
    AUTOCAST_WIDE,   /* Weights are in fp32, and so is the residual stream. */
};

/* Forward and backward. Passes of functions stand in place of the stack's, and have bytes in
 * addition to those of one kernel of 16 bits. Without kernels they are the stack's own. */
struct autocast_kernels {
    const char *source;
    struct function_pass input[2];          /* Cast of an input in fp32, once for each product. */
    struct function_pass weight;            /* Cast of a weight in fp32. */
    struct function_pass gradient;          /* Cast of the gradient of a weight in fp32. */
    struct function_pass norm[2];           /* An RMSNorm of the stream in fp32. */
    struct function_pass centred[2];        /* A layernorm of the stream in fp32. */
    struct function_pass centred_narrow[2]; /* A layernorm of the stream in 16 bits. */
    struct function_pass rotation[2];       /* Rotation of queries and keys by angles in fp32. */
    struct function_pass sum[2];            /* Sum of the stream in fp32, by a kernel of its own. */
    struct function_pass sum_fused[2];      /* Bytes of that sum in the kernel of a norm. */
};

/* Kernels of PyTorch without a compiler, and of torch.compile. */
extern const struct autocast_kernels autocast_eager, autocast_compiled;

/* What a pass of a function takes under autocast, where it would take `made` without. */
struct function_pass autocast_pass(const struct fusion *fusion, enum autocast autocast,
                                   enum work_function function, bool centred, bool backward,
                                   struct function_pass made);

/* Whether the result of a norm is in fp32 in memory, so that products cast it. */
bool autocast_widens_norm(const struct fusion *fusion, enum autocast autocast, bool centred);

#endif
