/* What a chip holds from the first instant to the last, and what the whole step achieves. */
#include "sim/base/units.h"
#include "sim/step/overheads.h"
#include "sim/step/pipeline.h"

/* Shares are rounded up for each unit, as they are when it is gathered. */
static void units_resident(const struct local *local, const struct local_unit *units,
                           uint32_t count, uint64_t times, uint64_t resident[PROGRAM_MEMORY_COUNT])
{
    const struct workload_formats *formats = &local->plan->formats;
    for (uint32_t u = 0; u < count; u++) {
        bool const experts = units[u].experts;
        uint64_t const elements = units[u].elements;
        uint64_t const kept = units_ceil_divide(elements, local->shards);
        uint64_t const state = units_ceil_divide(elements, local_state_shards(local, experts));
        uint64_t const gradients =
            units_ceil_divide(elements, local_gradient_shards(local, experts));
        resident[PROGRAM_MEMORY_PARAMETERS] += times * format_bytes(formats->weights, kept);
        if (!local_offloads_optimizer(local))
            resident[PROGRAM_MEMORY_OPTIMIZER] +=
                times * 2 * format_bytes(formats->optimizer, state);
        if (local->gradients_resident && !overheads_count(local)) {
            resident[PROGRAM_MEMORY_GRADIENTS] +=
                times * format_bytes(formats->gradients, gradients);
        }
        overheads_unit(local, &units[u], times, resident);
    }
}

void lower_resident(const struct local *local, const struct lower_holding *holding,
                    uint64_t resident_bytes[PROGRAM_MEMORY_COUNT])
{
    struct local_unit units[2], of_predictor[LOWER_PREDICTOR_UNITS_MAX];
    uint32_t count = 0;
    if (holding->predictors != 0)
        units_resident(local, of_predictor, lower_predictor_units(local, of_predictor),
                       holding->predictors, resident_bytes);
    for (uint32_t k = 0; k < LOCAL_KINDS; k++)
        units_resident(local, local->layer[k].unit, local->layer[k].unit_count, holding->layers[k],
                       resident_bytes);
    if (holding->embedding) units[count++] = lower_embedding_unit(local);
    if (holding->head && !local->tied) units[count++] = lower_head_unit(local);
    units_resident(local, units, count, 1, resident_bytes);
    overheads_chip(local, holding->layers, resident_bytes);
}

/* Of what routers ask of experts, what these have no room for, in FLOP of a step. */
static double dropped_flop(const struct local *local)
{
    const struct model *model = &local->plan->model;
    const struct routing *experts = &local->experts;
    if (experts->dropped == 0) return 0;
    double const rows = (double)local_layer_count(local, LOCAL_EXPERTS) *
                        (double)local->plan->batch_tokens * (double)experts->dropped /
                        (double)(local->rows * experts->ranks);
    return 6 * rows * (double)(model->matrices * model->experts.width * model->width);
}

void lower_totals(const struct local *local, struct program *program)
{
    const struct workload_plan *plan = local->plan;
    const struct model *model = &plan->model;
    struct model_counts const counts = model_count(model);
    program->tokens = plan->batch_tokens;
    bool const predicts = local->predictors != 0;
    uint64_t const active = counts.active + (predicts ? counts.predictors_active : 0);
    program->parameter_flop = 6 * (double)active * (double)plan->batch_tokens;
    program->parameter_flop -= dropped_flop(local);
    if (model->kind != MODEL_LLAMA) return;
    program->useful_attention_flop =
        model_attention_flop(model, local->predictors, plan->batch_tokens, plan->sequence_length,
                             plan->attention == WORKLOAD_ATTENTION_CAUSAL);
}
