/*
 * lower.h: how a program is put together: ops, needs and effects of one template at a time.
 * Internal to sim/step.
 *
 * What is not there costs nothing: a collective over a group of one rank is LOWER_NONE, and
 * needing LOWER_NONE is no need, so the strategies need no cases of their own.
 */
#ifndef SIM_STEP_LOWER_H
#define SIM_STEP_LOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/work.h"
#include "sim/program/builder.h"
#include "sim/step/ranks.h"

static const uint32_t LOWER_NONE = UINT32_MAX; /* BUILDER_NONE */

/* By the kind of their ops: compute, collectives, sends, receives, copies. */
enum lower_stream {
    LOWER_COMPUTE,
    LOWER_GATHER_WEIGHTS,
    LOWER_REDUCE_WEIGHTS,
    LOWER_GATHER_TP,
    LOWER_REDUCE_TP,
    LOWER_REDUCE_DP,
    LOWER_GATHER_DP,
    LOWER_SUM_KV,
    LOWER_SUM_LOGITS, /* Of routers. */
    LOWER_SUM_ROWS,   /* Of routers' gradients, where tp splits tokens. */
    LOWER_DISPATCH,   /* Tokens to the ranks that have their experts. */
    LOWER_COMBINE,    /* Tokens back from their experts. */
    LOWER_REDUCE_EXPERTS,
    LOWER_GATHER_EXPERTS,
    LOWER_GATHER_SEQUENCE,
    LOWER_REDUCE_SEQUENCE,
    LOWER_HOME_SEQUENCE, /* Sums of dK and dV that have gone round. */
    LOWER_SEND_NEXT,     /* Messages between pipeline stages, by rank along pp. */
    LOWER_SEND_PREVIOUS,
    LOWER_SEND_COPY,  /* To the rank that holds the same stages. */
    LOWER_SEND_TIED,  /* From the first rank to a later one that holds the embedding. */
    LOWER_SEND_FIRST, /* From the later rank back to the first. */
    LOWER_RECEIVE_PREVIOUS,
    LOWER_RECEIVE_NEXT,
    LOWER_RECEIVE_COPY,
    LOWER_RECEIVE_TIED,
    LOWER_RECEIVE_FIRST,
    LOWER_STORE_ACTIVATIONS,
    LOWER_LOAD_ACTIVATIONS,
    LOWER_LOAD_OPTIMIZER,
    LOWER_STORE_OPTIMIZER,
    LOWER_STREAM_COUNT,
};

/* How long an op can wait for what a stream carries: what program_stream.urgency is here. Several
 * streams have the same, and take turns. */
enum lower_urgency {
    LOWER_URGENCY_ACTIVATIONS, /* Activations and their gradients: the next op of this rank or
                                  another reads them. */
    LOWER_URGENCY_WEIGHTS, /* Weights of a layer to come, which are gathered ahead of the layer. */
    LOWER_URGENCY_GRADIENTS, /* Gradients of weights. The update at the end of the step reads their
                                sums. */
};

/* What of a backward pass is emitted: all of it, or one gradient. Between the two, what the weight
 * gradients read stays: inputs of the matmuls and gradients of their outputs, gathered. */
enum lower_half { LOWER_WHOLE, LOWER_INPUT, LOWER_WEIGHT };

/* What a template does with the gathered weights of its unit. */
enum lower_weights {
    LOWER_GATHERS, /* Gathers them for itself. */
    LOWER_TAKES,   /* Gathers them, and they stay. */
    LOWER_HOLDS,   /* They are there. */
};

enum { LOWER_PARTS_MAX = 4 };
struct lower {
    struct builder build;
    const struct ranks *ranks;
    uint8_t stream[LOWER_STREAM_COUNT]; /* In the program, or PROGRAM_STREAMS_MAX. */

    /* The template under construction. */
    const struct ranks_layer *layer; /* Of a layer: which kind. */
    bool windowed;                   /* Its attention is to a window. */
    uint32_t pass_first;             /* Its first op, or of a pair's second pass the first. */
    uint32_t output;      /* The op whose end makes the running activation (or its gradient)
                             available; LOWER_NONE: it comes from earlier slots. */
    uint32_t received;    /* The RECEIVE that its input comes by, or LOWER_NONE. */
    enum lower_half half; /* Of a backward template: which gradients it computes. */
    bool last_microbatch; /* Gradients are reduced after the template. */
    bool last_lookup; /* The gradient of an embedding that both ends of a pipeline use is reduced
                         after the template. */
    enum lower_weights keeping;
    bool updated;    /* Of a forward template: weights come from the last step's update, and
                        are gathered from the ranks that have updated a part of them each. */
    bool head_stays; /* Of the head in a pipeline: its weights stay from its forward pass to its
                        backward pass, which is the next of the rank. */
    struct lower_graph *graph[LAYER_KINDS][2]; /* [windowed]: kinds of layers (emit.c), or NULL. */
    struct lower_graph *end_graph[LOWER_PARTS_MAX][2]; /* [part][used before]: the same of ends. */
    bool gathers_since; /* Gathers wait for what the block says, not for the slots before. */
    uint32_t weights[MATRICES_MAX];   /* The gather that a place's matrices wait for. */
    uint32_t weights_needed;          /* Places whose gather some op already waits for. */
    uint32_t gradients;               /* Places whose gradients are computed. */
    uint32_t buckets_reduced;         /* Units whose reduction is emitted. */
    uint32_t parts_sum[MATRICES_MAX]; /* The sum over ranks of tp that have parts of a block's
                                         gradients, by the place of the last of them. */
};

void lower_begin(struct lower *lower, struct arena *arena, const struct ranks *ranks,
                 struct program *program, struct error *reterr);

/* lower_streams.c: streams in a fixed order, each only where some op can lie on it. */
void lower_streams_add(struct lower *lower);

void lower_template_begin(struct lower *lower, const char *name);
/* Its index in the program; 0 after a failure. */
uint16_t lower_template_end(struct lower *lower);
/* The ops that follow know nothing of the ops before, but share the template. */
void lower_pass_begin(struct lower *lower);

/* Ops. Names live as long as the arena. */
uint32_t lower_op_add(struct lower *lower, struct program_op op);
uint32_t lower_compute(struct lower *lower, const char *name, const struct work *work,
                       uint32_t parts);
/* A plan that moves `elements` on a group, or LOWER_NONE if the group is one rank. `chunked`:
 * its parts are coupled with those of compute ops. */
uint32_t lower_plan(struct lower *lower, enum collective_kind kind, const struct group *group,
                    uint64_t elements, enum format format, bool chunked);
/* As lower_plan(), by a request of which all is set but its size and links. */
uint32_t lower_plan_request(struct lower *lower, const struct plan_request *request,
                            uint64_t elements, enum format format);
/* As lower_plan_request(), by a request whose size is set, but not the bits of an element. */
uint32_t lower_plan_bytes(struct lower *lower, const struct plan_request *request,
                          enum format format);
/* How many parts a compute op coupled with the plan has; 1 for LOWER_NONE. */
uint32_t lower_plan_chunks(const struct lower *lower, uint32_t plan);
/* "AllGather W_mlp" of the class "AllGather W_mlp (fsdp)"; `group_name` is what stands in
 * parentheses. */
uint32_t lower_collective(struct lower *lower, enum lower_stream stream, const char *what,
                          const char *group_name, uint32_t plan);
/* Needs are of data, and name the `array` that the op reads; NULL: of order. The collective's
 * operand is produced by `operand`, chunk by chunk if it has chunks. */
void lower_operand(struct lower *lower, uint32_t op, uint32_t operand, const char *array);
/* The end of an op of this template; its parts, one by one, as the compute op's own; all of a
 * stream in earlier slots. */
void lower_need_done(struct lower *lower, uint32_t op, uint32_t target, const char *array);
void lower_need_chunks(struct lower *lower, uint32_t op, uint32_t gather, const char *array);
void lower_need_before(struct lower *lower, uint32_t op, enum lower_stream stream,
                       const char *array);
/* The running activation or gradient: see `output` and `received`. */
void lower_need_output(struct lower *lower, uint32_t op, const char *array);
/* What goes from slot to slot, and gradients of weights of no one unit. */
extern const char lower_stream_activation[], lower_stream_gradient[], lower_weight_gradient[];
/* What a collective of weights or their gradients moves: "W_mlp" of "AllGather W_mlp". */
const char *lower_moved(const struct lower *lower, uint32_t op);

/* Takes `bytes` when the op begins, or gives back when it ends. LOWER_NONE: nothing. */
void lower_take(struct lower *lower, uint32_t op, enum program_memory memory, uint64_t bytes);
void lower_give(struct lower *lower, uint32_t op, enum program_memory memory, uint64_t bytes);

/* Bytes in the workload's formats. */
uint64_t lower_activation_bytes(const struct lower *lower, uint64_t elements);
uint64_t lower_weight_bytes(const struct lower *lower, uint64_t elements);
uint64_t lower_gradient_bytes(const struct lower *lower, uint64_t elements);

/* Weights and gradients (lower_weights.c). */
void lower_buckets_gather(struct lower *lower, const struct bucket *buckets, uint32_t bucket_count,
                          bool backward);
/* The op may begin as many slots ahead of its own as `prefetch_layers` says. */
void lower_prefetch_need(struct lower *lower, uint32_t op);
/* The op reads them; or it reads none, but passes behind it may, that wait for nothing else. */
void lower_weights_need(struct lower *lower, uint32_t op, uint8_t place, bool reads);
/* The op is the last of the pass to read the place's matrices. */
void lower_weights_release(struct lower *lower, uint32_t op, uint8_t place, bool backward);
/* The op computes the gradient of the place's matrices. */
void lower_gradient(struct lower *lower, uint32_t op, uint8_t place);
/* `after` LOWER_NONE: all compute of earlier slots. */
void lower_bucket_reduce(struct lower *lower, const struct bucket *bucket, uint32_t after);
/* Reduces the units of a layer, without its passes. */
void lower_layer_reduce(struct lower *lower);
/* Memory that a computed gradient takes: until it is reduced, or until the update. */
void lower_gradient_take(struct lower *lower, uint32_t op, uint64_t elements);
/* As lower_gradient_take(), of the experts' matrices. */
void lower_experts_gradient_take(struct lower *lower, uint32_t op, uint64_t elements);

static inline bool lower_has_input(const struct lower *lower)
{
    return lower->half != LOWER_WEIGHT;
}

/* Copies to and from the host (lower_offload.c), at the end of a layer's forward and backward
 * template, and around the update, by its moments. */
void lower_offload_forward(struct lower *lower);
void lower_offload_backward(struct lower *lower);
void lower_offload_update(struct lower *lower, uint32_t update, uint64_t moments_bytes);

/* An update behind the ops of a backward pass: of units whose gradients the template `backward`
 * reduces, `slots` slots back. */
struct delayed_update {
    const char *name;
    const struct bucket *buckets;
    uint32_t bucket_count; /* 0: nothing is updated. */
    uint16_t backward;
    uint32_t slots; /* 0: whatever has been reduced before. */
};

/* The ops of a template. `top`: of the last layer, which keeps its activations. */
void lower_layer_forward(struct lower *lower, bool top);
void lower_layer_backward(struct lower *lower, bool top, const struct delayed_update *update);
void lower_embedding(struct lower *lower, bool backward);
void lower_head(struct lower *lower, bool backward);

/* A module that predicts a further token (lower_ends.c), in one template: its place among
 * all of them, in the order of the forward pass. */
struct mtp_position {
    bool first, last;
};
static inline struct mtp_position mtp_position_at(const struct ranks *ranks, uint64_t index)
{
    return (struct mtp_position){.first = index == 0, .last = index + 1 == ranks->mtp_modules};
}
void lower_mtp_forward(struct lower *lower, struct mtp_position place);
void lower_mtp_backward(struct lower *lower, struct mtp_position place);
/* Weights that it shares with nothing; returns how many units. */
enum { LOWER_MTP_BUCKETS_MAX = LAYER_BUCKETS_MAX + 1 };
uint32_t lower_mtp_buckets(const struct ranks *ranks,
                           struct bucket ret_buckets[LOWER_MTP_BUCKETS_MAX]);
/* Its head, where that is a slot of its own. */
void lower_mtp_head(struct lower *lower, struct mtp_position place, bool backward);

/* The gather of a unit that is of no layer, or LOWER_NONE. */
uint32_t lower_bucket_gather(struct lower *lower, const struct bucket *bucket);
struct bucket lower_embedding_bucket(const struct ranks *ranks);
struct bucket lower_head_bucket(const struct ranks *ranks); /* The embedding's if tied. */
/* Elements that a use of the embedding or the head reads, and gathers where they are sharded. */
uint64_t lower_embedding_gathered(const struct ranks *ranks);
uint64_t lower_head_gathered(const struct ranks *ranks);
void lower_update_delayed(struct lower *lower, const struct delayed_update *update);
/* An update as a template of its own. */
uint16_t lower_update(struct lower *lower, const struct delayed_update *update);

#endif
