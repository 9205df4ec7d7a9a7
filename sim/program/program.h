/*
 * program.h: what every chip has to do, as plain data. The only thing a workload produces and the
 * only thing the replay reads; it names streams, bytes and groups, never chips, links or times.
 *
 * Ranks with equal work share a role. A role is a list of blocks; a block plays one template
 * (a layer's forward pass) a number of times; each time is a slot. So a program grows with the
 * number of different jobs, not with chips or layers, and little with microbatches.
 *
 * Ops lie on streams (compute; gathers and reductions of each mesh axis; copies to the host). Ops
 * of a stream run one after another, in the order of slots and, in a slot, of the template. An op
 * has parts (default 1) that are done in order; a stream counts the parts begun and done since the
 * start. A need names (stream, count), so it is one comparison, and a chip's whole state is a few
 * counters a stream.
 *
 * Pipeline stages are roles. What one sends to the next is a SEND, on a stream whose messages the
 * receiver counts as they arrive; a RECEIVE of its own is done when its number has come.
 *
 * Collective matmul falls out of parts: part k of a matmul needs the first parts of a gather, and
 * a chunk of a reduce-scatter needs the first parts of the matmul that produces it.
 */
#ifndef SIM_PROGRAM_PROGRAM_H
#define SIM_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/work.h"
#include "sim/collective/plan.h"
#include "sim/program/stream_use.h"

struct arena;

enum {
    PROGRAM_STREAMS_MAX = 24,
    PROGRAM_NEEDS_MAX = 12,
    PROGRAM_EFFECTS_MAX = 8,
    PROGRAM_COMPUTE = 0, /* Stream 0 of every role is the compute stream. */
    PROGRAM_NONE = 0xffff,
    PROGRAM_SLOT_SINCE = INT16_MIN, /* A need's slot: that which its block says. */
};

/* What a program may have at most. */
enum {
    PROGRAM_TEMPLATES_MAX = 1024,
    PROGRAM_OPS_MAX = 192, /* Ops of one template. */
    PROGRAM_WORKS_MAX = 4096,
    PROGRAM_PLANS_MAX = 1024,
    PROGRAM_COPIES_MAX = 32,
    PROGRAM_ROLES_MAX = 4096,
    PROGRAM_CLASSES_MAX = 4096,
    PROGRAM_PARTS_MAX = UINT16_MAX, /* Parts of one op. */
    PROGRAM_BLOCKS_MAX = 1 << 24,   /* Blocks of all roles together. */
    PROGRAM_SLOTS_MAX = 1 << 26,    /* Slots of one role. */
};

#define PROGRAM_PHASE_TABLE(X)                                                                     \
    X(FORWARD, "forward")                                                                          \
    X(BACKWARD, "backward") /* With the recomputation that remat asks for; in pipelines that split \
                               it, the input gradient. */                                          \
    X(WEIGHT, "weight gradient")                                                                   \
    X(PAIR, "forward and backward") /* Two passes of a pipeline overlap op by op. */               \
    X(UPDATE, "update")

enum program_phase {
#define X(name, text) PROGRAM_PHASE_##name,
    PROGRAM_PHASE_TABLE(X)
#undef X
        PROGRAM_PHASE_COUNT,
};

/* What frameworks hold in addition; docs/measured-memory.md explains each kind, with its source. */
#define PROGRAM_OVERHEAD_TABLE(X)                                                                  \
    X(MASTER, "master weights")                                                                    \
    X(MAIN_GRADIENTS, "main gradients") /* In place of the book's gradients. */                    \
    X(ACTIVATED, "activation outputs")                                                             \
    X(MASKS, "dropout masks")                                                                      \
    X(LOSS, "logits in fp32")                                                                      \
    X(AUTOGRAD, "autograd gradients")                                                              \
    X(COPIES, "FSDP copies")                                                                       \
    X(NCCL, "NCCL buffers")                                                                        \
    X(CUBLAS, "cuBLAS workspaces")                                                                 \
    X(CONTEXT, "CUDA context")

#define PROGRAM_MEMORY_TABLE(X)                                                                    \
    X(PARAMETERS, "parameters")                                                                    \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(GATHERED, "gathered weights")                                                                \
    X(ACTIVATIONS, "saved activations")                                                            \
    X(BUFFERS, "buffers") /* Live for a few ops: gathered activations, unreduced gradients. */     \
    PROGRAM_OVERHEAD_TABLE(X)                                                                      \
    X(CACHE, "KV cache") /* Keys and values of inference. */

enum program_memory {
#define X(name, text) PROGRAM_MEMORY_##name,
    PROGRAM_MEMORY_TABLE(X)
#undef X
        PROGRAM_MEMORY_COUNT,
    PROGRAM_OVERHEAD_FIRST = PROGRAM_MEMORY_MASTER,
};

#define PROGRAM_REASON_TABLE(X)                                                                    \
    X(DATA, "data")     /* The op reads an array that is there then. */                            \
    X(WINDOW, "window") /* The op would run farther ahead than prefetch or memory allows. */       \
    X(ORDER, "order")   /* The op reads nothing of the other, which goes first. */

enum program_reason {
#define X(name, text) PROGRAM_REASON_##name,
    PROGRAM_REASON_TABLE(X)
#undef X
        PROGRAM_REASON_COUNT,
};

/* `part` parts of `stream` in slot (own + slot), plus `per_part` for each earlier part of the op
 * that needs it, must have begun (BEGUN) or be done. Slots before the first need nothing; if the
 * stream has fewer parts in that slot, the count still adds up over the slots that follow. */
struct program_need {
    uint8_t stream;
    bool begun;
    int16_t slot;
    uint32_t part;
    uint32_t per_part;
    enum program_reason reason;
    const char *array; /* The array that is read, of PROGRAM_REASON_DATA: "mlp.In", "W_mlp". */
};

/* Bytes taken (or given back, negative) when the op begins or ends. */
struct program_effect {
    enum program_memory memory;
    bool at_end;
    int64_t bytes;
};

/* A copy between a chip's HBM and its host's memory, over the link to the host. */
struct program_copy {
    bool to_host;
    uint64_t size_bytes; /* Above 0. */
};

enum program_op_kind {
    PROGRAM_OP_COMPUTE,
    PROGRAM_OP_COLLECTIVE,
    PROGRAM_OP_COPY,
    PROGRAM_OP_SEND,    /* This rank's own message of a permute plan; done when it has left. */
    PROGRAM_OP_RECEIVE, /* Done when as many messages of the step have arrived for its stream as its
                           block says. */
};

/* What a compute is for, as inference tells its time apart. A program that was read does not say.
 */
enum program_purpose { PROGRAM_PURPOSE_OTHER, PROGRAM_PURPOSE_LINEAR, PROGRAM_PURPOSE_ATTENTION };

struct program_op {
    const char *name; /* Short, for timelines and tables: "attention.qkv", "AllGather W_mlp". */
    /* Ops of one class are one row of a report: "AllGather W_mlp (fsdp)". */
    const char *class_name;
    const char *array;    /* The array that a collective moves, "W_mlp"; NULL: not said. */
    uint16_t class_index; /* Filled by program_seal(). */
    enum program_op_kind kind;
    uint8_t stream;
    uint8_t weights; /* Of a collective that moves weights or their gradients: the number of these
                        weights, by the code that lowers the model (`end` of struct bucket,
                        sim/step/ranks.h). 0: no number. */
    uint32_t parts;  /* Compute: chunks. Collective: the plan's part_count. Others: 1. */
    uint32_t part_first; /* Parts of its stream before it in the slot; filled by program_seal(). */
    struct program_need need[PROGRAM_NEEDS_MAX];
    uint32_t need_count;
    uint16_t index; /* The place in works[], plans[] (also of a send) or copies[], by kind. */
    enum program_purpose purpose;

    /* Collective: the compute parts that produce its operand chunk by chunk, or PROGRAM_NONE: the
     * op (of this template, on the compute stream, with as many parts as the plan has chunks). It
     * may then begin before that op has ended; its sends wait for their chunks. */
    uint16_t operand_op;

    struct program_effect effect[PROGRAM_EFFECTS_MAX];
    uint32_t effect_count;
};

struct program_template {
    const char *name; /* "layer forward" */
    uint8_t module;   /* The part of a model that it is a pass of, by the number that whoever lowers
                         the model gives it (sim/step/lower.h); 0: of none, or of several. */
    uint8_t act;      /* The pass, by a number of whoever lowers the model. */
    struct program_op *op;
    uint32_t op_count;
    const uint32_t *op_line; /* Lines of the ops in a text; NULL: there is no text. */
    uint32_t stream_parts[PROGRAM_STREAMS_MAX]; /* In one slot; filled by program_seal(). */
};

struct program_block {
    uint16_t template_index;
    enum program_phase phase;
    const char *name; /* "layer", "embedding", "head": slots are shown as "layer 12 forward". */
    uint32_t repeat;
    int32_t layer_first; /* -1: not a layer. */
    int32_t layer_step;  /* +1 forward, -1 backward, 0 not a layer. */
    uint32_t microbatch;
    uint32_t pass; /* The place of a pipeline's pass in the list of its rank, from 1; 0: none. */
    uint64_t arrivals;   /* Messages that a template with a RECEIVE waits for. */
    uint32_t since_slot; /* The slot of needs of PROGRAM_SLOT_SINCE. */
    uint32_t slot_first; /* Filled by program_seal(). */
    uint64_t stream_first[PROGRAM_STREAMS_MAX]; /* Parts before the block; by program_seal(). */
};

struct program_stream {
    const char *name; /* "compute", "gather fsdp", ...; NULL to builder_stream(): as its use. */
    struct stream_use use;     /* What the stream is for, or nothing that is known. */
    enum program_op_kind kind; /* The kind of all ops of the stream. */
    uint8_t inbox;             /* The stream of receives that counts sends where they arrive. */
    uint8_t urgency; /* 0: the next op of a chip waits for it. Where links go by urgency, messages
                        of a lower number go first. */
};

struct program_role {
    struct program_block *block;
    uint32_t block_count;
    uint32_t slot_count;                           /* By program_seal(). */
    uint64_t stream_total[PROGRAM_STREAMS_MAX];    /* Parts of the whole step; by program_seal(). */
    uint64_t resident_bytes[PROGRAM_MEMORY_COUNT]; /* Held from the start. */
};

struct program {
    struct program_stream stream[PROGRAM_STREAMS_MAX];
    uint32_t stream_count;
    struct program_template *templates;
    uint32_t template_count;
    struct program_role *roles;
    /* Every rank has role 0 where there is one; else a chip's role is its place along a part of an
     * axis of the machine: at[role_axis] / role_stride % role_count. Where roles go on along a part
     * of a second axis, a place along the first has `inner_count` of them; 0: they do not. */
    uint32_t role_count;
    uint8_t role_axis, inner_axis;
    uint32_t role_stride, inner_stride;
    uint32_t inner_count;
    struct work *works;
    uint32_t work_count;
    struct plan *plans;
    const struct plan_request *requests; /* [plan]: what each was built from; NULL: not kept. */
    uint32_t plan_count;
    struct program_copy *copies;
    uint32_t copy_count;
    const char **class_names; /* By program_seal(). */
    const uint8_t *class_streams;
    uint32_t class_count;

    uint64_t tokens; /* Tokens of the step, over all ranks. */

    /* The name of the text that the program was read from; NULL: it was built. */
    const char *text_name;
};

/* What of a program a refusal is of. PROGRAM_NOWHERE: nothing of that sort. */
struct program_place {
    uint32_t stream;
    uint32_t template_index, op; /* An op of that template. */
    uint32_t role, block;        /* A block of that role. */
};
static const uint32_t PROGRAM_NOWHERE = UINT32_MAX;

/* Fills the derived fields and checks the whole: needs refer to streams and parts that exist, and
 * none of a role that is short enough to be run can never be met; operand ops match their plans,
 * plans of one stream are of one group, sums of parts and bytes can be counted. A refusal says
 * where: in words in `reterr`, and as indexes in `ret_place`. STATUS_INVALID, STATUS_LIMIT,
 * STATUS_NO_MEMORY. */
enum status program_try_seal(struct arena *arena, struct program *program,
                             struct program_place *ret_place, struct error *reterr);

/* Seals a program that podsim made: STATUS_NO_MEMORY. Any other refusal is a mistake of podsim, and
 * an assertion. */
enum status program_seal(struct arena *arena, struct program *program, struct error *reterr);

/* Parts of a stream before a slot begins; slots below 0 count as 0 parts. */
uint64_t program_slot_start(const struct program_role *role, const struct program *program,
                            uint32_t stream, int64_t slot);

/* The slot that a need of an op in slot `own` of a block speaks of; it may lie before the first. */
static inline int64_t program_need_slot(const struct program_need *need,
                                        const struct program_block *block, uint32_t own)
{
    return need->slot == PROGRAM_SLOT_SINCE ? (int64_t)block->since_slot
                                            : (int64_t)own + need->slot;
}

/* The most parts that a need asks for, past those before the slot that it speaks of: parts of a
 * compute op begin one by one, and other ops as a whole. */
static inline uint64_t program_need_parts(const struct program_need *need,
                                          const struct program_op *op)
{
    uint32_t const earlier = op->kind == PROGRAM_OP_COMPUTE ? op->parts - 1 : 0;
    return need->part + (uint64_t)need->per_part * earlier;
}

/* The block that a slot belongs to. */
const struct program_block *program_slot_block(const struct program_role *role, uint32_t slot);

/* Slots of a role that play a template, in one phase or in any. */
enum { PROGRAM_ANY_PHASE = -1 };
uint64_t program_role_plays(const struct program_role *role, uint32_t template_index, int phase);

/* The role of the chip at these coordinates of the machine. */
uint32_t program_role_at(const struct program *program, const uint32_t *at);

/* The coordinates of a role's first chip: the inverse of program_role_at(). `ret_at` has room for
 * every axis of the machine; axes that roles do not lie along are 0. */
void program_role_first(const struct program *program, uint32_t role,
                        uint32_t ret_at[LEVEL_AXES_MAX]);

/* Places along an axis of the machine that have roles of their own, and their stride; 1: none. */
uint32_t program_roles_along(const struct program *program, uint32_t axis, uint32_t *ret_stride);

/* "pipeline rank 3" into a buffer; empty where all have one role. */
void program_role_name(const struct program *program, uint32_t role, char *buffer,
                       uint32_t buffer_bytes);

/* "step.program:12:1" into a buffer: where an op of a slot stands in its text; `otherwise` where it
 * stands in none. */
void program_op_where(const struct program *program, const struct program_role *role, uint32_t slot,
                      uint32_t op, const char *otherwise, char *buffer, uint32_t buffer_bytes);

/* "layer 12 forward" into a buffer. */
void program_slot_name(const struct program_role *role, uint32_t slot, char *buffer,
                       uint32_t buffer_bytes);

/* Whether ranks along an axis of the machine exchange what was drawn for each of them. */
bool program_is_drawn(const struct program *program, uint32_t axis);

#endif
