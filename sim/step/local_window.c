/*
 * Layers that attend to a window of keys: which they are in this step, and what is not modelled
 * with them. Where sequences fit the window such a layer is as any other.
 */
#include "sim/step/local.h"
#include "sim/step/nearest.h"

enum status local_window_check(const struct local *local, struct error *reterr)
{
    const struct workload_plan *plan = local->plan;
    unsigned long long const window = plan->model.window;
    char nearest[NEAREST_TEXT_BYTES];
    if (model_window_layers(&plan->model, plan->sequence_length) == 0) return STATUS_OK;
    if (local_is_unfused(local))
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/attention_kernel",
                         "layers that attend to a window of %llu keys are modelled with \"flash\" "
                         "only, unless sequences have as many tokens or fewer",
                         window);
    if (local->sequence_parts == 1 || local_turns(local)) return STATUS_OK;
    if (local->cp > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/context",
                         "layers that attend to a window of %llu keys are modelled with cp where "
                         "each rank attends to whole sequences (\"ulysses\"), or where sequences "
                         "have %llu tokens or fewer",
                         window, window);
    return error_set(reterr, STATUS_UNSUPPORTED, "/workload/batch_tokens",
                     "%u ranks share each sequence, which is not modelled for layers that "
                     "attend to a window of %llu keys; the nearest batch_tokens that fit: %s",
                     local->sequence_parts, window, nearest_batch(local, nearest));
}

void local_window_build(struct local *local)
{
    const struct model *model = &local->plan->model;
    local->window_layers = model_window_layers(model, local->plan->sequence_length);
    for (uint64_t layer = 1; layer < model->layers && local->window_layers != 0; layer++)
        local->window_turns +=
            model_layer_is_windowed(model, layer) != model_layer_is_windowed(model, layer - 1);
}
