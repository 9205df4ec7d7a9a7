/*
 * Shares that are padded so that all ranks are alike. Shares of parameters, of their gradients and
 * of the optimizer's state: what is gathered as one lies flat, padded so that each rank has as
 * much: FSDP pads its flat parameters, ZeRO its buckets.
 */
#include "sim/base/units.h"
#include "sim/step/counts_parts.h"
#include "sim/step/padding.h"

double counts_share(const struct letters *x, uint32_t ranks, bool experts)
{
    double const all = experts ? x->sparse * x->expert_elements : x->step_elements;
    return all == 0 ? 0 : (all + (double)padding_elements(x->local, ranks, experts)) / ranks;
}

double counts_state_elements(const struct letters *x)
{
    const struct local *local = x->local;
    double const experts =
        x->sparse > 0 ? counts_share(x, local->experts.state_shards, /* experts= */ true) : 0;
    return local->copies * (counts_share(x, local->state_shards, /* experts= */ false) + experts);
}

double counts_twins_share(const struct letters *x)
{
    const struct local *local = x->local;
    if (x->twins == 0) return 0;
    return 2 * (double)units_ceil_divide(local->vocabulary_elements, local->state_shards);
}
