/* kernel_stacks.h: the stacks of the catalogue, which the build makes from topology/kernels/. */
#ifndef SIM_KERNELS_KERNEL_STACKS_H
#define SIM_KERNELS_KERNEL_STACKS_H

#include "sim/kernels/kernels.h"

struct kernel_shipped {
    const char *name; /* "h100-sxm.trtllm" */
    const struct kernel_stack *stack;
};

extern const struct kernel_shipped kernel_stacks[];
extern const unsigned kernel_stacks_count;

#endif
