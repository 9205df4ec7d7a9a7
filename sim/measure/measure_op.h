/*
 * measure_op.h: collectives by the names of nccl-tests, and what a size means there.
 *
 * nccl-tests prints one size a row and two bandwidths. The size is one rank's buffer for AllReduce,
 * AllToAll, Broadcast, Reduce and SendRecv, the whole array for AllGather, ReduceScatter, Gather
 * and Scatter. algbw is size over time; busbw is algbw times a factor, such that it can be held
 * against the rate of a port whatever the number of ranks. Plans count V, the whole gathered or
 * exchanged array of the book: of an AllToAll it is ranks times the size.
 *
 * Copies between each chip and its host, which nccl-tests does not have, come on top: a size is
 * what one rank copies, and no rank has to do with another but for links that they share.
 *
 * Source: nccl-tests, doc/PERFORMANCE.md and the GetBw function of each test.
 */
#ifndef SIM_MEASURE_MEASURE_OP_H
#define SIM_MEASURE_MEASURE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"
#include "sim/collective/collective.h"

/* Symbol, name, kind of a plan, whether it adds, whether it has a root. */
#define MEASURE_TABLE(X)                                                                           \
    X(ALL_GATHER, "all_gather", COLLECTIVE_ALL_GATHER, false, false)                               \
    X(REDUCE_SCATTER, "reduce_scatter", COLLECTIVE_REDUCE_SCATTER, true, false)                    \
    X(ALL_REDUCE, "all_reduce", COLLECTIVE_ALL_REDUCE, true, false)                                \
    X(ALL_TO_ALL, "all_to_all", COLLECTIVE_ALL_TO_ALL, false, false)                               \
    X(BROADCAST, "broadcast", COLLECTIVE_BROADCAST, false, true)                                   \
    X(REDUCE, "reduce", COLLECTIVE_REDUCE, true, true)                                             \
    X(GATHER, "gather", COLLECTIVE_GATHER, false, true)                                            \
    X(SCATTER, "scatter", COLLECTIVE_SCATTER, false, true)                                         \
    X(SENDRECV, "sendrecv", COLLECTIVE_PERMUTE, false, false)                                      \
    X(HOST_STORE, "host_store", COLLECTIVE_KIND_COUNT, false, false)                               \
    X(HOST_LOAD, "host_load", COLLECTIVE_KIND_COUNT, false, false)

enum measure_op {
#define X(name, text, kind, adds, rooted) MEASURE_##name,
    MEASURE_TABLE(X)
#undef X
        MEASURE_COUNT,
};

const char *measure_op_name(enum measure_op operation);
enum collective_kind measure_op_kind(enum measure_op operation);
/* Whether it is a copy to or from the host, of no kind of collective. */
bool measure_op_is_copy(enum measure_op operation);
bool measure_op_adds(enum measure_op operation);
bool measure_op_is_rooted(enum measure_op operation);

/* By name; an unknown one is refused with the nearest. `where` is its place. */
enum status measure_op_find(const char *name, const char *where, enum measure_op *ret_operation,
                            struct error *reterr);

/* V for a size; refused where it passes plan_size_bytes_max. */
enum status measure_op_array_bytes(enum measure_op operation, uint64_t ranks, uint64_t size_bytes,
                                   const char *where, uint64_t *ret_bytes, struct error *reterr);

/* The `count` column: elements that one rank hands in, or gets of each rank; rounded up. */
uint64_t measure_op_count(enum measure_op operation, uint64_t ranks, uint64_t size_bytes,
                          enum format format);

/* What the size column holds, as the end of a sentence: "one rank's buffer". */
const char *measure_op_size_text(enum measure_op operation);

#endif
