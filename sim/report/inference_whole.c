#include "sim/report/inference_whole.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/graph/parameters.h"
#include "sim/roofline/inference.h"
#include "sim/step/ranks.h"

/* Bytes of a token that `layers` layers of a model read. */
static double token_bytes(const struct workload_plan *plan, const struct model *model,
                          uint64_t layers)
{
    return inference_kv_bytes_per_token(layers, model_count(model).cache_columns,
                                        format_stored_number_bytes(plan->inference.cache));
}

double inference_whole_read_bytes(const struct workload_plan *plan)
{
    return token_bytes(plan, &plan->model, plan->model.layers);
}

double inference_whole_shared_bytes(const struct workload_plan *plan)
{
    return token_bytes(plan, &plan->model, model_borrowing_layers(&plan->model));
}

/* Of layers, or of those alone that hold their rows, the share whose queries have a window. */
static double windowed_share(const struct model *model, uint64_t keys, bool held)
{
    uint64_t windowed = 0, layers = 0;
    for (uint64_t layer = 0; layer < model->layers; layer++) {
        struct layer_kind const kind = model_layer_kind(model, layer, keys);
        if (held && kind.borrows) continue;
        windowed += kind.windowed;
        layers++;
    }
    return (double)windowed / (double)layers;
}

static double tokens_of(const struct workload_plan *plan, enum inference_part part, bool held)
{
    double const windowed = windowed_share(&plan->model, inference_keys_most_of(plan, part), held);
    double const all = (double)inference_sum(plan, part).context_tokens;
    if (windowed == 0) return all;
    return (1 - windowed) * all + windowed * (double)inference_window_tokens(plan, part);
}

double inference_whole_tokens(const struct workload_plan *plan, enum inference_part part)
{
    return tokens_of(plan, part, /* held= */ false);
}

double inference_whole_held_tokens(const struct workload_plan *plan, enum inference_part part)
{
    return tokens_of(plan, part, /* held= */ true);
}

/* A generation's steps are of its prompts. */
static double cached_tokens(const struct workload_plan *plan)
{
    double const decodes = inference_whole_held_tokens(plan, INFERENCE_DECODES),
                 prompts = inference_whole_held_tokens(plan, INFERENCE_PROMPTS);
    return plan->inference.generation.output != 0 ? fmax(decodes, prompts) : decodes + prompts;
}

/* No rank is without a head. */
static uint32_t tp_of(const struct report_input *input, uint64_t chip_count)
{
    uint64_t const heads = input->workload->model.heads;
    uint64_t const others = input->machine->chip_count / input->mesh->axis[MESH_TP].size;
    uint64_t const ranks = chip_count > others ? chip_count / others : 1;
    return (uint32_t)(ranks < heads ? ranks : heads);
}

double inference_whole_bytes(const void *owner, uint64_t chip_count)
{
    const struct report_input *input = owner;
    const struct workload_plan *plan = input->workload;
    uint32_t const tp = plan->model.kind == MODEL_DECODER ? tp_of(input, chip_count) : 1;
    struct ranks_padded const padded = ranks_padded_of(&plan->model, tp);
    struct model_counts const counts = model_count(&padded.weights);
    return (double)(counts.total - counts.head_matrix) *
               format_stored_number_bytes(plan->formats.weights) +
           (double)counts.head_matrix * format_stored_number_bytes(plan->inference.head) +
           cached_tokens(plan) *
               token_bytes(plan, &padded.cache,
                           plan->model.layers - model_borrowing_layers(&plan->model));
}
