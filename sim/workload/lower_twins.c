/*
 * An embedding that is tied to the head, or that modules of a later stage look up too, lies on the
 * first and on that stage. Each has a gradient of its own: once they are reduced over
 * the data ranks, the two stages give them to one another and both update by the sum, so that the
 * copies stay equal. Two ranks that add up by an AllReduce would send as many bytes, by halves and
 * a message later.
 *
 * The last rank is the one before the first, around: such messages go where gradients go to the
 * rank before, and activations to the next, and are the last of their streams. A rank between them,
 * where modules have a stage of their own, is no neighbour and has streams of its own.
 */
#include "sim/workload/pipeline.h"

#include "sim/base/units.h"

/* Reductions of a rank's gradients, and all that they were computed by. */
static void own_need(struct lower *lower, uint32_t op)
{
    static const enum lower_stream streams[] = {LOWER_COMPUTE, LOWER_REDUCE_WEIGHTS,
                                                LOWER_REDUCE_DP};
    for (uint32_t i = 0; i < sizeof streams / sizeof *streams; i++)
        lower_need_before(lower, op, streams[i]);
}

struct program_block lower_twin_block(const struct schedule *schedule, bool head,
                                      uint16_t template_index, uint64_t arrivals)
{
    return (struct program_block){.template_index = template_index,
                                  .phase = PROGRAM_PHASE_UPDATE,
                                  .name = head ? "tied head" : "tied embedding",
                                  .repeat = 1,
                                  .layer_first = -1,
                                  .microbatch = schedule->microbatch_count - 1,
                                  .arrivals = arrivals};
}

uint16_t lower_twin(struct lower *lower, uint32_t other, bool head)
{
    const struct local *local = lower->local;
    int32_t const apart = (int32_t)other;
    uint64_t const elements = units_ceil_divide(local->vocabulary_elements, local->state_shards);
    uint64_t const bytes = lower_gradient_bytes(lower, elements);
    struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                         .group = local->mesh->axis[MESH_PP].group,
                                         .offset = {head ? -apart : apart}};
    bool const own = local->predictors_apart;
    enum lower_stream const send_streams[] = {own ? LOWER_SEND_TWIN : LOWER_SEND_PREVIOUS,
                                              own ? LOWER_SEND_FIRST : LOWER_SEND_NEXT};
    enum lower_stream const streams[] = {own ? LOWER_RECEIVE_TWIN : LOWER_RECEIVE_PREVIOUS,
                                         own ? LOWER_RECEIVE_FIRST : LOWER_RECEIVE_NEXT};
    lower_template_begin(lower, "tied gradients");
    uint32_t const plan =
        lower_plan_request(lower, &request, elements, local->plan->formats.gradients);
    if (plan == LOWER_NONE) return 0;
    struct program_op const send = {.name = "send tied gradients",
                                    .class_name = "send tied gradients",
                                    .kind = PROGRAM_OP_SEND,
                                    .stream = lower->stream[send_streams[head]],
                                    .parts = 1,
                                    .index = (uint16_t)plan};
    struct program_op const receive = {.name = "receive tied gradients",
                                       .class_name = "receive tied gradients",
                                       .kind = PROGRAM_OP_RECEIVE,
                                       .stream = lower->stream[streams[head]],
                                       .parts = 1};
    struct work const work = {
        .math_format = local->plan->formats.gradients,
        .vector_flop = elements,
        .hbm_read_bytes = 2 * bytes,
        .hbm_write_bytes = bytes,
    };
    own_need(lower, lower_op_add(lower, send));
    uint32_t const received = lower_op_add(lower, receive);
    own_need(lower, received);
    uint32_t const sum = lower_compute(lower, "tied gradients.sum", &work, 1);
    lower_need_done(lower, sum, received);
    lower_take(lower, received, PROGRAM_MEMORY_BUFFERS, bytes);
    lower_give(lower, sum, PROGRAM_MEMORY_BUFFERS, bytes);
    return lower_template_end(lower);
}
