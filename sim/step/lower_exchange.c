/* Gradients that two ranks of a pipeline give to one another, each to add the other's to its own.
 */
#include "sim/step/pipeline.h"

/* The reductions of the rank's own gradients, and all that they were computed by. */
static void own_need(struct lower *lower, uint32_t op, bool layers, const char *array)
{
    static const enum lower_stream streams[] = {
        LOWER_COMPUTE, LOWER_REDUCE_WEIGHTS, LOWER_REDUCE_DP, LOWER_REDUCE_EXPERTS, LOWER_SUM_KV};
    uint32_t const all = sizeof streams / sizeof *streams, of_vocabulary = 3;
    for (uint32_t i = 0; i < (layers ? all : of_vocabulary); i++)
        lower_need_before(lower, op, streams[i], array);
}

void lower_exchange_send(struct lower *lower, const struct lower_exchange *exchange,
                         const struct plan_request *request)
{
    uint32_t const plan = lower_plan_request(lower, request, exchange->elements,
                                             lower->local->plan->formats.gradients);
    if (lower->build.status != STATUS_OK) return;
    SIM_ASSERT(plan != LOWER_NONE); /* Its group is pp, which has several ranks. */
    uint32_t const sent =
        lower_op_add(lower, (struct program_op){.name = exchange->send,
                                                .class_name = exchange->send,
                                                .kind = PROGRAM_OP_SEND,
                                                .stream = lower->stream[exchange->send_stream],
                                                .parts = 1,
                                                .index = (uint16_t)plan});
    own_need(lower, sent, exchange->layers, lower_weight_gradient);
}

void lower_exchange_sum(struct lower *lower, const struct lower_exchange *exchange)
{
    uint64_t const bytes = lower_gradient_bytes(lower, exchange->elements);
    struct work const work = {
        .math_format = lower->local->plan->formats.gradients,
        .vector_flop = exchange->elements,
        .hbm_read_bytes = 2 * bytes,
        .hbm_write_bytes = bytes,
    };
    if (lower->build.status != STATUS_OK) return;
    uint32_t const received =
        lower_op_add(lower, (struct program_op){.name = exchange->receive,
                                                .class_name = exchange->receive,
                                                .kind = PROGRAM_OP_RECEIVE,
                                                .stream = lower->stream[exchange->receive_stream],
                                                .parts = 1});
    own_need(lower, received, exchange->layers, NULL);
    uint32_t const sum = lower_compute(lower, exchange->sum, &work, 1);
    lower_need_done(lower, sum, received, "copy");
    lower_take(lower, received, PROGRAM_MEMORY_BUFFERS, bytes);
    lower_give(lower, sum, PROGRAM_MEMORY_BUFFERS, bytes);
}
