#include "sim/workload/lower.h"

/* How long an op can wait for what a stream carries: what program_stream.urgency is here. Several
 * streams have the same, and take turns. */
enum {
    URGENCY_ACTIVATIONS, /* And their gradients: the next op of this rank or another reads them. */
    URGENCY_WEIGHTS,     /* Of a layer to come. They are gathered ahead of it. */
    URGENCY_GRADIENTS,   /* Of weights. The update at the end of the step reads their sums. */
};

static uint8_t stream_urgency(uint32_t stream)
{
    switch (stream) {
    case LOWER_GATHER_WEIGHTS:
    case LOWER_GATHER_DP: /* Updated weights, as those of experts. */
    case LOWER_GATHER_EXPERTS:
        return URGENCY_WEIGHTS;
    case LOWER_REDUCE_WEIGHTS:
    case LOWER_REDUCE_EXPERTS:
    case LOWER_REDUCE_DP:
    case LOWER_SUM_KV:
    case LOWER_SEND_COPY:
    case LOWER_SEND_TWIN: /* Gradients of an embedding that several stages hold. */
    case LOWER_SEND_FIRST:
        return URGENCY_GRADIENTS;
    default:
        return URGENCY_ACTIVATIONS;
    }
}

static enum program_op_kind stream_kind(uint32_t stream)
{
    if (stream == LOWER_COMPUTE) return PROGRAM_OP_COMPUTE;
    if (stream < LOWER_SEND_NEXT) return PROGRAM_OP_COLLECTIVE;
    if (stream < LOWER_RECEIVE_PREVIOUS) return PROGRAM_OP_SEND;
    return stream < LOWER_STORE_ACTIVATIONS ? PROGRAM_OP_RECEIVE : PROGRAM_OP_COPY;
}

void lower_streams_add(struct lower *lower)
{
    const struct local *local = lower->local;
    const char *shards = mesh_role_name(local->shard_role);
    bool const tp = local->tp > 1;
    bool const dp = local->replicas > 1;
    bool const parts = local->sequence_parts > 1;
    struct {
        bool used;
        const char *verb, *of;
    } const table[LOWER_STREAM_COUNT] = {
        [LOWER_COMPUTE] = {true, "compute", ""},
        [LOWER_GATHER_WEIGHTS] = {local->shards > 1, "gather ", shards},
        [LOWER_REDUCE_WEIGHTS] = {local->shards > 1, "reduce ", shards},
        [LOWER_GATHER_TP] = {tp, "gather ", "tp"},
        [LOWER_REDUCE_TP] = {tp, "reduce ", "tp"},
        [LOWER_REDUCE_DP] = {dp, "reduce ", local->replica_name},
        [LOWER_GATHER_DP] = {dp && local->plan->zero != 0, "gather ", local->replica_name},
        [LOWER_SUM_KV] = {local->partial_ranks > 1, "kv", ""},
        [LOWER_SUM_LOGITS] = {local_sums_logits(local), "sum ", "tp"},
        [LOWER_DISPATCH] = {local->experts.ranks > 1, "dispatch ", "ep"},
        [LOWER_COMBINE] = {local->experts.ranks > 1, "combine ", "ep"},
        [LOWER_REDUCE_EXPERTS] = {local->experts.replicas > 1, "reduce ", "experts"},
        [LOWER_GATHER_EXPERTS] = {local->experts.replicas > 1 && local->plan->zero != 0, "gather ",
                                  "experts"},
        [LOWER_GATHER_SEQUENCE] = {parts, local_turns(local) ? "turn " : "gather ", "sequence"},
        [LOWER_REDUCE_SEQUENCE] = {parts && !local_turns(local), "reduce ", "sequence"},
        [LOWER_HOME_SEQUENCE] = {local_rings(local), "home ", "sequence"},
        [LOWER_SEND_NEXT] = {local->pp > 1, "send ", "next"},
        [LOWER_SEND_PREVIOUS] = {local->pp > 1, "send ", "previous"},
        [LOWER_SEND_COPY] = {local->copies > 1, "send ", "copy"},
        [LOWER_SEND_TWIN] = {local->predictors_apart, "send ", "mtp"},
        [LOWER_SEND_FIRST] = {local->predictors_apart, "send ", "first"},
        [LOWER_RECEIVE_PREVIOUS] = {local->pp > 1, "receive ", "previous"},
        [LOWER_RECEIVE_NEXT] = {local->pp > 1, "receive ", "next"},
        [LOWER_RECEIVE_COPY] = {local->copies > 1, "receive ", "copy"},
        [LOWER_RECEIVE_TWIN] = {local->predictors_apart, "receive ", "mtp"},
        [LOWER_RECEIVE_FIRST] = {local->predictors_apart, "receive ", "first"},
        [LOWER_STORE_ACTIVATIONS] = {local_offloads_activations(local), "store ", "activations"},
        [LOWER_LOAD_ACTIVATIONS] = {local_offloads_activations(local), "load ", "activations"},
        [LOWER_LOAD_OPTIMIZER] = {local_offloads_optimizer(local), "load ", "optimizer"},
        [LOWER_STORE_OPTIMIZER] = {local_offloads_optimizer(local), "store ", "optimizer"},
    };
    struct program *program = lower->build.program;
    for (uint32_t s = 0; s < LOWER_STREAM_COUNT; s++) {
        lower->stream[s] = PROGRAM_STREAMS_MAX;
        if (!table[s].used || lower->build.status != STATUS_OK) continue;
        lower->stream[s] = builder_stream(
            &lower->build,
            (struct program_stream){
                .name = builder_format(&lower->build, "%s%s", table[s].verb, table[s].of),
                .kind = stream_kind(s),
                .urgency = stream_urgency(s),
            });
        if (lower->stream[s] == PROGRAM_STREAMS_MAX)
            (void)builder_fail(&lower->build, STATUS_UNSUPPORTED, "/mesh",
                               "with these mesh axes, and what is offloaded, there are more than "
                               "the %d streams that a chip has",
                               PROGRAM_STREAMS_MAX);
    }
    if (local->pp == 1 || lower->build.status != STATUS_OK) return;
    program->stream[lower->stream[LOWER_SEND_NEXT]].inbox = lower->stream[LOWER_RECEIVE_PREVIOUS];
    program->stream[lower->stream[LOWER_SEND_PREVIOUS]].inbox = lower->stream[LOWER_RECEIVE_NEXT];
    if (local->copies > 1)
        program->stream[lower->stream[LOWER_SEND_COPY]].inbox = lower->stream[LOWER_RECEIVE_COPY];
    if (!local->predictors_apart) return;
    program->stream[lower->stream[LOWER_SEND_TWIN]].inbox = lower->stream[LOWER_RECEIVE_FIRST];
    program->stream[lower->stream[LOWER_SEND_FIRST]].inbox = lower->stream[LOWER_RECEIVE_TWIN];
}
