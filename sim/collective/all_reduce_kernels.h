/* all_reduce_kernels.h: whose kernels add small arrays up within a node of GPUs. */
#ifndef SIM_COLLECTIVE_ALL_REDUCE_KERNELS_H
#define SIM_COLLECTIVE_ALL_REDUCE_KERNELS_H

#define ALL_REDUCE_KERNELS_TABLE(X)                                                                \
    X(NCCL, "nccl")                                                                                \
    X(VLLM, "vllm")                                                                                \
    X(TRTLLM, "trtllm")                                                                            \
    X(TORCH, "torch")

enum all_reduce_kernels {
#define X(name, text) ALL_REDUCE_KERNELS_##name,
    ALL_REDUCE_KERNELS_TABLE(X)
#undef X
        ALL_REDUCE_KERNELS_COUNT,
};

#endif
