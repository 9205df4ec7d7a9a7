/*
 * measured_memory_overheads.h: what docs/measured-memory.md says of each kind of memory that
 * frameworks hold on top of the bytes that the book counts (sim/step/overheads.c).
 */
#ifndef TESTS_VALIDATION_MEASURED_MEMORY_OVERHEADS_H
#define TESTS_VALIDATION_MEASURED_MEMORY_OVERHEADS_H

#include <stdbool.h>

#include "sim/program/program.h"

struct overhead {
    enum program_memory memory;
    const char *what;   /* What is held, and for how long. */
    const char *source; /* The framework's code that says so. */
    bool outside;       /* PyTorch's allocator does not see it, so its statistics lack it. */
};

/* In the order of PROGRAM_OVERHEAD_TABLE. */
static const struct overhead overheads[] = {
    {PROGRAM_MEMORY_MASTER,
     "4 bytes of each weight whose optimizer state lies here, with weights in a narrower format; "
     "FSDP keeps one copy: 4 bytes less the bytes of the format, of each weight of the shard",
     "Megatron-LM docs/source/api-guide/dist_optimizer.md at 50b073cc (6 + 12/d bytes); PyTorch "
     "torch/distributed/fsdp/_fully_shard/_fsdp_param.py (the sharded parameter keeps its "
     "format, param_dtype is the format of the gather)",
     false},
    {PROGRAM_MEMORY_MAIN_GRADIENTS,
     "4 bytes of each weight whose gradient is kept here, in place of the book's gradients, or 2 "
     "where `main_gradients` is bf16 or fp16; in Megatron-LM one buffer from the first step on, "
     "in FSDP always fp32, from the reduction to the update",
     "Megatron-LM docs/source/api-guide/dist_optimizer.md at 50b073cc; "
     "megatron/core/distributed/distributed_data_parallel.py (grad_reduce_in_fp32: fp32, "
     "otherwise the parameter's format); PyTorch "
     "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py (foreach_reduce ends in "
     "orig_dtype)",
     false},
    {PROGRAM_MEMORY_ACTIVATED,
     "the output of SwiGLU or GELU, which the next matmul keeps in addition to the function's "
     "input; with remat, `norms` too, only until the matmul has read it",
     "Megatron-LM megatron/core/fusions/fused_bias_swiglu.py at 00caa53a (the function saves its "
     "input alone, and the next linear layer saves its own input); Korthikanti et al., arXiv "
     "2205.05198, 4.1; DeepSeek-V3, arXiv 2412.19437, 3.3.3 (`norms`)",
     false},
    {PROGRAM_MEMORY_MASKS,
     "1 byte an element of the outputs of attention and MLP, where `attention_kernel` drops out",
     "Korthikanti et al., arXiv 2205.05198, 4.1", false},
    {PROGRAM_MEMORY_LOSS,
     "from the loss to the start of the backward pass, with the logits: 4 bytes a logit, which "
     "become the softmax in place (PyTorch's own cross entropy, neither fused nor compiled, "
     "keeps a second array; Transformer Engine's has none)",
     "Megatron-LM megatron/core/tensor_parallel/cross_entropy.py at 00611e6e", false},
    {PROGRAM_MEMORY_AUTOGRAD,
     "Megatron-LM: one gradient for each shape of a layer's matrices, in the weights' format, "
     "which autograd allocates although matmuls add to the main gradients; also of embedding and "
     "head while their gradients are computed",
     "TransformerEngine transformer_engine/pytorch/module/base.py (get_dummy_wgrad); Megatron-LM "
     "megatron/core/tensor_parallel/layers.py (grad_added_to_main_grad)",
     false},
    {PROGRAM_MEMORY_COPIES,
     "while weights are gathered: the output of the gather, before the copy to the parameters; "
     "while gradients are reduced: the input of the reduction, in the format of `gradients` "
     "(reduce_dtype)",
     "PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py "
     "(foreach_all_gather_copy_out, foreach_reduce)",
     false},
    {PROGRAM_MEMORY_NCCL,
     "one communicator for each axis of the mesh and each group that reduces gradients: 9.19 MiB "
     "a channel (LL 0.5, LL128 4.69, Simple 4), 24 channels in a node and 16 across nodes; rings "
     "only",
     "NVIDIA/nccl src/init.cc (DEFAULT_BUFFSIZE, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE), "
     "src/include/device.h; \"coll channels\" in its logs on nodes of 8 A100 and H100",
     true},
    {PROGRAM_MEMORY_CUBLAS,
     "PyTorch's, 32 MiB from Hopper on and 8.125 before, 128 on MI300X, and Transformer "
     "Engine's, 32 MiB and 4",
     "PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize); "
     "TransformerEngine transformer_engine/pytorch/module/base.py "
     "(get_cublas_workspace_size_bytes)",
     false},
    {PROGRAM_MEMORY_CONTEXT,
     "0.47 GiB: the memory that PyTorch 2.1 takes on an A100 for a first tensor, with kernels "
     "loaded when they are used",
     "stas00/ml-engineering training/performance/README.md (Preloaded CUDA kernels memory usage)",
     true},
};
_Static_assert(sizeof overheads / sizeof *overheads ==
                   PROGRAM_MEMORY_CACHE - PROGRAM_OVERHEAD_FIRST,
               "each kind has its row");

#endif
