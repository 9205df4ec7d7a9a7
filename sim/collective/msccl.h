/*
 * msccl.h: an algorithm out of a file: MSCCL's XML, read, proved, and run by a plan.
 *
 * A GPU of a script has threadblocks; a threadblock has at most one peer that it sends to and one
 * that it receives from, over one channel, and plays its steps one after the other. A step also
 * waits for one step of another threadblock of its GPU where it says so. The buffer of the
 * collective is cut into `chunk_count` chunks; steps move, add and copy chunks of the buffers
 * i(nput), o(utput) and s(cratch).
 *
 * A connection is a threadblock and the one that it sends to. Connections become lanes such that no
 * GPU sends, nor receives, over two connections in one lane: then a lane's arrivals are those of
 * one connection, in the order in which they are sent, and no lane holds another up. There are as
 * many lanes as the most connections that any GPU sends or receives over.
 *
 * A script is proved while it is read (msccl_prove.c): one that does not do what its `coll` says
 * is never handed out.
 */
#ifndef SIM_COLLECTIVE_MSCCL_H
#define SIM_COLLECTIVE_MSCCL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/collective.h"
#include "sim/collective/plan.h"

struct arena;
struct msccl_gpu;
struct msccl_block;
struct msccl_step;

enum { MSCCL_LANES_MAX = PLAN_LANES_MAX };

/* What a message waits for, in addition to the previous message of its lane. */
struct msccl_wait {
    uint8_t lane;
    bool left;      /* Messages of the lane have left this GPU; else: arrived at it. */
    uint16_t count; /* Number of these messages, counted from the first. */
};

struct msccl_script {
    const char *name;
    const char *protocol; /* "LL", "LL128", "Simple": what its author had in mind. */
    enum collective_kind kind;
    bool in_place;
    uint32_t rank_count;
    uint32_t channel_count;
    uint32_t chunk_count; /* Of the buffer: the whole gathered or unreduced array; AllToAll: what
                             one rank sends. */
    uint32_t block_count; /* Threadblocks of all GPUs. */
    uint32_t step_count;
    uint32_t message_count;
    struct primitive primitive; /* Named after it, with its lanes; its steps are asked for here. */

    struct msccl_gpu *gpu;
    struct msccl_block *block;
    struct msccl_step *step;
    uint32_t *send;       /* Steps that send, threadblock by threadblock. */
    uint32_t *receive;    /* Steps that receive, threadblock by threadblock. */
    uint32_t *lane_block; /* [GPU · lanes + lane]: who sends; UINT32_MAX: nobody. */
    uint32_t *lane_sends, *lane_arrivals; /* [lane · GPUs + GPU] */
    struct msccl_wait *wait;
};

/* `path` is what errors call the file; they give line and column. */
enum status msccl_read(struct arena *arena, const char *path, const char *text, uint64_t text_bytes,
                       const struct msccl_script **ret_script, struct error *reterr);

/* Plays the script on sets. */
enum status msccl_check(const struct msccl_script *script, const char *path, struct error *reterr);

/* Makes the script the one item of a plan whose group and size are set. */
enum status msccl_compose(const struct msccl_script *script, const struct plan_request *request,
                          const char *where, struct plan *plan, struct error *reterr);

/* The `number`-th message that a GPU sends in a lane. */
struct primitive_step msccl_message(const struct msccl_script *script, uint32_t lane, uint32_t gpu,
                                    uint32_t number);
const struct msccl_wait *msccl_waits(const struct msccl_script *script, uint32_t lane, uint32_t gpu,
                                     uint32_t number, uint32_t *ret_count);

#endif
