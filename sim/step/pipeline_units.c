/* What the ranks of a pipeline do with whole stages, between their passes and behind them. */
#include "sim/step/pipeline.h"
#include "sim/step/stages.h"

bool pipeline_pass_is_last(const struct schedule_rank *list, uint32_t index)
{
    const struct schedule_pass *pass = &list->pass[index];
    if (!pipeline_pass_adds(pass)) return false;
    for (uint32_t i = index + 1; i < list->count; i++)
        if (pipeline_pass_adds(&list->pass[i]) && list->pass[i].stage == pass->stage) return false;
    return true;
}

void pipeline_units_add(struct pipeline *pipeline, const struct stage *stage,
                        const uint16_t templates[UNIT_COUNT], enum program_phase phase,
                        uint32_t microbatch, uint32_t *arrivals)
{
    static const enum pipeline_unit order[] = {UNIT_HEAD, UNIT_EMBEDDING, UNIT_PREDICTOR,
                                               UNIT_EXPERTS, UNIT_LAYER};
    uint32_t const dense = stages_dense_layers(stage, pipeline->dense_layers);
    /* Modules may have an embedding of their own. */
    bool const own_embedding = stage->predictors != 0 && pipeline->lower->local->twin_reads;
    uint32_t const counts[] = {[UNIT_EMBEDDING] = stage->embedding || own_embedding,
                               [UNIT_PREDICTOR] = stage->predictors,
                               [UNIT_LAYER] = dense,
                               [UNIT_EXPERTS] = stage->layer_count - dense,
                               [UNIT_HEAD] = stage->head};
    uint32_t const ends[] = {[UNIT_LAYER] = dense, [UNIT_EXPERTS] = stage->layer_count};
    for (uint32_t i = 0; i < sizeof order / sizeof *order; i++) {
        enum pipeline_unit const unit = order[i];
        bool const is_layer = unit == UNIT_LAYER || unit == UNIT_EXPERTS;
        if (counts[unit] == 0 || templates[unit] == PROGRAM_NONE) continue;
        struct program_block block = {
            .template_index = templates[unit],
            .phase = phase,
            .name = pipeline_unit_name(unit),
            .repeat = arrivals == NULL ? counts[unit] : 1,
            .layer_first = is_layer ? (int32_t)(stage->layer_first + ends[unit] - 1) : -1,
            .layer_step = is_layer ? -1 : 0,
            .microbatch = microbatch,
        };
        for (uint32_t added = 0; added < counts[unit]; added += block.repeat) {
            if (arrivals != NULL) block.arrivals = ++*arrivals;
            pipeline_block_add(pipeline, &block);
            block.layer_first += block.layer_step;
        }
    }
}

void pipeline_actions_add(struct pipeline *pipeline, uint32_t before)
{
    const struct schedule_rank *list = pipeline->list;
    for (; pipeline->action_next < list->action_count &&
           list->action[pipeline->action_next].before == before;
         pipeline->action_next++) {
        const struct schedule_action *action = &list->action[pipeline->action_next];
        if (action->act == SCHEDULE_UNSHARD)
            pipeline->hold[action->stage] =
                (struct pipeline_hold){.held = true, .since_slot = pipeline->slot_count};
        else if (action->act == SCHEDULE_RESHARD)
            pipeline->hold[action->stage].held = false;
        else if (action->act == SCHEDULE_REDUCE)
            pipeline_units_add(pipeline, &pipeline->stages.stage[action->stage], pipeline->reduce,
                               PROGRAM_PHASE_BACKWARD, list->pass[before - 1].microbatch, NULL);
    }
}

/* A stage whose gradients go to the other copy's rank, as the how many-th. An embedding that both
 * ends look up goes with the later of them. */
static struct stage stage_sent(const struct pipeline *pipeline, uint32_t index)
{
    uint32_t const number = pipeline->sent_stage[index], last = pipeline->schedule.stage_count - 1;
    struct stage stage = pipeline->stages.stage[number];
    if (pipeline->lower->local->predictors == 0 || (number != 0 && number != last)) return stage;
    stage.embedding = false;
    for (uint32_t k = 0; k < index; k++)
        if (pipeline->sent_stage[k] == last - number) stage.embedding = true;
    return stage;
}

void pipeline_copies_send(struct pipeline *pipeline, uint32_t before)
{
    const struct schedule_rank *list = pipeline->list;
    if (pipeline->schedule.copy_count == 1) return;
    for (uint32_t i = before < 2 ? 0 : before - 2; i < before; i++) {
        uint32_t const stage = list->pass[i].stage;
        bool sent = !pipeline_pass_is_last(list, i);
        for (uint32_t k = 0; k < pipeline->sent_count; k++)
            sent = sent || pipeline->sent_stage[k] == stage;
        if (sent) continue;
        pipeline->sent_stage[pipeline->sent_count++] = stage;
        struct stage const made = stage_sent(pipeline, pipeline->sent_count - 1);
        pipeline_units_add(pipeline, &made, pipeline->send_copy, PROGRAM_PHASE_BACKWARD,
                           list->pass[i].microbatch, NULL);
    }
}

void pipeline_copies_sum(struct pipeline *pipeline)
{
    uint32_t arrivals = 0;
    for (uint32_t i = 0; i < pipeline->sent_count; i++) {
        struct stage const sent = stage_sent(pipeline, i);
        pipeline_units_add(pipeline, &sent, pipeline->sum_copies, PROGRAM_PHASE_UPDATE,
                           pipeline->schedule.microbatch_count - 1, &arrivals);
    }
}
