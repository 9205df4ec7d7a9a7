/* The AllToAll of rows on their way to experts, or back. */
#include <string.h>

#include "sim/step/lower.h"

static enum format exchange_format(const struct local *local, bool spreads)
{
    const struct workload_formats *formats = &local->plan->formats;
    return spreads ? formats->dispatch : formats->activations;
}

/* What each rank really has for each other, once to each unit of a level on the way. */
static uint32_t drawn_plan(struct lower *lower, const struct plan_request *exchange)
{
    const struct local *local = lower->local;
    uint64_t const part = local->width / local->tp;
    enum format const format = exchange_format(local, exchange->spreads);
    struct plan_request request = *exchange;
    bool const automatic = request.algorithm == NULL || strcmp(request.algorithm, "auto") == 0;
    bool const levels = request.group.dimension_count > 1 && request.group.dimension[0].switched;
    if (automatic && levels) request.algorithm = "hierarchical";
    request.ragged = local->experts.drawn;
    request.ragged.token_bytes = format_bytes(format, part);
    request.ragged.returns = !exchange->spreads;
    return lower_plan_request(lower, &request, local->experts.ranks * local->rows * part, format);
}

uint32_t experts_exchange_plan(struct lower *lower, bool spreads)
{
    const struct local *local = lower->local;
    const struct local_experts *experts = &local->experts;
    uint64_t const part = local->width / local->tp; /* Of a token. */
    enum format const format = exchange_format(local, spreads);
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_TO_ALL,
        .algorithm = local->plan->algorithm,
        .group = local->mesh->axis[MESH_EP].group,
        .spreads = spreads,
    };
    if (experts->drawn.expert_count != 0) return drawn_plan(lower, &request);
    for (uint32_t d = 0; d < request.group.dimension_count; d++)
        request.exchange_bytes[d] = format_bytes(format, experts->crossing[d] * part);
    return lower_plan_request(lower, &request, experts->exchanged * part, format);
}
