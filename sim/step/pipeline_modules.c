/* What the ranks of a pipeline do with whole stages, between their passes and behind them. */
#include <string.h>

#include "sim/step/graph_terms.h"
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

/* Modules may have an embedding of their own. */
void pipeline_module_counts(const struct pipeline *pipeline, const struct stage *stage,
                            uint32_t ret_counts[MODULE_COUNT])
{
    const struct ranks *ranks = pipeline->lower->ranks;
    uint32_t const counts[MODULE_COUNT] = {
        [MODULE_EMBEDDING] = stage->embedding || (stage->mtp_modules != 0 && ranks->tie.lookup),
        [MODULE_MTP] = stage->mtp_modules,
        [MODULE_HEAD] = stage->head && !ranks->tie.here};
    struct step_layers const layers = step_layers(ranks, stage->layer_first, stage->layer_count);
    memcpy(ret_counts, counts, sizeof counts);
    memcpy(&ret_counts[MODULE_LAYER], layers.of, sizeof layers.of);
}

/* Adds slots of the modules of one kind. Modules of one stage are in the order of their places, and
 * so of their numbers. */
static void modules_add(struct pipeline *pipeline, enum lower_act act, uint32_t count,
                        struct program_block block, enum lower_module module, uint32_t *arrivals)
{
    bool const placed = module == MODULE_MTP && pipeline->lower->ranks->pp == 1;
    block.name = pipeline_module_name(module);
    block.repeat = arrivals == NULL && !placed ? count : 1;
    for (uint32_t left = count; left > 0; left -= block.repeat) {
        struct mtp_position place = {false, false};
        if (placed) {
            place = mtp_position_at(pipeline->lower->ranks, left - 1);
            block.layer_first = (int32_t)left - 1;
        }
        block.template_index = pipeline_rest(pipeline, module, act, place);
        if (block.template_index == PROGRAM_NONE) return;
        if (arrivals != NULL) block.arrivals = ++*arrivals;
        pipeline_block_add(pipeline, &block);
        block.layer_first += block.layer_step;
    }
}

/* Adds slots of a stage's layers, from the last down. */
static void layers_add(struct pipeline *pipeline, const struct stage *stage, enum lower_act act,
                       struct program_block block, uint32_t *arrivals)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    uint32_t run = 0;
    block.layer_step = -1;
    for (uint32_t left = stage->layer_count; left > 0; left -= run) {
        uint32_t const last = stage->layer_first + left - 1;
        enum lower_module const module = lower_weights_at(ranks, last);
        run = 1;
        while (run < left && lower_weights_at(ranks, last - run) == module) run++;
        block.layer_first = (int32_t)last;
        modules_add(pipeline, act, run, block, module, arrivals);
    }
}

void pipeline_modules_add(struct pipeline *pipeline, const struct stage *stage, enum lower_act act,
                          enum program_phase phase, uint32_t microbatch, uint32_t *arrivals)
{
    /* Of pipelines from the head down; else as the backward pass reduces. */
    static const enum lower_module orders[2][4] = {
        {MODULE_HEAD, MODULE_EMBEDDING, MODULE_MTP, MODULE_LAYER},
        {MODULE_MTP, MODULE_HEAD, MODULE_LAYER, MODULE_EMBEDDING}};
    struct program_block const block = {
        .phase = phase, .layer_first = -1, .layer_step = 0, .microbatch = microbatch};
    uint32_t counts[MODULE_COUNT];
    pipeline_module_counts(pipeline, stage, counts);
    for (uint32_t i = 0; i < sizeof orders[0] / sizeof *orders[0]; i++) {
        enum lower_module const module = orders[pipeline->lower->ranks->pp == 1][i];
        if (module == MODULE_LAYER)
            layers_add(pipeline, stage, act, block, arrivals);
        else
            modules_add(pipeline, act, counts[module], block, module, arrivals);
    }
}

void pipeline_tie_add(struct pipeline *pipeline, uint32_t rank, enum lower_act act, uint32_t pass)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    bool const swaps = act == ACT_TIE_SWAP;
    for (uint32_t i = 0; ranks->tie.apart && i < PIPELINE_TIED; i++) {
        struct program_block const tied = {
            .template_index = pipeline_rest(pipeline, i == 1 ? MODULE_HEAD : MODULE_EMBEDDING, act,
                                            (struct mtp_position){false, false}),
            .phase = swaps ? PROGRAM_PHASE_WEIGHT : PROGRAM_PHASE_UPDATE,
            .name = i == 1 && !ranks->tie.lookup ? "tied head" : "tied embedding",
            .repeat = 1,
            .layer_first = -1,
            .microbatch = pipeline->schedule.microbatch_count - 1,
            .pass = pass,
            .arrivals = act == ACT_TIE_SUM ? 0 : pipeline->tied_message[i],
        };
        if (rank == (i == 1 ? pipeline->tied_rank : 0)) pipeline_block_add(pipeline, &tied);
    }
    pipeline->role.tie_swapped |= swaps;
}

void pipeline_actions_add(struct pipeline *pipeline, uint32_t before)
{
    const struct schedule_rank *list = pipeline->role.list;
    for (; pipeline->role.action_next < list->action_count &&
           list->action[pipeline->role.action_next].before == before;
         pipeline->role.action_next++) {
        const struct schedule_action *action = &list->action[pipeline->role.action_next];
        if (action->act == SCHEDULE_UNSHARD)
            pipeline->role.hold[action->stage] =
                (struct pipeline_hold){.held = true, .since_slot = pipeline->role.slot_count};
        else if (action->act == SCHEDULE_RESHARD)
            pipeline->role.hold[action->stage].held = false;
        else if (action->act == SCHEDULE_REDUCE)
            pipeline_modules_add(pipeline, &pipeline->stages.stage[action->stage], ACT_REDUCE,
                                 PROGRAM_PHASE_BACKWARD, list->pass[before - 1].microbatch, NULL);
    }
}

/* A stage whose gradients go to the other copy's rank, as the how many-th. An embedding that both
 * ends look up goes with the later of them. */
static struct stage stage_sent(const struct pipeline *pipeline, uint32_t index)
{
    uint32_t const number = pipeline->role.sent_stage[index],
                   last = pipeline->schedule.stage_count - 1;
    struct stage stage = pipeline->stages.stage[number];
    if (pipeline->lower->ranks->mtp.modules == 0 || (number != 0 && number != last)) return stage;
    stage.embedding = false;
    for (uint32_t k = 0; k < index; k++)
        if (pipeline->role.sent_stage[k] == last - number) stage.embedding = true;
    return stage;
}

void pipeline_replicas_send(struct pipeline *pipeline, uint32_t before)
{
    const struct schedule_rank *list = pipeline->role.list;
    if (pipeline->schedule.copy_count == 1) return;
    for (uint32_t i = before < 2 ? 0 : before - 2; i < before; i++) {
        uint32_t const stage = list->pass[i].stage;
        bool sent = !pipeline_pass_is_last(list, i);
        for (uint32_t k = 0; k < pipeline->role.sent_count; k++)
            sent = sent || pipeline->role.sent_stage[k] == stage;
        if (sent) continue;
        pipeline->role.sent_stage[pipeline->role.sent_count++] = stage;
        struct stage const made = stage_sent(pipeline, pipeline->role.sent_count - 1);
        pipeline_modules_add(pipeline, &made, ACT_SEND_COPY, PROGRAM_PHASE_BACKWARD,
                             list->pass[i].microbatch, NULL);
    }
}

void pipeline_replicas_sum(struct pipeline *pipeline)
{
    uint32_t arrivals = 0;
    for (uint32_t i = 0; i < pipeline->role.sent_count; i++) {
        struct stage const sent = stage_sent(pipeline, i);
        pipeline_modules_add(pipeline, &sent, ACT_SUM_COPIES, PROGRAM_PHASE_UPDATE,
                             pipeline->schedule.microbatch_count - 1, &arrivals);
    }
}
