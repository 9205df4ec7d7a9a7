/* What pipelines cannot have. */
#include "sim/base/arena.h"
#include "sim/step/pipeline.h"

/* Both ends of a model that ties them on one rank, or elsewhere than the first and `tied_rank`. */
static enum status tied_check(const struct ranks *ranks, const struct schedule *schedule,
                              uint32_t tied_rank, struct error *reterr)
{
    bool const last = tied_rank == schedule->rank_count - 1;
    bool const ends = schedule_rank_of(schedule, 0, 0) == 0 && schedule->copy_count == 1;
    if (!ranks->tie.apart || (ends && (last || (ranks->tie.lookup && tied_rank != 0))))
        return STATUS_OK;
    if (ranks->tie.lookup)
        return error_set(
            reterr, STATUS_UNSUPPORTED, "/workload/mtp",
            "multi-token prediction needs the embedding on its own stage too, which is "
            "modelled with 1f1b, interleaved, looped-bfs and others with the first "
            "stage on the first rank and \"m\" on another; and where \"m\" and \"L\" "
            "share that rank, as in dualpipev; \"mtp\": false trains %s without",
            ranks->plan->model.name);
    return error_set(reterr, STATUS_UNSUPPORTED, "/workload/schedule",
                     "%s ties its embedding to its head, which is modelled where they lie on the "
                     "first and last rank, as in 1f1b, interleaved or looped-bfs, but not as "
                     "in %s",
                     ranks->plan->model.name, schedule->name);
}

uint32_t pipeline_tied_rank(const struct schedule *schedule, const struct stages *stages)
{
    uint32_t stage = schedule->stage_count - 1;
    for (uint32_t s = 0; s < schedule->stage_count; s++)
        if (stages->stage[s].mtp_modules != 0) stage = s;
    return schedule_rank_of(schedule, stage, 0);
}

/* A stage without layers begins behind the last. */
static bool borrows(const struct model *model, uint32_t layer)
{
    return layer < model->layers && model_layer_kind(model, layer, 0).borrows;
}

/* A stage has the rows that its layers attend to. */
static enum status borrowing_check(const struct model *model, const struct stages *stages,
                                   struct error *reterr)
{
    for (uint32_t s = 1; s < stages->count; s++) {
        uint32_t const first = stages->stage[s].layer_first;
        uint32_t before = first, behind = first;
        if (!borrows(model, first)) continue;
        while (borrows(model, before)) before--;
        while (borrows(model, behind)) behind++;
        uint32_t const nearest = before > 0 ? before : behind;
        const char *const name = model->name;
        if (nearest == model->layers)
            return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                             "all layers of %.60s attend to the cache of the first, so no second "
                             "stage has it; tp, dp and ep go",
                             name);
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stage %u of %u would begin with layer %u of %.60s, which attends to the "
                         "cache of layer %u on the stage before; it could begin with layer %u",
                         s, stages->count, first, name, before, nearest);
    }
    return STATUS_OK;
}

static enum status places_check(struct arena *arena, const struct ranks *ranks,
                                struct error *reterr)
{
    struct schedule schedule;
    struct stages stages;
    STATUS_TRY(workload_places(arena, ranks->plan, ranks->pp, &schedule, reterr));
    STATUS_TRY(stages_build(arena, ranks->plan, schedule.stage_count, ranks_room(ranks, MESH_PP),
                            &stages, reterr));
    STATUS_TRY(borrowing_check(&ranks->plan->model, &stages, reterr));
    return tied_check(ranks, &schedule, pipeline_tied_rank(&schedule, &stages), reterr);
}

enum status ranks_stages_check(const struct ranks *ranks, struct error *reterr)
{
    if (ranks->pp == 1) return STATUS_OK;
    STATUS_TRY(mesh_stages_check(ranks->mesh, reterr));
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for stages");
    enum status const status = places_check(arena, ranks, reterr);
    arena_destroy(arena);
    return status;
}
