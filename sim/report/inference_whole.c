#include "sim/report/inference_whole.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/graph/parameters.h"
#include "sim/roofline/inference.h"
#include "sim/step/ranks.h"

static double token_bytes(const struct workload_plan *plan, const struct model *model)
{
    return inference_kv_bytes_per_token(model, format_stored_number_bytes(plan->inference.cache));
}

double inference_whole_token_bytes(const struct workload_plan *plan)
{
    return token_bytes(plan, &plan->model);
}

double inference_whole_tokens(const struct workload_plan *plan, enum inference_part part)
{
    uint64_t const keys = inference_keys_most_of(plan, part);
    double const windowed =
        (double)model_window_layers(&plan->model, keys) / (double)plan->model.layers;
    double const all = (double)inference_sum(plan, part).context_tokens;
    if (windowed == 0) return all;
    return (1 - windowed) * all + windowed * (double)inference_window_tokens(plan, part);
}

/* A generation's steps are of its prompts. */
static double cached_tokens(const struct workload_plan *plan)
{
    double const decodes = inference_whole_tokens(plan, INFERENCE_DECODES),
                 prompts = inference_whole_tokens(plan, INFERENCE_PROMPTS);
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
           cached_tokens(plan) * token_bytes(plan, &padded.cache);
}
