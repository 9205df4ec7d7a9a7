/*
 * msccl_steps.h: what a script is made of, for the files that read, link and prove it.
 */
#ifndef SIM_COLLECTIVE_MSCCL_STEPS_H
#define SIM_COLLECTIVE_MSCCL_STEPS_H

#include "sim/collective/msccl.h"

enum {
    MSCCL_RANKS_MAX = 64, /* Sets of ranks are words. */
    MSCCL_BLOCKS_MAX = 1024,
    MSCCL_BLOCK_STEPS_MAX = 65535,
    MSCCL_STEPS_MAX = 1 << 20,
    MSCCL_CHUNKS_MAX = 65536,
    MSCCL_NAME_MAX = 128,
};
static const uint32_t msccl_none = UINT32_MAX;

enum msccl_type {
    MSCCL_NOP,
    MSCCL_SEND,
    MSCCL_RECEIVE,
    MSCCL_RECEIVE_COPY_SEND,
    MSCCL_RECEIVE_REDUCE_SEND,
    MSCCL_RECEIVE_REDUCE_COPY,
    MSCCL_RECEIVE_REDUCE_COPY_SEND,
    MSCCL_COPY,
    MSCCL_REDUCE,
};

enum msccl_buffer { MSCCL_INPUT, MSCCL_OUTPUT, MSCCL_SCRATCH, MSCCL_BUFFER_COUNT };

/* Where something stands in the file, from 1. */
struct msccl_position {
    uint32_t line;
    uint32_t column;
};

struct msccl_gpu {
    uint32_t chunks[MSCCL_BUFFER_COUNT];
    uint32_t block_first;
    uint32_t block_count;
    struct msccl_position place;
};

struct msccl_block {
    uint32_t gpu;
    uint32_t id;       /* In its GPU. */
    uint32_t to, from; /* GPUs, or msccl_none. */
    uint32_t channel;
    uint32_t step_first;
    uint32_t step_count;
    uint32_t send_first; /* In script.send. */
    uint32_t send_count;
    uint32_t receive_first;
    uint32_t receive_count;
    uint32_t receiver; /* The threadblock that receives its messages, or msccl_none. */
    uint32_t sender;   /* The threadblock whose messages it receives, or msccl_none. */
    uint32_t send_lane, receive_lane;
    struct msccl_position place;
};

struct msccl_step {
    uint8_t type;     /* enum msccl_type */
    uint8_t from, to; /* enum msccl_buffer */
    bool tells;       /* Others may wait for it. */
    uint32_t source;  /* Chunks of the two buffers, where the type uses them. */
    uint32_t destination;
    uint32_t count;
    uint32_t block;
    int32_t after_block; /* The threadblock of the file's "depid"; -1: none. */
    int32_t after_step;
    uint32_t after;      /* The step that it waits for, or msccl_none. */
    uint32_t sends;      /* Steps of its threadblock that send, up to and with this one. */
    uint32_t receives;   /* Steps of its threadblock that receive, up to and with this one. */
    uint32_t wait_first; /* In script.wait; of steps that send. */
    uint32_t wait_count;
    struct msccl_position place;
};

static inline bool msccl_type_sends(uint32_t type)
{
    return type == MSCCL_SEND || type == MSCCL_RECEIVE_COPY_SEND ||
           type == MSCCL_RECEIVE_REDUCE_SEND || type == MSCCL_RECEIVE_REDUCE_COPY_SEND;
}

static inline bool msccl_type_receives(uint32_t type)
{
    return type != MSCCL_NOP && type != MSCCL_SEND && type != MSCCL_COPY && type != MSCCL_REDUCE;
}

/* Whether it reads the buffer that srcbuf names. */
static inline bool msccl_type_reads(uint32_t type)
{
    return type == MSCCL_SEND || type == MSCCL_RECEIVE_REDUCE_SEND ||
           type == MSCCL_RECEIVE_REDUCE_COPY || type == MSCCL_RECEIVE_REDUCE_COPY_SEND ||
           type == MSCCL_COPY || type == MSCCL_REDUCE;
}

/* Whether it writes the buffer that dstbuf names. */
static inline bool msccl_type_writes(uint32_t type)
{
    return type != MSCCL_NOP && type != MSCCL_SEND && type != MSCCL_RECEIVE_REDUCE_SEND;
}

/* Chunks that a rank has of the input, or of the output. */
static inline uint32_t msccl_input_chunks(const struct msccl_script *script)
{
    bool const part = script->kind == COLLECTIVE_ALL_GATHER;
    return part ? script->chunk_count / script->rank_count : script->chunk_count;
}

static inline uint32_t msccl_output_chunks(const struct msccl_script *script)
{
    bool const part = script->kind == COLLECTIVE_REDUCE_SCATTER;
    return part ? script->chunk_count / script->rank_count : script->chunk_count;
}

extern const char *const msccl_type_names[];   /* By enum msccl_type, and NULL. */
extern const char *const msccl_buffer_names[]; /* By enum msccl_buffer, and NULL. */

enum status msccl_refuse(const char *path, struct msccl_position place, enum status status,
                         struct error *reterr, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Joins senders and receivers, finds what steps wait for, and gives connections their lanes. */
enum status msccl_link(struct arena *arena, const char *path, struct msccl_script *script,
                       struct error *reterr);
enum status msccl_lanes(struct arena *arena, const char *path, struct msccl_script *script,
                        struct error *reterr);

/* Plays it: the clocks say, by step and threadblock, how many steps of that one are surely done
 * when this one is, itself included. They lie in `scratch`. */
enum status msccl_prove(struct arena *scratch, const char *path, const struct msccl_script *script,
                        uint16_t **ret_clocks, struct error *reterr);

#endif
