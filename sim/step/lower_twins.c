/*
 * An embedding that is tied to the head, or that modules of a later stage look up too, lies on the
 * first and on that stage. Each has a gradient of its own: once they are reduced over the data
 * ranks, the two stages give them to one another and both update by the sum, so that the two stay
 * equal. Two ranks that add up by an AllReduce would send as many bytes, by halves and a message
 * later.
 *
 * The last rank is the one before the first, around: such messages go where gradients go to the
 * rank before, and activations to the next, and are the last of their streams. A rank between them,
 * where modules have a stage of their own, is no neighbour and has streams of its own.
 */
#include "sim/base/units.h"
#include "sim/step/pipeline.h"

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
    struct plan_request request = {.kind = COLLECTIVE_PERMUTE,
                                   .group = local->mesh->axis[MESH_PP].group};
    bool const own = local->predictors_apart;
    enum lower_stream const send_streams[] = {own ? LOWER_SEND_TWIN : LOWER_SEND_PREVIOUS,
                                              own ? LOWER_SEND_FIRST : LOWER_SEND_NEXT};
    enum lower_stream const streams[] = {own ? LOWER_RECEIVE_TWIN : LOWER_RECEIVE_PREVIOUS,
                                         own ? LOWER_RECEIVE_FIRST : LOWER_RECEIVE_NEXT};
    struct lower_exchange const exchange = {.send = "send tied gradients",
                                            .receive = "receive tied gradients",
                                            .sum = "tied gradients.sum",
                                            .send_stream = send_streams[head],
                                            .receive_stream = streams[head],
                                            .elements = elements};
    if (lower->build.status != STATUS_OK) return 0;
    *pipeline_distance(&request) = head ? -apart : apart;
    lower_template_begin(lower, "tied gradients");
    lower_exchange_send(lower, &exchange, &request);
    lower_exchange_sum(lower, &exchange);
    return lower_template_end(lower);
}
