/*
 * Two copies of a model over the ranks of a pipeline: each stage lies on two ranks, i and p-1-i,
 * and each of these has gradients of half of the microbatches. Once they are reduced over the data
 * ranks, a stage's units go to the other rank, as soon as its last backward pass has ended; before
 * the update the other's come, and both are added up, so that the copies stay equal. Two ranks that
 * add up by an AllReduce would send as many bytes, by halves and a message later.
 *
 * A message is all of a unit, and they come in the order of the other rank's list, which is this
 * one's with the two halves of the microbatches exchanged.
 */
#include "sim/base/units.h"
#include "sim/workload/pipeline.h"

/* Gradients of the units as the data ranks share them: what each of them has the sum of. */
static uint64_t shared_elements(const struct lower *lower, const struct lower_behind *of)
{
    uint64_t elements = 0;
    for (uint32_t u = 0; u < of->unit_count; u++)
        elements += units_ceil_divide(of->units[u].elements,
                                      local_state_shards(lower->local, of->units[u].experts));
    return elements;
}

/* Reductions of the rank's own gradients, and all that they were computed by. */
static void own_need(struct lower *lower, uint32_t op)
{
    static const enum lower_stream streams[] = {
        LOWER_COMPUTE, LOWER_REDUCE_WEIGHTS, LOWER_REDUCE_DP, LOWER_REDUCE_EXPERTS, LOWER_SUM_KV};
    for (uint32_t i = 0; i < sizeof streams / sizeof *streams; i++)
        lower_need_before(lower, op, streams[i]);
}

uint16_t lower_copy_send(struct lower *lower, const struct lower_behind *of)
{
    const struct local *local = lower->local;
    struct plan_request const request = {
        .kind = COLLECTIVE_PERMUTE, .group = local->mesh->axis[MESH_PP].group, .mirrors = true};
    lower_template_begin(lower, lower_format(lower, "send %s", of->name));
    uint32_t const plan = lower_plan_request(lower, &request, shared_elements(lower, of),
                                             local->plan->formats.gradients);
    if (plan == LOWER_NONE) return 0;
    own_need(lower, lower_op_add(lower, (struct program_op){
                                            .name = "send copy's gradients",
                                            .class_name = "send copy's gradients",
                                            .kind = PROGRAM_OP_SEND,
                                            .stream = lower->stream[LOWER_SEND_COPY],
                                            .parts = 1,
                                            .index = (uint16_t)plan,
                                        }));
    return lower_template_end(lower);
}

uint16_t lower_copy_sum(struct lower *lower, const struct lower_behind *of)
{
    uint64_t const elements = shared_elements(lower, of);
    uint64_t const bytes = lower_gradient_bytes(lower, elements);
    struct work const work = {
        .math_format = lower->local->plan->formats.gradients,
        .vector_flop = elements,
        .hbm_read_bytes = 2 * bytes,
        .hbm_write_bytes = bytes,
    };
    if (lower->status != STATUS_OK) return 0;
    lower_template_begin(lower, lower_format(lower, "sum %s", of->name));
    uint32_t const received =
        lower_op_add(lower, (struct program_op){.name = "receive copy's gradients",
                                                .class_name = "receive copy's gradients",
                                                .kind = PROGRAM_OP_RECEIVE,
                                                .stream = lower->stream[LOWER_RECEIVE_COPY],
                                                .parts = 1});
    own_need(lower, received);
    uint32_t const sum = lower_compute(lower, "copy's gradients.sum", &work, 1);
    lower_need_done(lower, sum, received);
    lower_take(lower, received, PROGRAM_MEMORY_BUFFERS, bytes);
    lower_give(lower, sum, PROGRAM_MEMORY_BUFFERS, bytes);
    return lower_template_end(lower);
}
