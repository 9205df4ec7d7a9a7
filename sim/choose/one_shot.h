/*
 * one_shot.h: AllReduces of small arrays within a node by the kernels of a serving engine.
 *
 * GPUs read the arrays of their peers over NVLink and wait for one another by flags in memory. In
 * one shot each reads all arrays whole and adds them up: one latency, V (N-1) bytes. In two shots
 * each adds up a part and then reads the sums of the others: two latencies, 2 V (N-1)/N bytes. The
 * engine takes one shot up to a size, two up to another, and NCCL beyond.
 *
 * Both are simulated as a direct ReduceScatter and a direct AllGather, with as many bytes on the
 * wire and the latency of the kernel.
 *
 * Latencies, and the rate of one shot, are those of 256 bytes and of 128 KiB on eight GPUs, from
 * CUDA graphs: 4.7 and 7.9 us with vLLM on H100, 5.7 and 11.4 us on A100. Two shots read at the
 * rate of NVLink. PyTorch's kernels are not measured and have the constants of vLLM's; GPUs before
 * A100, and GPUs of other makers, have those of the generation of NVLink in their file, A100's at
 * least. Without a CUDA graph the kernels have the same latencies, and NCCL's have longer ones.
 *
 * Sources: ai-dynamo/aiconfigurator at 095f58a51c4c, custom_allreduce_perf.parquet of each chip;
 * sizes: vLLM csrc/custom_all_reduce.cuh and custom_all_reduce.py (max_size), TensorRT-LLM
 * cpp/tensorrt_llm/thop/allreduceOp.cpp and plugin.py (max_workspace_size_auto), PyTorch
 * torch/csrc/distributed/c10d/symm_mem/intra_node_comm.cu (kOneShotThreshBytes).
 */
#ifndef SIM_CHOOSE_ONE_SHOT_H
#define SIM_CHOOSE_ONE_SHOT_H

#include <stdbool.h>

#include "sim/collective/all_reduce_kernels.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

/* Whether a collective goes by an engine's kernels; then also the algorithm and the protocol that
 * stand for them. Never by those of NCCL. The request's own algorithm and protocol are not read. */
bool one_shot_make(enum all_reduce_kernels kernels, const struct machine *machine,
                   const struct plan_request *request, struct algorithm *ret_algorithm,
                   struct plan_protocol *ret_protocol);

#endif
