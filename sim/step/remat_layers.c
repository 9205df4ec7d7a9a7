/* Which layers a step keeps whole, where remat is of some layers alone; of groups of layers, those
 * that keep what their repetition gives. */
#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/schedule/schedule.h"
#include "sim/step/ranks.h"
#include "sim/step/stages.h"

static const char place_of_layers[] = "/workload/remat/layers";

/* The most layers that a stage has, and that a rank has on all its stages. */
struct most {
    uint64_t stage, rank;
};

/* Layers of a stage. `before`: layers that the stage's rank has on earlier stages. */
static void stage_keep(struct ranks *ranks, const struct stage *stage, uint64_t before,
                       struct most *most)
{
    uint64_t const all = before + stage->layer_count;
    const struct workload_repeated *repeated = &ranks->plan->kept.repeated;
    for (uint64_t i = 0; i < stage->layer_count; i++) {
        bool const ends = i + 1 == stage->layer_count;
        bool const repeats = repeated->groups_of != 0 ? ends || (i + 1) % repeated->groups_of == 0
                             : repeated->every != 0   ? (before + i + 1) % repeated->every == 0
                                                      : i < repeated->first;
        if (!repeats) layer_set_add(&ranks->kinds.kept, stage->layer_first + i);
    }
    if (stage->layer_count > most->stage) most->stage = stage->layer_count;
    if (all > most->rank) most->rank = all;
}

static enum status stages_keep(struct arena *arena, struct ranks *ranks, struct most *most,
                               struct error *reterr)
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
        stage_keep(ranks, &stages.stage[s], before[rank], most);
        before[rank] += stages.stage[s].layer_count;
    }
    return STATUS_OK;
}

static enum status layers_keep(struct ranks *ranks, struct most *most, struct error *reterr)
{
    struct stage const all = {.layer_count = (uint32_t)ranks->plan->model.layers};
    if (ranks->pp == 1) {
        stage_keep(ranks, &all, 0, most);
        return STATUS_OK;
    }
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for stages");
    enum status const status = stages_keep(arena, ranks, most, reterr);
    arena_destroy(arena);
    return status;
}

/* Refuses numbers of more layers than a stage or a rank has. */
static enum status most_check(const struct workload_repeated *repeated, const struct most *most,
                              struct error *reterr)
{
    const struct {
        uint64_t layers, most;
        const char *key, *holder, *does;
    } rows[] = {
        {repeated->first, most->stage, "/workload/remat/layers/first", "stage",
         "recomputes all of them"},
        {repeated->every, most->rank, "/workload/remat/layers/every", "rank",
         "recomputes the last of them"},
        {repeated->groups_of, most->stage, "/workload/remat/layers/groups_of", "stage",
         "recomputes all of them together"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].layers > rows[i].most)
            return error_set(reterr, STATUS_INVALID, rows[i].key,
                             "no %s has %s; the most is %llu, which %s", rows[i].holder,
                             counted(rows[i].layers, "layer").text,
                             (unsigned long long)rows[i].most, rows[i].does);
    return STATUS_OK;
}

/* A group of layers is one checkpoint, of which its input is kept. */
static enum status groups_check(const struct ranks *ranks, struct error *reterr)
{
    static const char place[] = "/workload/remat/layers/groups_of";
    const struct workload_plan *plan = ranks->plan;
    if (plan->remat != GRAPH_REMAT_LAYER || graph_named_any(&plan->kept.named))
        return error_set(reterr, STATUS_UNSUPPORTED, place,
                         "layers of a group are repeated whole, which is the policy \"layer\", "
                         "without lists of arrays");
    if (plan->kept.repeated.groups_of > 1 && plan->kept.offload != WORKLOAD_OFFLOAD_NONE)
        return error_set(reterr, STATUS_UNSUPPORTED, place,
                         "with \"offload\" each layer is repeated by itself: Megatron-LM, whose "
                         "groups these are, offloads nothing that it recomputes; leave either out");
    if (plan->kept.repeated.groups_of > 1 && workload_mtp(plan) != 0)
        return error_set(
            reterr, STATUS_UNSUPPORTED, place,
            "Megatron-LM, whose groups these are, recomputes modules of MTP with groups "
            "of one layer alone; 1 is modelled, and \"mtp\": false trains without "
            "modules");
    return STATUS_OK;
}

enum status ranks_kept_find(struct ranks *ranks, struct error *reterr)
{
    const struct workload_plan *plan = ranks->plan;
    const struct workload_repeated *repeated = &plan->kept.repeated;
    struct most most = {0, 0};
    if (!workload_repeats_some(plan)) return STATUS_OK;
    if (workload_keeps_all(plan))
        return error_set(reterr, STATUS_INVALID, place_of_layers,
                         "the policy \"none\" without \"repeat\" recomputes nothing on any layer");
    if (repeated->groups_of != 0) STATUS_TRY(groups_check(ranks, reterr));
    STATUS_TRY(layers_keep(ranks, &most, reterr));
    STATUS_TRY(most_check(repeated, &most, reterr));
    ranks->kinds.grouped = repeated->groups_of != 0 && ranks->kinds.kept.any;
    if (workload_mtp(plan) != 0 && ranks->kinds.kept.any &&
        !layer_set_has(&ranks->kinds.kept, plan->model.layers - 1))
        return error_set(reterr, STATUS_UNSUPPORTED, place_of_layers,
                         "modules of MTP have layers as the last one, which has to be kept here, "
                         "or recomputed with all others; \"mtp\": false trains without modules");
    return STATUS_OK;
}
