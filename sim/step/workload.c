/* A step as a program: a role for each rank of pp, or one where all ranks have the same work. */
#include "sim/step/workload.h"

#include "sim/base/arena.h"
#include "sim/collective/choice.h"
#include "sim/step/algorithms.h"
#include "sim/step/counts_parts.h"
#include "sim/step/pipeline.h"

/* Embedding, first, middle and last layers, head; and one whose gather waits otherwise splits a row
 * of layers in three. Changes of kind come in addition. */
enum { BLOCKS_A_PASS = 8 };

/* Templates of one stage, before its slots: of forward passes first those that gather nothing
 * updated, of backward passes those that do not reduce. */
static void one_stage_build(struct pipeline *pipeline)
{
    uint32_t const count = pipeline->role.list->count;
    uint32_t const passes[] = {count - 2, 0, 1, count - 1};
    for (uint32_t i = 0; i < sizeof passes / sizeof *passes; i++)
        pipeline_pass_build(pipeline, passes[i]);
    if (!ranks_offloads_optimizer(pipeline->lower->ranks)) pipeline_rests_build(pipeline);
}

/* Room for the blocks of a role, and what it holds. */
static enum status role_begin(struct pipeline *pipeline, uint32_t rank, struct program_role *role,
                              struct error *reterr)
{
    struct pipeline_role *made = &pipeline->role;
    const struct schedule *schedule = &pipeline->schedule;
    const struct ranks *ranks = pipeline->lower->ranks;
    uint64_t most = PIPELINE_TIED + ranks_clips(ranks), layers = 0, modules[MODULE_COUNT] = {0};
    void *memory = NULL;
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        const struct stage *stage = &pipeline->stages.stage[s];
        uint32_t counts[MODULE_COUNT];
        if (!schedule_rank_holds(schedule, rank, s)) continue;
        pipeline_module_counts(pipeline, stage, counts);
        for (uint32_t m = 0; m < MODULE_COUNT; m++) modules[m] += counts[m];
        if (stage->layer_count > layers) layers = stage->layer_count;
        /* Updates. */
        uint64_t const all = MODULE_COUNT + ranks->mtp.modules +
                             units_smaller(ranks->kinds.changes, stage->layer_count);
        most += all;
        if (ranks_replicas_wait(ranks)) most += 2 * all; /* Reductions and gathers. */
        /* What goes to another copy; reductions, and what comes from there; and a gather behind
         * each of them that waits otherwise. */
        if (ranks->pp > 1) most += 5 * MODULE_COUNT + 3 * (uint64_t)stage->layer_count;
    }
    /* Groups of layers may change from each slot to the next. */
    uint64_t const changes =
        ranks->kinds.grouped ? 2 * layers : units_smaller(ranks->kinds.changes, layers);
    most += (uint64_t)schedule->rank[rank].count * (BLOCKS_A_PASS + ranks->mtp.modules + changes);
    STATUS_TRY(arena_try(pipeline->lower->build.arena, most, sizeof *made->block, &memory, reterr));
    *made = (struct pipeline_role){.list = &schedule->rank[rank],
                                   .block = memory,
                                   .block_capacity = most,
                                   .sent_stage = made->sent_stage,
                                   .hold = made->hold};
    lower_resident(ranks, modules, role->resident_bytes);
    for (uint32_t s = 0; s < schedule->stage_count && ranks_serves(ranks); s++)
        if (schedule_rank_holds(schedule, rank, s)) {
            const struct stage *stage = &pipeline->stages.stage[s];
            role->resident_bytes[PROGRAM_MEMORY_CACHE] +=
                inference_cache_bytes(ranks, stage->layer_first, stage->layer_count);
        }
    return STATUS_OK;
}

/* Slots of all modules that the rank holds. */
static void stages_add(struct pipeline *pipeline, uint32_t rank, enum lower_act act,
                       enum program_phase phase)
{
    const struct schedule *schedule = &pipeline->schedule;
    for (uint32_t s = schedule->stage_count; s-- > 0;)
        if (schedule_rank_holds(schedule, rank, s))
            pipeline_modules_add(pipeline, &pipeline->stages.stage[s], act, phase,
                                 schedule->microbatch_count - 1, NULL);
}

/* The norm of all gradients of a rank. */
static void norm_add(struct pipeline *pipeline, uint32_t rank)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    const struct schedule *schedule = &pipeline->schedule;
    struct bucket buckets[LOWER_BUCKETS_MAX];
    struct pipeline_variant variant = {.part = {{.act = ACT_NORM}}, .part_count = 1};
    uint32_t counts[MODULE_COUNT];
    if (!ranks_clips(ranks)) return;
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        if (!schedule_rank_holds(schedule, rank, s)) continue;
        pipeline_module_counts(pipeline, &pipeline->stages.stage[s], counts);
        for (uint32_t m = MODULE_NOTHING + 1; m < MODULE_LAYER + ranks->kinds.count; m++) {
            uint32_t const count = lower_buckets_of(ranks, (enum lower_module)m, buckets);
            variant.norm_elements += counts[m] * lower_state_elements(ranks, buckets, count);
        }
    }
    struct program_block const block = {.template_index = pipeline_template(pipeline, &variant),
                                        .phase = PROGRAM_PHASE_UPDATE,
                                        .name = "gradients",
                                        .repeat = 1,
                                        .layer_first = -1,
                                        .microbatch = schedule->microbatch_count - 1};
    pipeline_block_add(pipeline, &block);
}

/* Behind the passes: what is added up between ranks, and updates. Where these are part of the
 * backward pass, what its last slot has reduced is left. */
static void role_end(struct pipeline *pipeline, uint32_t rank)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    const struct schedule *schedule = &pipeline->schedule;
    struct stage const left = {.embedding = ranks_is_decoder(ranks),
                               .layer_count = !ranks_is_decoder(ranks)};
    pipeline_replicas_sum(pipeline);
    pipeline_tie_add(pipeline, rank, pipeline->role.tie_swapped ? ACT_TIE_SUM : ACT_TIE, 0);
    norm_add(pipeline, rank);
    for (uint32_t s = schedule->stage_count; s-- > 0;)
        if (schedule_rank_holds(schedule, rank, s))
            pipeline_modules_add(
                pipeline, ranks_offloads_optimizer(ranks) ? &left : &pipeline->stages.stage[s],
                ACT_UPDATE, PROGRAM_PHASE_UPDATE, schedule->microbatch_count - 1, NULL);
    if (ranks_replicas_wait(ranks)) stages_add(pipeline, rank, ACT_GATHER, PROGRAM_PHASE_UPDATE);
}

/* What has no reductions that could wait for the end of the passes. */
static enum status wait_check(const struct pipeline *pipeline, struct error *reterr)
{
    const struct ranks *ranks = pipeline->lower->ranks;
    const struct schedule *schedule = &pipeline->schedule;
    const struct {
        bool refused;
        const char *what;
    } rows[] = {
        {ranks->data == 1, "the mesh has no replicas"},
        {schedule->copy_count > 1, "the schedule has two copies of a model, which swap the sums"},
        {schedule->has_reductions, "the schedule says when gradients are reduced"},
        {ranks->mtp.modules != 0, "modules of MTP share gradients with the head"},
        {ranks_offloads_optimizer(ranks), "an offloaded optimizer updates behind each layer"},
    };
    bool const shards = ranks->shards > 1 || ranks->plan->zero > 1;
    if (!ranks->plan->software.overlap.dp_apart || (shards && ranks->data > 1)) return STATUS_OK;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].refused)
            return error_set(reterr, STATUS_UNSUPPORTED, "/run/overlap/dp",
                             "no reductions of gradients can wait for the end of the backward "
                             "pass: %s; \"dp\" of \"overlap\" has to be true",
                             rows[i].what);
    return STATUS_OK;
}

/* What has no weight gradients that those of a tied matrix could travel beside. */
static enum status tail_check(const struct pipeline *pipeline, struct error *reterr)
{
    static const char place[] = "/run/overlap/tied";
    const struct ranks *ranks = pipeline->lower->ranks;
    if (!ranks->plan->software.overlap.tied || pipeline->has_tail) return STATUS_OK;
    if (ranks->tie.lookup)
        return error_set(
            reterr, STATUS_INVALID, place,
            "modules of MTP look up the embedding on a stage of their own, and its "
            "gradients are added up behind all passes; \"tied\" of \"overlap\" has to be false");
    if (!ranks->plan->model.tied)
        return error_set(reterr, STATUS_INVALID, place,
                         "the head of %.60s has a matrix of its own, whose gradients go to no "
                         "other stage; \"tied\" of \"overlap\" has to be false",
                         ranks->plan->model.name);
    return error_set(reterr, STATUS_INVALID, place,
                     "gradients of a tied matrix travel during weight gradients at the end of its "
                     "ranks' lists, as zb-h1 and zb-h2 have them, and %s has none there; "
                     "\"tied\" of \"overlap\" has to be false",
                     pipeline->schedule.name);
}

/* Where passes go round, what the rank begins with next time is there when the step ends. */
static void round_end(struct pipeline *pipeline, uint32_t rank)
{
    const struct schedule *schedule = &pipeline->schedule;
    struct pipeline_variant const variant = {
        .part = {{.module = MODULE_NOTHING, .act = ACT_FORWARD, .around = rank == 0}},
        .part_count = 1,
        .receive = WAY_PREVIOUS};
    struct program_block const block = {.template_index = pipeline_template(pipeline, &variant),
                                        .phase = PROGRAM_PHASE_FORWARD,
                                        .name = "next",
                                        .repeat = 1,
                                        .layer_first = -1,
                                        .microbatch = schedule->rank[rank].pass[0].microbatch,
                                        .pass = schedule->rank[rank].count,
                                        .arrivals = schedule->rank[rank].count};
    pipeline_block_add(pipeline, &block);
}

static enum status role_add(struct pipeline *pipeline, uint32_t rank, struct program_role *role,
                            struct error *reterr)
{
    const struct schedule_rank *list = &pipeline->schedule.rank[rank];
    STATUS_TRY(role_begin(pipeline, rank, role, reterr));
    bool const trains = !ranks_serves(pipeline->lower->ranks);
    if (trains && pipeline->lower->ranks->pp == 1) one_stage_build(pipeline);
    for (uint32_t i = 0; i < list->count;) {
        pipeline_actions_add(pipeline, i);
        pipeline_replicas_send(pipeline, i);
        bool const is_tail = pipeline_is_tail(pipeline, rank, i);
        i += is_tail ? pipeline_tail_add(pipeline, rank, i) : pipeline_pass_add(pipeline, rank, i);
        pipeline->has_tail = pipeline->has_tail || is_tail;
    }
    pipeline_actions_add(pipeline, list->count);
    if (ranks_replicas_wait(pipeline->lower->ranks))
        stages_add(pipeline, rank, ACT_REDUCE, PROGRAM_PHASE_BACKWARD);
    pipeline_replicas_send(pipeline, list->count);
    if (trains) role_end(pipeline, rank);
    if (pipeline->schedule.goes_round) round_end(pipeline, rank);
    role->block = pipeline->role.block;
    role->block_count = pipeline->role.block_count;
    return STATUS_OK;
}

/* All roles, and where they lie. Failures may go to lower->build.status, too. */
static enum status roles_add(struct pipeline *pipeline, struct error *reterr)
{
    struct lower *lower = pipeline->lower;
    const struct ranks *ranks = lower->ranks;
    struct program *program = lower->build.program;
    const struct mesh_axis *axis = &ranks->mesh->axis[MESH_PP];
    void *memory = NULL;
    STATUS_TRY(workload_schedule(lower->build.arena, ranks->plan, ranks->machine, ranks->mesh,
                                 &pipeline->schedule, reterr));
    STATUS_TRY(wait_check(pipeline, reterr));
    STATUS_TRY(stages_build(lower->build.arena, ranks->plan, pipeline->schedule.stage_count,
                            ranks_room(ranks, MESH_PP), &pipeline->stages, reterr));
    STATUS_TRY(arena_try(lower->build.arena, pipeline->schedule.stage_count,
                         sizeof *pipeline->role.hold, &memory, reterr));
    pipeline->role.hold = memory;
    STATUS_TRY(arena_try(lower->build.arena, pipeline->schedule.stage_count,
                         sizeof *pipeline->role.sent_stage, &memory, reterr));
    pipeline->role.sent_stage = memory;
    pipeline->tied_rank = pipeline_tied_rank(&pipeline->schedule, &pipeline->stages);
    STATUS_TRY(pipeline_messages_number(pipeline, reterr));
    bool const parts_last = ranks_sums_parts(ranks) && ranks->replicas.gradient_shards == 1;
    pipeline->differs = ranks->plan->accumulate > 1 &&
                        (ranks->gradients.last || parts_last || ranks_offloads_optimizer(ranks));
    if (ranks->pp > 1 && !ranks_serves(ranks)) pipeline_rests_build(pipeline);
    struct program_role *roles = builder_roles(&lower->build, pipeline->schedule.rank_count, 0);
    if (roles == NULL) return lower->build.status;
    for (uint32_t rank = 0; rank < program->role_count; rank++) {
        STATUS_TRY(cancel_check(ranks->plan->cancel, reterr));
        STATUS_TRY(role_add(pipeline, rank, &roles[rank], reterr));
    }
    STATUS_TRY(tail_check(pipeline, reterr));
    const struct group *group = &axis->group;
    if (ranks->pp == 1) return lower->build.status;
    program->role_axis = (uint8_t)group->dimension[0].axis;
    program->role_stride = group->dimension[0].stride;
    /* Zeros of a group of one dimension. */
    program->inner_axis = (uint8_t)group->dimension[1].axis;
    program->inner_stride = group->dimension[1].stride;
    program->inner_count = group->dimension[1].size;
    return lower->build.status;
}

/* `ret_refused`: the collective that cannot go by its algorithm, or of no dimensions. */
static enum status lower_all(struct arena *arena, const struct ranks *ranks,
                             struct program *ret_program, struct plan_request *ret_refused,
                             struct error *reterr)
{
    void *memory = NULL;
    *ret_refused = (struct plan_request){.kind = COLLECTIVE_ALL_GATHER};
    struct lower *lower = NULL;
    STATUS_TRY(lower_begin(arena, ranks, ret_program, &lower, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct pipeline), &memory, reterr));
    struct pipeline *pipeline = memory;
    pipeline->lower = lower;
    enum status status = roles_add(pipeline, reterr);
    if (status == STATUS_OK) lower_overlap_slots(lower);
    if (status == STATUS_OK) status = lower->build.status;
    *ret_refused = lower->refused;
    return status;
}

/* Says what every collective of the step can go by, which is known once it is lowered with "auto".
 */
static enum status refuse_algorithm(struct arena *arena, const struct ranks *of,
                                    const struct plan_request *refused, struct error *reterr)
{
    struct workload_plan automatic = *of->plan;
    struct ranks *ranks = NULL;
    struct program program;
    struct plan_request unused;
    automatic.algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    automatic.inference.chooser = (struct plan_chooser){.choose = NULL};
    STATUS_TRY(ranks_take(arena, &automatic, of->machine, of->mesh, &ranks, reterr));
    STATUS_TRY(lower_all(arena, ranks, &program, &unused, reterr));
    return algorithms_refuse(&program, &of->plan->algorithm, refused, reterr);
}

enum status workload_lower_ranks(struct arena *arena, const struct ranks *ranks,
                                 struct program *ret_program, struct error *reterr)
{
    struct program program;
    struct plan_request refused;
    if (!choice_is_known(&ranks->plan->algorithm))
        return refuse_algorithm(arena, ranks, NULL, reterr);
    enum status const status = lower_all(arena, ranks, &program, &refused, reterr);
    if (status != STATUS_OK && refused.group.dimension_count > 0)
        return refuse_algorithm(arena, ranks, &refused, reterr);
    if (status != STATUS_OK) return status;
    program.tokens = workload_tokens(ranks->plan);
    STATUS_TRY(program_seal(arena, &program, reterr));
    *ret_program = program;
    return STATUS_OK;
}

enum status workload_lower(struct arena *arena, const struct workload_plan *plan,
                           const struct machine *machine, const struct mesh *mesh,
                           struct program *ret_program, struct error *reterr)
{
    struct ranks *ranks = NULL;
    STATUS_TRY(ranks_take(arena, plan, machine, mesh, &ranks, reterr));
    return workload_lower_ranks(arena, ranks, ret_program, reterr);
}
