#include "sim/step/pipeline_places.h"

#include "sim/step/graph_terms.h"

/* Of a pass of inference those that it has. Prompts of which it has no last token want no logits.
 */
static const struct ranks *ranks_of(const struct pipeline *pipeline,
                                    const struct schedule_pass *pass)
{
    const struct lower *lower = pipeline->lower;
    return ranks_serves(lower->ranks) ? lower->shapes[pass->microbatch].ranks : lower->ranks;
}

struct pipeline_places pipeline_places_of(const struct pipeline *pipeline,
                                          const struct schedule_pass *pass)
{
    const struct ranks *ranks = ranks_of(pipeline, pass);
    const struct stage *stage = &pipeline->stages.stage[pass->stage];
    bool const embedding = stage->embedding && pass->kind != SCHEDULE_INPUT;
    bool const head = stage->head && ranks_has_head(ranks);
    bool const again =
        ranks->kinds.grouped && (pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT);
    struct pipeline_places modules = {.ranks = ranks,
                                      .stage = stage,
                                      .embedding = embedding,
                                      .head = head,
                                      .again = again,
                                      .count = stage->layer_count + stage->mtp_modules +
                                               stage->mtp_heads + embedding + head};
    for (uint32_t i = 0; again && i < stage->layer_count; i++)
        modules.count += layer_set_has(&ranks->kinds.kept, stage->layer_first + i);
    return modules;
}

/* The layer of a stage at a place among the places of its layers in a backward pass. Groups come
 * from the last down: of each all layers but the last are repeated, and then the backward passes
 * follow from the last layer down. The last one is repeated by its own. */
static uint32_t grouped_layer_at(const struct pipeline_places *modules, uint32_t place,
                                 bool *ret_again)
{
    const struct layer_set *kept = &modules->ranks->kinds.kept;
    const struct stage *stage = modules->stage;
    for (uint32_t end = stage->layer_count, first; end > 0; end = first) {
        for (first = end - 1; first > 0; first--)
            if (!layer_set_has(kept, stage->layer_first + first - 1)) break;
        uint32_t const repeated = end - 1 - first, places = 2 * repeated + 1;
        *ret_again = place < repeated;
        if (place < places) return *ret_again ? first + place : end - 1 - (place - repeated);
        place -= places;
    }
    SIM_ASSERT(false);
    return 0;
}

struct pipeline_placed pipeline_placed_at(const struct pipeline_places *modules, bool forward,
                                          uint32_t place)
{
    const struct stage *stage = modules->stage;
    struct pipeline_placed placed = {.module = MODULE_NOTHING, .layer = -1};
    uint32_t at = forward ? place : modules->count - 1 - place;
    if (modules->count == 0) return placed;
    if (modules->embedding && at == 0) placed.module = MODULE_EMBEDDING;
    if (modules->head && at + 1 == modules->count) placed.module = MODULE_HEAD;
    if (placed.module != MODULE_NOTHING) return placed;
    uint32_t layer = at - modules->embedding;
    if (modules->again) layer = grouped_layer_at(modules, place - modules->head, &placed.again);
    if (layer >= stage->layer_count) {
        /* A stage has modules, or only heads of some. */
        placed.layer = (int32_t)(layer - stage->layer_count);
        placed.module = stage->mtp_modules != 0 ? MODULE_MTP : MODULE_MTP_HEAD;
        return placed;
    }
    placed.layer = (int32_t)(stage->layer_first + layer);
    placed.module = lower_module_of(ranks_kind_at(modules->ranks, (uint64_t)placed.layer));
    return placed;
}

uint32_t pipeline_run_at(const struct pipeline_places *modules, bool forward, uint32_t place,
                         bool weights)
{
    const struct ranks *ranks = modules->ranks;
    enum lower_module const first = pipeline_placed_at(modules, forward, place).module;
    uint32_t run = 1;
    for (; place + run < modules->count; run++) {
        enum lower_module const next = pipeline_placed_at(modules, forward, place + run).module;
        bool const same =
            weights && lower_weights_module(ranks, next) == lower_weights_module(ranks, first);
        if (next != first && !same) break;
    }
    return run;
}
