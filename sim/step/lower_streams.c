#include "sim/step/emit.h"

static enum program_op_kind stream_kind(uint32_t stream)
{
    if (stream == LOWER_COMPUTE) return PROGRAM_OP_COMPUTE;
    if (stream < LOWER_SEND_NEXT) return PROGRAM_OP_COLLECTIVE;
    if (stream < LOWER_RECEIVE_PREVIOUS) return PROGRAM_OP_SEND;
    return stream < LOWER_STORE_ACTIVATIONS ? PROGRAM_OP_RECEIVE : PROGRAM_OP_COPY;
}

/* Mesh axes are bits of what a stream is of. */
#define X(name, text, help)                                                                        \
    _Static_assert((uint32_t)STREAM_PLACE_##name == (uint32_t)MESH_##name, "in the same order");
MESH_ROLE_TABLE(X)
#undef X

/* Of ranks that share sequences (`cp`), or that hold the same heads of a cache. */
static struct stream_use gathers_of(const struct ranks *ranks, bool cp)
{
    bool const by_batch = ranks_serves(ranks) && ranks->inference.batch_ways > 1;
    bool const exchanges = cp ? ranks_has_ulysses(ranks) : by_batch;
    return (struct stream_use){exchanges ? STREAM_EXCHANGE : STREAM_GATHER,
                               cp ? STREAM_OF_SEQUENCE : STREAM_OF_KV};
}

/* Which stream takes what another stage sends. */
static void inboxes_set(struct lower *lower)
{
    struct program *program = lower->build.program;
    program->stream[lower->stream[LOWER_SEND_NEXT]].inbox = lower->stream[LOWER_RECEIVE_PREVIOUS];
    program->stream[lower->stream[LOWER_SEND_PREVIOUS]].inbox = lower->stream[LOWER_RECEIVE_NEXT];
    if (lower->ranks->model_replicas > 1)
        program->stream[lower->stream[LOWER_SEND_COPY]].inbox = lower->stream[LOWER_RECEIVE_COPY];
    if (!lower->ranks->mtp.apart) return;
    program->stream[lower->stream[LOWER_SEND_TIED]].inbox = lower->stream[LOWER_RECEIVE_FIRST];
    program->stream[lower->stream[LOWER_SEND_FIRST]].inbox = lower->stream[LOWER_RECEIVE_TIED];
}

static void stream_add(struct lower *lower, uint32_t s, enum lower_urgency urgency,
                       struct stream_use use)
{
    struct program_stream const stream = {
        .name = s == LOWER_COMPUTE ? "compute" : NULL,
        .use = use,
        .kind = stream_kind(s),
        .urgency = (uint8_t)urgency,
    };
    if (lower->build.status != STATUS_OK) return;
    lower->stream[s] = builder_stream(&lower->build, stream);
    if (lower->stream[s] == PROGRAM_STREAMS_MAX)
        (void)builder_fail(&lower->build, STATUS_UNSUPPORTED, "/mesh",
                           "with these mesh axes, and what is offloaded, there are more than the "
                           "%d streams that a chip has",
                           PROGRAM_STREAMS_MAX);
}

void lower_streams_add(struct lower *lower)
{
    const struct ranks *ranks = lower->ranks;
    bool const updates = !ranks_serves(ranks);
    uint32_t const shards = 1u << ranks->shard_role;
    uint32_t const replicas = mesh_replica_roles(ranks->mesh, false);
    bool const dp = updates && ranks->replicas.count > 1;
    enum lower_urgency const soon = LOWER_URGENCY_ACTIVATIONS, ahead = LOWER_URGENCY_WEIGHTS,
                             late = LOWER_URGENCY_GRADIENTS;
    bool moved[LOWER_STREAM_COUNT] = {false}; /* By what graphs move. */
    bool const experts = updates && ranks->experts.replicas.count > 1;
    bool const zero = ranks->plan->zero != 0;
    bool const activations = ranks_offloads_activations(ranks);
    bool const optimizer = ranks_offloads_optimizer(ranks);
    bool const clips = ranks_clips(ranks);
    emit_streams(lower, moved);
    struct {
        bool used;
        enum lower_urgency urgency;
        struct stream_use use;
    } const table[LOWER_STREAM_COUNT] = {
        [LOWER_COMPUTE] = {true, soon, {STREAM_NO_VERB, 0}},
        [LOWER_GATHER_WEIGHTS] = {ranks->shards > 1, ahead, {STREAM_GATHER, shards}},
        [LOWER_REDUCE_WEIGHTS] = {updates && ranks->shards > 1, late, {STREAM_REDUCE, shards}},
        [LOWER_GATHER_TP] = {ranks_gathers_messages(ranks), soon, {STREAM_GATHER, STREAM_OF_TP}},
        [LOWER_REDUCE_TP] = {clips && ranks->tp > 1, soon, {STREAM_REDUCE, STREAM_OF_TP}},
        [LOWER_GATHER_TP_D] = {false, soon, {STREAM_GATHER, STREAM_OF_TP_D}},
        [LOWER_REDUCE_TP_D] = {clips && ranks_tp_d(ranks) > 1,
                               soon,
                               {STREAM_REDUCE, STREAM_OF_TP_D}},
        [LOWER_SUM_TP_D] = {false, soon, {STREAM_SUM, STREAM_OF_TP_D}},
        [LOWER_REDUCE_DP] = {dp, late, {STREAM_REDUCE, replicas}},
        /* Updated weights, as those of experts. */
        [LOWER_GATHER_DP] = {dp && zero, ahead, {STREAM_GATHER, replicas}},
        [LOWER_SUM_KV] = {false, late, {STREAM_NO_VERB, STREAM_OF_KV}},
        [LOWER_SUM_LOGITS] = {false, soon, {STREAM_SUM, STREAM_OF_TP}},
        [LOWER_SUM_PP] = {ranks_sums_norm_over_stages(ranks), late, {STREAM_SUM, 1u << MESH_PP}},
        [LOWER_SUM_ROWS] = {false, late, {STREAM_SUM, STREAM_OF_TP}},
        [LOWER_DISPATCH] = {false, soon, {STREAM_DISPATCH, STREAM_OF_EP}},
        [LOWER_COMBINE] = {clips && lower_norm_has_experts(ranks),
                           soon,
                           {STREAM_COMBINE, STREAM_OF_EP}},
        [LOWER_REDUCE_EXPERTS] = {experts, late, {STREAM_REDUCE, STREAM_OF_EXPERTS}},
        [LOWER_GATHER_EXPERTS] = {experts && zero, ahead, {STREAM_GATHER, STREAM_OF_EXPERTS}},
        [LOWER_GATHER_SEQUENCE] = {false, soon, gathers_of(ranks, true)},
        [LOWER_GATHER_KV] = {false, soon, gathers_of(ranks, false)},
        [LOWER_REDUCE_SEQUENCE] = {false, soon, {STREAM_REDUCE, STREAM_OF_SEQUENCE}},
        [LOWER_REDUCE_KV] = {false, soon, {STREAM_REDUCE, STREAM_OF_KV}},
        [LOWER_HOME_SEQUENCE] = {false, soon, {STREAM_HOME, STREAM_OF_SEQUENCE}},
        [LOWER_SEND_NEXT] = {ranks->pp > 1, soon, {STREAM_SEND, STREAM_OF_NEXT}},
        [LOWER_SEND_PREVIOUS] = {ranks->pp > 1, soon, {STREAM_SEND, STREAM_OF_PREVIOUS}},
        [LOWER_SEND_COPY] = {ranks->model_replicas > 1, late, {STREAM_SEND, STREAM_OF_COPY}},
        /* Gradients of an embedding that several stages hold. */
        [LOWER_SEND_TIED] = {ranks->mtp.apart, late, {STREAM_SEND, STREAM_OF_MTP}},
        [LOWER_SEND_FIRST] = {ranks->mtp.apart, late, {STREAM_SEND, STREAM_OF_FIRST}},
        [LOWER_RECEIVE_PREVIOUS] = {ranks->pp > 1, soon, {STREAM_RECEIVE, STREAM_OF_PREVIOUS}},
        [LOWER_RECEIVE_NEXT] = {ranks->pp > 1, soon, {STREAM_RECEIVE, STREAM_OF_NEXT}},
        [LOWER_RECEIVE_COPY] = {ranks->model_replicas > 1, soon, {STREAM_RECEIVE, STREAM_OF_COPY}},
        [LOWER_RECEIVE_TIED] = {ranks->mtp.apart, soon, {STREAM_RECEIVE, STREAM_OF_MTP}},
        [LOWER_RECEIVE_FIRST] = {ranks->mtp.apart, soon, {STREAM_RECEIVE, STREAM_OF_FIRST}},
        [LOWER_STORE_ACTIVATIONS] = {activations, soon, {STREAM_STORE, STREAM_OF_ACTIVATIONS}},
        [LOWER_LOAD_ACTIVATIONS] = {activations, soon, {STREAM_LOAD, STREAM_OF_ACTIVATIONS}},
        [LOWER_LOAD_OPTIMIZER] = {optimizer, soon, {STREAM_LOAD, STREAM_OF_OPTIMIZER}},
        [LOWER_STORE_OPTIMIZER] = {optimizer, soon, {STREAM_STORE, STREAM_OF_OPTIMIZER}},
    };
    for (uint32_t s = 0; s < LOWER_STREAM_COUNT; s++) {
        lower->stream[s] = PROGRAM_STREAMS_MAX;
        if (table[s].used || moved[s]) stream_add(lower, s, table[s].urgency, table[s].use);
    }
    if (ranks->pp > 1 && lower->build.status == STATUS_OK) inboxes_set(lower);
}
