/*
 * tuner.h: which algorithm and protocol to take, from a file in the form of NCCL's example tuner.
 *
 *     collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
 *     allreduce,0,65536,tree,ll,-1,1,-1
 *
 * The last two fields may be missing. The first line that fits a collective decides; -1 fits
 * anything. Sizes are those of nccl-tests,
 * both ends included. Lines that begin with # and empty lines are skipped.
 *
 * Collectives: broadcast, reduce, allgather, reducescatter, allreduce, and here also alltoall,
 * gather, scatter. Algorithms: ring, tree, nvls of NCCL, which are ring, double-tree (tree where
 * nothing is both summed and spread) and sharp here, and every name of this program.
 *
 * Channels are not modelled: a line may ask for some, and is taken without. An operation here is
 * alone and its buffers are not registered: a line that asks for other numPipeOps than 1 or for
 * regBuff 1 never fits.
 *
 * Source: NVIDIA/nccl, plugins/tuner/example at 5067397c.
 */
#ifndef SIM_CHOOSE_TUNER_H
#define SIM_CHOOSE_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/choose/protocol.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/collective.h"

struct arena;

struct tuner_rule {
    enum collective_kind kind;
    uint64_t min_bytes, max_bytes;
    struct algorithm algorithm;
    enum protocol protocol;
    int64_t node_count, rank_count; /* -1: any. */
    bool never;                     /* For other operations than this program knows. */
    int64_t channel_count;          /* Channels that the rule asks for, in vain; -1: none. */
    uint32_t line;
    uint32_t algorithm_column, protocol_column;
};

struct tuner {
    const char *path;
    const struct tuner_rule *rules;
    uint32_t rule_count;
};

/* `path` is for messages: "tuner.csv:3:14"; it outlives the tuner. */
enum status tuner_read(struct arena *arena, const char *path, const char *bytes,
                       uint64_t size_bytes, struct tuner *ret_tuner, struct error *reterr);

/* The first rule that fits, or NULL. `tuner` may be NULL. */
const struct tuner_rule *tuner_find(const struct tuner *tuner, enum collective_kind kind,
                                    uint64_t size_bytes, uint64_t node_count, uint64_t rank_count);

#endif
