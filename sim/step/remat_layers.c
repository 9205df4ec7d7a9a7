/* Which layers a step keeps whole, where remat is of some layers alone. */
#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/schedule/schedule.h"
#include "sim/step/ranks.h"
#include "sim/step/stages.h"

static const char place_of_layers[] = "/workload/remat/layers";

/* Layers of a stage. `before`: layers that the stage's rank has on earlier stages. */
static void stage_keep(struct ranks *ranks, const struct stage *stage, uint64_t before)
{
    const struct workload_repeated *repeated = &ranks->plan->kept.repeated;
    for (uint64_t i = 0; i < stage->layer_count; i++) {
        bool const repeats =
            repeated->every != 0 ? (before + i + 1) % repeated->every == 0 : i < repeated->first;
        if (!repeats) layer_set_add(&ranks->kinds.kept, stage->layer_first + i);
    }
}

static enum status stages_keep(struct arena *arena, struct ranks *ranks, struct error *reterr)
{
    struct schedule schedule;
    struct stages stages;
    void *memory = NULL;
    STATUS_TRY(workload_places(arena, ranks->plan, ranks->pp, &schedule, reterr));
    STATUS_TRY(stages_build(arena, ranks->plan, schedule.stage_count, ranks_room(ranks, MESH_PP),
                            &stages, reterr));
    if (ranks->plan->kept.repeated.every != 0 && schedule.copy_count > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, "/workload/remat/layers/every",
                         "layers are counted on each rank, and %s lays each stage on two ranks; "
                         "\"first\" is modelled",
                         schedule.name);
    STATUS_TRY(arena_try(arena, schedule.rank_count, sizeof(uint64_t), &memory, reterr));
    uint64_t *before = memory;
    for (uint32_t s = 0; s < stages.count; s++) {
        uint32_t const rank = schedule_rank_of(&schedule, s, 0);
        stage_keep(ranks, &stages.stage[s], before[rank]);
        before[rank] += stages.stage[s].layer_count;
    }
    return STATUS_OK;
}

static enum status layers_keep(struct ranks *ranks, struct error *reterr)
{
    struct stage const all = {.layer_count = (uint32_t)ranks->plan->model.layers};
    if (ranks->pp == 1) {
        stage_keep(ranks, &all, 0);
        return STATUS_OK;
    }
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for stages");
    enum status const status = stages_keep(arena, ranks, reterr);
    arena_destroy(arena);
    return status;
}

/* Whether some layer is not kept. */
static bool repeats_any(const struct ranks *ranks)
{
    for (uint64_t layer = 0; layer < ranks->plan->model.layers; layer++)
        if (!layer_set_has(&ranks->kinds.kept, layer)) return true;
    return false;
}

enum status ranks_kept_find(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct workload_repeated *repeated = &plan->kept.repeated;
    if (!workload_repeats_some(plan)) return STATUS_OK;
    if (workload_keeps_all(plan))
        return error_set(reterr, STATUS_INVALID, place_of_layers,
                         "the policy \"none\" without \"repeat\" recomputes nothing on any layer");
    STATUS_TRY(layers_keep(ranks, reterr));
    if (!repeats_any(ranks))
        return error_set(reterr, STATUS_INVALID, place_of_layers,
                         "no rank has %s, so none would be recomputed; the policy \"none\" "
                         "recomputes none",
                         counted(repeated->every, "layer").text);
    if (workload_mtp(plan) != 0 && ranks->kinds.kept.any &&
        !layer_set_has(&ranks->kinds.kept, plan->model.layers - 1))
        return error_set(reterr, STATUS_UNSUPPORTED, place_of_layers,
                         "modules of MTP have layers as the last one, which has to be kept here, "
                         "or recomputed with all others; \"mtp\": false trains without modules");
    return STATUS_OK;
}
