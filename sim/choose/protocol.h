/*
 * protocol.h: how NCCL hands messages to the wire: LL, LL128 and Simple.
 *
 * LL sends eight bytes with a flag each, half of what passes: quick, and slow in bulk. LL128 sends
 * 120 of 128 bytes. Simple sends whole buffers and synchronises afterwards. Their costs are the
 * public constants by which NCCL predicts its own times, per generation of NVLink. On NVLink
 * latencies and bytes take the measured times, where these are longer, and kernels copy.
 *
 *   begin_ps     NCCL's base latency; of NVLS, which has none, its latency of NVLink
 *   message_ps   NCCL's latency of a hop by NVLink or network, less that of the machine's own path,
 *                which the simulation counts by itself
 *   wire_ppm     the inverse of the share of NVLink that NCCL reckons with, or that is measured
 *   far_ppm      the same of NICs
 *
 * With NCCL's refinements: LL no faster than its processor moves it; trees slower at medium sizes;
 * rings of Simple across nodes slower beyond the first bytes ("plateau"); the overhead of posting
 * to the network in rings across nodes. Left out: limits of single channels, which need the number
 * of channels that NCCL's search finds, and bind on no node with NVSwitches that NCCL fills; the
 * latency that a network's driver reports.
 *
 * Over nodes. NCCL takes the slower of NVLink and NICs, so each has its own share. What a node is
 * slower by than NCCL reckons is a matter of its kernels, switches and launches, and is no less
 * where the ranks of other nodes take part: factors of NVLink's latencies and bytes hold. Of NVLS,
 * NCCL's efficiency and the measured factor are NVLink's alone. A tree of two nodes exchanges
 * halves; an inner node of a larger one sends and gets an array twice (NCCL: bwInter, half of it
 * an AllReduce), where the exchange that stands for it has 2 (M-1)/M.
 *
 * Copies. A channel of a ring takes N steps for N-1 messages: in the last it copies what
 * came last out of its buffer (of an AllReduce 2N-1 for 2N-2; a ReduceScatter adds). Bytes of
 * LL128 and Simple take as much longer. Messages from rank to rank go by chunks of 512 KiB, and
 * the receiver copies the last one after all have come. A block of threads copies as fast as NCCL
 * reckons a channel of trees (perChMaxTreeBws) or of LL128 (perChMaxRingLL128Bws): of trees half
 * of its threads add upwards while half copy downwards, and so do halves of a block send and
 * receive messages. Since NCCL 2.24 only registered arrays, such as those of a graph, are written
 * to directly.
 *
 * Steps in series. Over nodes NCCL's ring goes through all ranks, each node in turn: of ranks - 1
 * steps nodes - 1 cross the network; its trees are chains in their nodes. A plan has fewer messages
 * in series: a ring on each level, or an exchange that stands for NCCL's ring, tree or chain. The
 * latency of the steps that it lacks comes
 * before its first message, by NCCL's formulas. PAT, of a rank a node, has log2 (nodes) steps of
 * 2/7 of the network's latency and 2.8 us a rank, and three quarters of the wire's rate.
 *
 * Algorithms that NCCL does not have take the constants of its ring. Message sizes at which LL
 * would need more memory than it has are not modelled.
 *
 * Measured: AllReduces on eight GPUs of a node, which nccl-tests launch singly. Rings of LL of 64
 * KiB take 28.1 us on A100, 18.7 and 19.9 on H100 and H200, 29.0 on B200: by as much are all
 * latencies of the generation longer. Of 128 MiB, a ring on A100 takes 1,169 us, NVLS 579 and 565
 * us on H100 and H200, 398 us on B200: the rest is time of their bytes. Latencies of collectives in
 * a graph are NCCL's: eight A100 decode a token of Mixtral 8x7B in 4.6 ms (gpt-fast, int8), of
 * which 64 AllReduces that took 27 us each would leave 2.9, less than reading the weights.
 *
 * Sources: NVIDIA/nccl, src/graph/tuning.cc at 5067397c (its tables, ncclTopoTuneModel,
 * ncclTopoGetAlgoTime), and of copies src/device (the rings and sends of Simple);
 * ai-dynamo/aiconfigurator at 095f58a51c4c, nccl_perf.parquet.
 */
#ifndef SIM_CHOOSE_PROTOCOL_H
#define SIM_CHOOSE_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

#define PROTOCOL_TABLE(X)                                                                          \
    X(NONE, "none")                                                                                \
    X(LL, "LL")                                                                                    \
    X(LL128, "LL128")                                                                              \
    X(SIMPLE, "Simple")

enum protocol {
#define X(name, text) PROTOCOL_##name,
    PROTOCOL_TABLE(X)
#undef X
        PROTOCOL_COUNT,
};

const char *protocol_name(enum protocol protocol);

/* Whatever the case of its letters; an unknown one is refused with the nearest. */
enum status protocol_find(const char *name, const char *where, enum protocol *ret_protocol,
                          struct error *reterr);

/* What NCCL reckons a chip's cables to a level with; 0 where the machine has no such level. */
uint64_t protocol_level_mb_per_s(const struct machine *machine, uint32_t level);

/* Times of collectives within a node as factors on NCCL's own: the chip's, of a stack that was
 * measured on the machine; each that it lacks is that of the generation of NVLink. */
struct chip_nccl protocol_node_factors(const struct machine *machine);

/* An algorithm of NCCL over nodes whose bytes a plan carries by another, such as an exchange. */
enum protocol_stand {
    PROTOCOL_STANDS_ALONE, /* The plan's own algorithm. */
    PROTOCOL_STANDS_FOR_RING,
    PROTOCOL_STANDS_FOR_TREE, /* An AllReduce. */
    PROTOCOL_STANDS_FOR_PAT,  /* A gather or ReduceScatter of one rank a node. */
    PROTOCOL_STANDS,
};

/* What is sent how. */
struct protocol_use {
    const struct machine *machine;
    const struct group *group;
    enum collective_kind kind;
    struct algorithm algorithm;
    uint64_t array_bytes; /* V. */
    bool registered;      /* Arrays are known to NCCL, so that kernels write to them directly. */
    enum protocol_stand stands;
};

/* A request by an algorithm that stands alone. The use points into the request. */
struct protocol_use protocol_use_of(const struct machine *machine,
                                    const struct plan_request *request, struct algorithm algorithm,
                                    bool registered);

/* Whether a protocol can be used; if not, why, as the end of a sentence ("is NCCL's, ..."). */
const char *protocol_refusal(const struct protocol_use *use, enum protocol protocol);

/* Whether a plan can stand for an algorithm of NCCL: over nodes, and where NCCL has it. */
bool protocol_stands(const struct protocol_use *use);

/* Whether NCCL would compare the algorithm with others. Within a node its trees are chains, which
 * have the latency of its rings and fewer bytes a second (src/graph/tuning.cc: 2 (ranks - 1) hops);
 * podsim's trees have fewer hops there. Between nodes switches gather and scatter for NCCL only by
 * CollNet, which is off. */
bool protocol_contends(const struct protocol_use *use);

/* Whether NCCL takes it for as many bytes. Of messages from rank to rank it never compares times:
 * they go by LL up to a size, and by Simple beyond. Of an AllToAll that size depends on NCCL's
 * version, and both compete. Source: NVIDIA/nccl src/enqueue.cc at 5067397c
 * (NCCL_P2P_LL_THRESHOLD). */
bool protocol_is_taken(const struct protocol_use *use, enum protocol protocol);

/* PROTOCOL_NONE gives all zero. */
enum status protocol_make(const struct protocol_use *use, enum protocol protocol, const char *where,
                          struct plan_protocol *ret_protocol, struct error *reterr);

/* GPUs' nodes that a group spans, and its ranks: what NCCL chooses by. */
void protocol_extent(const struct machine *machine, const struct group *group,
                     uint64_t *ret_node_count, uint64_t *ret_rank_count);

#endif
