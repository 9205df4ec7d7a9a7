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
#include "sim/schedule/schedule.h"
#include "sim/step/ranks.h"

static const uint32_t LOWER_NONE = UINT32_MAX; /* BUILDER_NONE */

/* By the kind of their ops: compute, collectives, sends, receives, copies. */
enum lower_stream {
    LOWER_COMPUTE,
    LOWER_GATHER_WEIGHTS,
    LOWER_REDUCE_WEIGHTS,
    LOWER_GATHER_TP,
    LOWER_REDUCE_TP,
    LOWER_GATHER_TP_D,
    LOWER_REDUCE_TP_D,
    LOWER_SUM_TP_D,
    LOWER_REDUCE_DP,
    LOWER_GATHER_DP,
    LOWER_SUM_KV,     /* Sums of weights' gradients of heads that ranks of tp have parts of. */
    LOWER_SUM_LOGITS, /* Sums of results that ranks of tp have parts of. */
    LOWER_SUM_PP,     /* Sums over ranks of a pipeline. */
    LOWER_SUM_ROWS, /* Sums of weights' gradients that ranks of tp have from parts of the tokens. */
    LOWER_DISPATCH, /* Tokens to the ranks that have their experts. */
    LOWER_COMBINE,  /* Tokens back from their experts. */
    LOWER_REDUCE_EXPERTS,
    LOWER_GATHER_EXPERTS,
    LOWER_GATHER_SEQUENCE,
    LOWER_GATHER_KV, /* Gathers of a cache that ranks of tp with the same heads share. */
    LOWER_REDUCE_SEQUENCE,
    LOWER_REDUCE_KV,
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

/* A module: the part of a model that a template is of. */
enum lower_module {
    MODULE_NOTHING, /* A stage that has neither layers nor ends in a pass hands on what it gets. */
    MODULE_EMBEDDING,
    MODULE_MTP,      /* A module that predicts a further token. */
    MODULE_MTP_HEAD, /* The head of a module that lies on another stage. */
    MODULE_HEAD,
    MODULE_LAYER, /* A layer of the first kind of the model's layers. Other kinds follow. */
    MODULE_COUNT = MODULE_LAYER + LAYER_KINDS_MAX,
};

static inline bool lower_is_layer(uint32_t module)
{
    return module >= MODULE_LAYER;
}

static inline enum lower_module lower_module_of(uint32_t kind)
{
    return (enum lower_module)(MODULE_LAYER + kind);
}

/* The kind of the layer that a module is; of all other modules, MTP among them, the last layer's.
 */
static inline uint32_t lower_kind_of(const struct ranks *ranks, uint32_t module)
{
    return lower_is_layer(module) ? module - MODULE_LAYER : ranks_last_kind(ranks);
}

/* The module of what is done with weights alone, as updates are: for all layers with equal weights
 * that of their first kind, and any other module itself. */
static inline enum lower_module lower_weights_module(const struct ranks *ranks, uint32_t module)
{
    if (!lower_is_layer(module)) return (enum lower_module)module;
    return lower_module_of(ranks->layer[module - MODULE_LAYER].weights);
}

static inline enum lower_module lower_weights_at(const struct ranks *ranks, uint64_t layer)
{
    return lower_weights_module(ranks, lower_module_of(ranks_kind_at(ranks, layer)));
}

/* What a template does: a pass of the module, or something with all of its gradients. Between
 * the two halves of a backward pass, what the weight gradients read stays: inputs of the matmuls
 * and gradients of their outputs, gathered. */
enum lower_act {
    ACT_FORWARD = SCHEDULE_FORWARD,
    ACT_BACKWARD = SCHEDULE_BACKWARD,
    ACT_INPUT = SCHEDULE_INPUT,
    ACT_WEIGHT = SCHEDULE_WEIGHT,
    ACT_UPDATE = SCHEDULE_KIND_COUNT,
    ACT_REDUCE,
    ACT_GATHER,
    ACT_SEND_COPY,  /* To the rank that holds the same stages. */
    ACT_SUM_COPIES, /* Adds what comes from that rank. */
    ACT_TIE,        /* Gradients of a matrix on two stages go each way and are added. */
    ACT_NORM,       /* The norm of all gradients of a rank, by which updates clip. */
    ACT_AGAIN,      /* The forward pass again, ahead of the backward passes of a group of layers. */
    ACT_TIE_SWAP,   /* The messages of ACT_TIE, ahead of the last weight gradients of layers. */
    ACT_TIE_SUM,    /* The sum of ACT_TIE, behind them. */
    ACT_COUNT,
};

/* What a template does with the gathered weights of its module. */
enum lower_weights {
    LOWER_GATHERS, /* Gathers the weights for itself. */
    LOWER_TAKES,   /* Gathers the weights, and they stay. */
    LOWER_HOLDS,   /* The weights are there already. */
};

/* Whether a template is this, of MODULE_LAYER for layers of all kinds. */
static inline bool lower_is(const struct program_template *template, enum lower_module module,
                            enum lower_act act)
{
    uint32_t const found = lower_is_layer(template->module) ? MODULE_LAYER : template->module;
    return found == (uint32_t)module && template->act == (uint32_t)act;
}

/* The place of a module that predicts a further token among all such modules, in the order of the
 * forward pass. */
struct mtp_position {
    bool first, last;
};
static inline struct mtp_position mtp_position_at(const struct ranks *ranks, uint64_t index)
{
    return (struct mtp_position){.first = index == 0, .last = index + 1 == ranks->mtp.modules};
}

/* What one pass does in a template. Bytes alone, so that equal parts are equal byte by byte. */
struct lower_part {
    uint8_t module;  /* enum lower_module */
    uint8_t act;     /* enum lower_act */
    uint8_t keeping; /* enum lower_weights */
    uint8_t updates; /* enum lower_module: what is updated behind the pass. */
    uint8_t pass;    /* The pass of a step of inference, or the first one that is like it. */
    uint8_t send;    /* enum pipeline_way */
    uint8_t arrays;  /* Number of arrays [B_X, D] between blocks that are sent. */
    uint8_t group;   /* enum ranks_group */
    bool around;     /* The message goes from the last rank to the first, or back. */
    bool receives;   /* The input comes as a message. */
    bool top;        /* A layer that keeps its activations where others store them on the host. */
    bool updated;    /* Weights of a forward pass come from the last step's update, and are gathered
                        from ranks that each have updated a part of the weights. */
    bool head_stays; /* Weights of the head stay from its forward pass to its backward pass, which
                        is the next of the rank. */
    bool since;      /* Gathers wait for what the block says, not for the slots before. */
    bool last;       /* Gradients are reduced after the pass. */
    bool last_lookup; /* The gradient of an embedding that both ends use is reduced after the pass.
                       */
    struct mtp_position place; /* The place of a module that predicts a further token. */
};

/* Graphs of the model's parts, for one pass of the step. */
struct lower_shape {
    const struct ranks *ranks;
    struct lower_graph
        *graph[BLOCK_PART_COUNT][LAYER_KINDS_MAX]; /* [part][kind of layer, or of
                              ends whether they are used before] (emit.c), or NULL. */
};

struct lower {
    struct builder build;
    struct lower_shape *shapes; /* [pass] In training one serves all. */
    uint32_t shape_count;
    struct lower_shape *shape;          /* The shape of the template under construction. */
    const struct ranks *ranks;          /* Ranks of `shape`. */
    uint8_t stream[LOWER_STREAM_COUNT]; /* In the program, or PROGRAM_STREAMS_MAX. */
    /* The request whose algorithm cannot run, once build.status says so. */
    struct plan_request refused;

    /* The template under construction. */
    /* The part that is emitted: of a pair the second pass, once it has begun. */
    struct lower_part part;
    uint32_t kind;                   /* lower_kind_of() of the part's module. */
    const struct ranks_layer *layer; /* Weights of layers of that kind. */
    uint32_t pass_first;             /* The first op of the part. */
    uint32_t output;   /* The op whose end makes the running activation (or its gradient)
                          available; LOWER_NONE: it comes from earlier slots. */
    uint32_t received; /* The RECEIVE that its input comes by, or LOWER_NONE. */
    uint32_t kept_reader[PROGRAM_STREAMS_MAX]; /* The first op of a stream that reads what the
                                                  forward pass has kept, or LOWER_NONE. */
    uint32_t weights[MATRICES_MAX];            /* The gather that a place's matrices wait for. */
    uint32_t weights_needed;                   /* Places whose gather some op already waits for. */
    uint32_t gradients;                        /* Places whose gradients are computed. */
    uint32_t buckets_reduced;                  /* Units whose reduction is emitted. */
    struct lower_line *line; /* [template] (lower_overlap.c); NULL: nothing is waited for. */
    uint32_t issued[PROGRAM_OPS_MAX]; /* The op before which, or as which, a collective is issued
                                         that overlaps with a product; LOWER_NONE for others. */
    uint32_t parts_sum[MATRICES_MAX]; /* The sum over ranks of tp that have parts of a block's
                                         gradients, by the place of the block's last gradient. */
};

/* Takes a struct lower from the arena, with ranks of each pass; those of the last one are given,
 * and have to stay. */
enum status lower_begin(struct arena *arena, const struct ranks *ranks, struct program *program,
                        struct lower **ret_lower, struct error *reterr);

/* lower_streams.c: streams in a fixed order, each only where some op can lie on it. */
void lower_streams_add(struct lower *lower);

void lower_template_begin(struct lower *lower, const char *name, const struct lower_part *part);
/* Ends the template and returns its index in the program; 0 after a failure. */
uint16_t lower_template_end(struct lower *lower);
/* The ops that follow know nothing of the ops before, but share the template. */
void lower_pass_begin(struct lower *lower, const struct lower_part *part);

/* Ops. Names live as long as the arena. */
uint32_t lower_op_add(struct lower *lower, struct program_op op);
uint32_t lower_compute(struct lower *lower, const char *name, const struct work *work,
                       uint32_t parts);
void lower_purpose_set(struct lower *lower, uint32_t op, enum program_purpose purpose);
/* A plan that moves `elements` on a group, or LOWER_NONE if the group is one rank. */
uint32_t lower_plan(struct lower *lower, enum collective_kind kind, const struct group *group,
                    uint64_t elements, enum format format);
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
/* The running activation or gradient: see `output` and `received`. `gradient`: which of the two,
 * whatever the array is called. */
void lower_need_output(struct lower *lower, uint32_t op, bool gradient, const char *array);
/* What goes from slot to slot, and gradients of weights of no one module. */
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

/* Collectives that compute waits for (lower_overlap.c): of the template under construction, once
 * all its ops are there; and from slot to slot, once all templates are there. */
void lower_overlap_template(struct lower *lower);
void lower_overlap_slots(struct lower *lower);
/* Whether a plan is waited for as it goes between slices. */
bool lower_overlap_crosses(const struct lower *lower, const struct plan_request *request);

/* Whether compute waits for an op where the program issues it. */
bool lower_overlap_waits(const struct lower *lower, const struct program_op *op);

/* What asynchronous collectives take from compute (lower_async.c): of the template under
 * construction. */
void lower_async(struct lower *lower);

/* Weights and gradients (lower_weights.c). */
void lower_buckets_gather(struct lower *lower, const struct bucket *buckets, uint32_t bucket_count,
                          bool backward);
/* The op may begin as many slots ahead of its own as `prefetch_layers` says. */
void lower_prefetch_need(struct lower *lower, uint32_t op);
/* The op reads them; or it reads none, but passes behind it may, that wait for nothing else. */
void lower_weights_need(struct lower *lower, uint32_t op, uint8_t place, bool reads);
/* The op is the last of the pass to read the place's matrices. */
void lower_weights_release(struct lower *lower, uint32_t op, uint8_t place, bool backward);
/* The op computes the gradient of the place's matrices, of which `sum` adds up what ranks of tp
 * have parts of, or LOWER_NONE. */
void lower_gradient(struct lower *lower, uint32_t op, uint8_t place, uint32_t sum);
/* `after` LOWER_NONE: all compute of earlier slots. */
void lower_bucket_reduce(struct lower *lower, const struct bucket *bucket, uint32_t after);
/* Reduces the buckets of a layer, without its passes. */
void lower_layer_reduce(struct lower *lower);
/* Memory that a computed gradient takes: until it is reduced, or until the update. */
void lower_gradient_take(struct lower *lower, uint32_t op, uint64_t elements, bool experts);

static inline bool lower_has_input(const struct lower *lower)
{
    return lower->part.act != ACT_WEIGHT;
}

/* Copies to and from the host (lower_offload.c), at the end of a layer's forward and backward
 * template, and around the update, by its moments. */
void lower_offload_forward(struct lower *lower);
void lower_offload_backward(struct lower *lower);
void lower_offload_update(struct lower *lower, uint32_t update, uint64_t moments_bytes);

/* An update behind the ops of a backward pass: of buckets whose gradients the template `backward`
 * reduces, `slots` slots back. */
struct delayed_update {
    const char *name;
    const struct bucket *buckets;
    uint32_t bucket_count; /* 0: nothing is updated. */
    uint16_t backward;
    uint32_t slots; /* 0: whatever has been reduced before. */
};

void lower_update(struct lower *lower, const struct delayed_update *update);
/* Whether ranks of ep alone hold different gradients: no optimizer's state is sharded over them. */
bool lower_norm_has_experts(const struct ranks *ranks);
/* The norm of all gradients of a rank, `elements` of which are its own to update. */
void lower_norm(struct lower *lower, uint64_t elements);
/* Elements of the buckets whose optimizer state lies on one chip. */
uint64_t lower_state_elements(const struct ranks *ranks, const struct bucket *buckets,
                              uint32_t bucket_count);
/* Gathers updated weights once whatever was computed before has ended. */
void lower_updated_gather(struct lower *lower, const struct bucket *buckets, uint32_t bucket_count);

/* The modules of a model (lower_ends.c): the ops of the part's pass. */
void lower_module_emit(struct lower *lower);
/* Weights that the module shares with no other; returns how many buckets. */
enum { LOWER_BUCKETS_MAX = LAYER_BUCKETS_MAX + 1 };
uint32_t lower_buckets_of(const struct ranks *ranks, enum lower_module module,
                          struct bucket ret_buckets[LOWER_BUCKETS_MAX]);
/* Bytes of weights that a pass of the module gathers where they are sharded. */
uint64_t lower_gathered_bytes(const struct lower *lower, enum lower_module module);

#endif
