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

void pipeline_modules_add(struct pipeline *pipeline, const struct stage *stage,
                          const uint16_t templates[MODULE_COUNT], enum program_phase phase,
                          uint32_t microbatch, uint32_t *arrivals)
{
    static const enum pipeline_module order[] = {MODULE_HEAD, MODULE_EMBEDDING, MODULE_MTP,
                                                 MODULE_EXPERTS, MODULE_LAYER};
    uint32_t const dense = stages_dense_layers(stage, pipeline->dense_layers);
    /* Modules may have an embedding of their own. */
    bool const own_embedding = stage->mtp_modules != 0 && pipeline->lower->ranks->tied_lookup;
    uint32_t const counts[] = {[MODULE_EMBEDDING] = stage->embedding || own_embedding,
                               [MODULE_MTP] = stage->mtp_modules,
                               [MODULE_LAYER] = dense,
                               [MODULE_EXPERTS] = stage->layer_count - dense,
                               [MODULE_HEAD] = stage->head};
    uint32_t const ends[] = {[MODULE_LAYER] = dense, [MODULE_EXPERTS] = stage->layer_count};
    for (uint32_t i = 0; i < sizeof order / sizeof *order; i++) {
        enum pipeline_module const module = order[i];
        bool const is_layer = module == MODULE_LAYER || module == MODULE_EXPERTS;
        if (counts[module] == 0 || templates[module] == PROGRAM_NONE) continue;
        struct program_block block = {
            .template_index = templates[module],
            .phase = phase,
            .name = pipeline_module_name(module),
            .repeat = arrivals == NULL ? counts[module] : 1,
            .layer_first = is_layer ? (int32_t)(stage->layer_first + ends[module] - 1) : -1,
            .layer_step = is_layer ? -1 : 0,
            .microbatch = microbatch,
        };
        for (uint32_t added = 0; added < counts[module]; added += block.repeat) {
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
            pipeline_modules_add(pipeline, &pipeline->stages.stage[action->stage], pipeline->reduce,
                                 PROGRAM_PHASE_BACKWARD, list->pass[before - 1].microbatch, NULL);
    }
}

/* A stage whose gradients go to the other copy's rank, as the how many-th. An embedding that both
 * ends look up goes with the later of them. */
static struct stage stage_sent(const struct pipeline *pipeline, uint32_t index)
{
    uint32_t const number = pipeline->sent_stage[index], last = pipeline->schedule.stage_count - 1;
    struct stage stage = pipeline->stages.stage[number];
    if (pipeline->lower->ranks->mtp_modules == 0 || (number != 0 && number != last)) return stage;
    stage.embedding = false;
    for (uint32_t k = 0; k < index; k++)
        if (pipeline->sent_stage[k] == last - number) stage.embedding = true;
    return stage;
}

void pipeline_replicas_send(struct pipeline *pipeline, uint32_t before)
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
        pipeline_modules_add(pipeline, &made, pipeline->send_replica, PROGRAM_PHASE_BACKWARD,
                             list->pass[i].microbatch, NULL);
    }
}

void pipeline_replicas_sum(struct pipeline *pipeline)
{
    uint32_t arrivals = 0;
    for (uint32_t i = 0; i < pipeline->sent_count; i++) {
        struct stage const sent = stage_sent(pipeline, i);
        pipeline_modules_add(pipeline, &sent, pipeline->sum_replicas, PROGRAM_PHASE_UPDATE,
                             pipeline->schedule.microbatch_count - 1, &arrivals);
    }
}
