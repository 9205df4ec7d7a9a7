/* The passes of one layer: what its graph gives, and around it what comes of weights, updates and
 * copies. */
#include "sim/step/emit.h"
#include "sim/step/lower.h"

void lower_layer_forward(struct lower *lower, bool top)
{
    lower_units_gather(lower, lower->layer->unit, lower->layer->unit_count, false);
    emit_forward(lower);
    if (!top && local_offloads_activations(lower->local)) lower_offload_forward(lower);
}

/* One gather of the weights serves the repetition and the gradients. */
void lower_layer_backward(struct lower *lower, bool top, const struct lower_behind *update)
{
    bool const reads = lower_has_input(lower);
    bool const again = reads && workload_remat_repeats(lower->local->plan->remat);
    bool const gathers = reads || lower->keeping == LOWER_TAKES;
    if (gathers) lower_units_gather(lower, lower->layer->unit, lower->layer->unit_count, !again);
    emit_backward(lower);
    if (!top && local_offloads_activations(lower->local)) lower_offload_backward(lower);
    lower_update_behind(lower, update);
}
