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
#include "sim/step/pipeline.h"

/* Gradients of the units as the data ranks share them: what each of them has the sum of. */
static uint64_t shared_elements(const struct lower *lower, const struct lower_behind *of)
{
    uint64_t elements = 0;
    for (uint32_t u = 0; u < of->unit_count; u++)
        elements += units_ceil_divide(of->units[u].elements,
                                      local_state_shards(lower->local, of->units[u].experts));
    return elements;
}

static struct lower_exchange exchange_of(const struct lower *lower, const struct lower_behind *of)
{
    return (struct lower_exchange){.send = "send copy's gradients",
                                   .receive = "receive copy's gradients",
                                   .sum = "copy's gradients.sum",
                                   .send_stream = LOWER_SEND_COPY,
                                   .receive_stream = LOWER_RECEIVE_COPY,
                                   .layers = true,
                                   .elements = shared_elements(lower, of)};
}

uint16_t lower_copy_send(struct lower *lower, const struct lower_behind *of)
{
    struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                         .group = lower->local->mesh->axis[MESH_PP].group,
                                         .mirrors = true};
    struct lower_exchange const exchange = exchange_of(lower, of);
    if (lower->build.status != STATUS_OK) return 0;
    lower_template_begin(lower, builder_format(&lower->build, "send %s", of->name));
    lower_exchange_send(lower, &exchange, &request);
    return lower_template_end(lower);
}

uint16_t lower_copy_sum(struct lower *lower, const struct lower_behind *of)
{
    struct lower_exchange const exchange = exchange_of(lower, of);
    if (lower->build.status != STATUS_OK) return 0;
    lower_template_begin(lower, builder_format(&lower->build, "sum %s", of->name));
    lower_exchange_sum(lower, &exchange);
    return lower_template_end(lower);
}
