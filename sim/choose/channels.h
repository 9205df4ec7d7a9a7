/*
 * channels.h: how many channels NCCL drives a collective with, each by a block of threads that has
 * a core (SM) to itself as long as the collective runs.
 *
 * NCCL searches for rings. It goes down a list of rates, counts the rings that NVLink, or the NICs
 * of a node's ranks, have room for at each, and keeps the count that carries most. Fast rings are
 * doubled, and all are doubled again where trees are added. A small array takes fewer. NVLS has a
 * number of its own. Messages from rank to rank take two channels over a network. In a node all
 * ranks together share a power of two of them: a message takes one for each 64 KiB, and more beyond
 * 16 MiB a channel.
 *
 *   NVIDIA/nccl at 5067397c: src/graph/search.cc (speedArrayIntra and the like, ncclTopoCompute,
 *   ncclTopoDupChannels), src/graph/connect.cc (ncclTopoPostset), src/graph/paths.cc
 *   (ncclTopoComputeP2pChannels), src/graph/tuning.cc (threadThresholds), src/enqueue.cc
 *   (topoGetAlgoInfo, addP2pToPlan, scheduleP2pTasksToPlan), src/transport/nvls.cc
 *   (NVLS_NCHANNELS_SM90 and the like)
 *
 * Public logs of NCCL have as many: 24 of A100 and H100 in a node, 16 of H800 in a node
 * (NVIDIA/nccl issue 892), 16 of nodes of eight H100, 8 of nodes of two H20 (issue 1189).
 */
#ifndef SIM_CHOOSE_CHANNELS_H
#define SIM_CHOOSE_CHANNELS_H

#include <stdint.h>

#include "sim/choose/protocol.h"

/* Channels of a collective on GPUs in a protocol of NCCL. */
uint32_t channels_of(const struct protocol_use *use, enum protocol protocol);

/* Channels of one message from rank to rank within a node. */
uint32_t channels_of_peer(const struct protocol_use *use, uint64_t message_bytes);

/* Cores of a collective that goes chunk by chunk with its matmul: Transformer Engine's user buffers
 * gather by copy engines and one core that signals, and add up by 16 cores (TransformerEngine
 * transformer_engine/pytorch/module/base.py, get_default_config). */
uint32_t channels_of_chunks(enum collective_kind kind);

#endif
