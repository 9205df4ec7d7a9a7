#include "tools/podsim/run/advise.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/graph/terms.h"
#include "tools/podsim/run/advise_mesh.h"
#include "tools/podsim/run/advise_row.h"
#include "tools/podsim/run/advise_search.h"

/* Rows that do not depend on what others come to. */
struct rows {
    struct advise_row row[ADVISE_ROWS_MAX];
    uint32_t count;
};

/* What tp gathers is kept only where there are tp and no remat. */
static enum status row_add(const struct advise_search *search, struct rows *rows,
                           const struct advise_row *like, bool has_tp, enum graph_remat remat,
                           struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    struct advise_row row = *like;
    if (rows->count == ADVISE_ROWS_MAX) return STATUS_OK;
    if (plan->tp_inputs == WORKLOAD_TP_INPUTS_WHOLE && (!has_tp || remat != GRAPH_REMAT_NONE))
        STATUS_TRY(
            advise_setting_add(search->session->arena, &row, "/workload/tp_inputs=shards", reterr));
    rows->row[rows->count++] = row;
    return STATUS_OK;
}

/* A neighbour with another remat policy. */
static enum status remat_add(const struct advise_search *search, struct rows *rows,
                             const struct advise_row *like, bool has_tp, enum graph_remat remat,
                             struct error *reterr)
{
    struct arena *arena = search->session->arena;
    struct advise_row row = *like;
    STATUS_TRY(advise_setting_add(
        arena, &row, arena_format(arena, "/workload/remat=%s", graph_remat_names[remat]), reterr));
    return row_add(search, rows, &row, has_tp, remat, reterr);
}

/* A neighbour that recomputes every other layer. */
static enum status half_add(const struct advise_search *search, struct rows *rows,
                            const struct advise_row *like, bool has_tp, struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    struct advise_row row = *like;
    if (plan->model.layers < 2 || workload_mtp(plan) != 0) return STATUS_OK;
    STATUS_TRY(advise_setting_add(search->session->arena, &row,
                                  "/workload/remat={\"layers\":{\"every\":2}}", reterr));
    return row_add(search, rows, &row, has_tp, GRAPH_REMAT_BLOCK, reterr);
}

/* Whether remat is a policy of all layers and arrays alone. */
static bool is_plain(const struct workload_plan *plan)
{
    return !graph_named_any(&plan->kept.named) && !workload_repeats_some(plan);
}

/* A mesh with remat as it is and with either of the usual ones. */
static enum status remats_add(const struct advise_search *search, struct rows *rows,
                              const struct advise_row *split, bool has_tp, struct error *reterr)
{
    static const enum graph_remat usual[] = {GRAPH_REMAT_NONE, GRAPH_REMAT_BLOCK};
    const struct workload_plan *plan = &search->session->scenario.workload;
    STATUS_TRY(row_add(search, rows, split, has_tp, plan->remat, reterr));
    for (uint32_t r = 0; r < sizeof usual / sizeof *usual; r++)
        if (plan->remat != usual[r] || !is_plain(plan))
            STATUS_TRY(remat_add(search, rows, split, has_tp, usual[r], reterr));
    return STATUS_OK;
}

/* Updates are sharded as the mesh says, and gradients reduced behind each layer. */
static enum status shards_add(const struct advise_search *search, struct advise_row *row,
                              const char *zero, struct error *reterr)
{
    struct arena *arena = search->session->arena;
    if (zero != NULL) STATUS_TRY(advise_setting_add(arena, row, zero, reterr));
    if (!search->session->scenario.workload.software.overlap.dp_apart) return STATUS_OK;
    return advise_setting_add(arena, row, "/run/overlap/dp=true", reterr);
}

/* The scenario's own split, whatever it is, and then every other one of tp, with each remat. */
static enum status splits_play(struct advise_search *search, struct error *reterr)
{
    const struct session *session = search->session;
    struct advise_row const own = {.setting_count = 0};
    struct rows rows = {.count = 0};
    uint32_t ranks[ADVISE_SPLITS_MAX];
    uint32_t const splits = advise_mesh_splits(session, ranks);
    STATUS_TRY(remats_add(search, &rows, &own, session->mesh.present[MESH_TP], reterr));
    for (uint32_t s = 0; s < splits; s++) {
        struct advise_row split = own;
        bool keeps_zero = true;
        if (!search->shards && advise_mesh_is_current(session, ranks[s])) continue;
        const char *const mesh =
            advise_mesh_setting(session, ranks[s], search->shards, &keeps_zero);
        STATUS_TRY(advise_setting_add(session->arena, &split, mesh, reterr));
        const char *const zero = session->scenario.workload.zero > 0 ? "/workload/zero=0" : NULL;
        if (!keeps_zero) STATUS_TRY(shards_add(search, &split, zero, reterr));
        STATUS_TRY(remats_add(search, &rows, &split, ranks[s] > 1, reterr));
    }
    return advise_rows_add(search, rows.row, rows.count, reterr);
}

static bool keeps_all(const struct advise_search *search, const struct advise_row *row)
{
    if (advise_sets(row, "/workload/remat")) return advise_sets_to(row, "/workload/remat=none");
    return workload_keeps_all(&search->session->scenario.workload);
}

/* A split that keeps all and does not fit, though it is faster than the best that does: it may fit
 * with a policy that repeats little, or with one of half the layers. What such a policy gives is no
 * faster, so slower splits are left out. */
static enum status between_play(struct advise_search *search, struct error *reterr)
{
    struct advise *advise = search->advise;
    const struct workload_plan *plan = &search->session->scenario.workload;
    struct rows rows = {.count = 0};
    advise_best_find(advise);
    if (advise->best == ADVISE_NONE) return STATUS_OK;
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        bool const misses = row->state == ADVISE_PLAYED && !row->fits && keeps_all(search, row);
        if (!misses || row->time_ps >= advise->row[advise->best].time_ps) continue;
        for (enum graph_remat remat = GRAPH_REMAT_NONE + 1; remat < GRAPH_REMAT_BLOCK; remat++)
            if (remat != plan->remat || !is_plain(plan))
                STATUS_TRY(remat_add(search, &rows, row, row->tp_ranks > 1, remat, reterr));
        STATUS_TRY(half_add(search, &rows, row, row->tp_ranks > 1, reterr));
    }
    return advise_rows_add(search, rows.row, rows.count, reterr);
}

/* The best so far with one thing more changed. ZeRO-2 reduces gradients for each microbatch, ZeRO-1
 * once; where a split of the mesh has set the stage already, it stays. */
static enum status rest_play(struct advise_search *search, struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    struct arena *arena = search->session->arena;
    bool const reduces_each = plan->zero == 2 && plan->accumulate > 1;
    bool const sums = plan->activations == WORKLOAD_ACTIVATIONS_REPLICATED;
    const struct {
        const char *setting; /* NULL: not for this step. */
        const char *unless;  /* Nor for a neighbour that has set this key already. */
    } tries[] = {
        {reduces_each ? "/workload/zero=1" : NULL, "/workload/zero"},
        {plan->software.overlap.dp_apart ? "/run/overlap/dp=true" : NULL, "/run/overlap/dp"},
        {sums                      ? NULL
         : plan->collective_matmul ? "/run/collective_matmul=false"
                                   : "/run/collective_matmul=true",
         NULL},
        {plan->prefetch_layers == 1 ? "/run/prefetch_layers=2" : "/run/prefetch_layers=1", NULL},
    };
    for (uint32_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        advise_best_find(search->advise);
        if (search->advise->best == ADVISE_NONE) return STATUS_OK;
        struct advise_row row = {.setting_count = 0};
        const struct advise_row *best = &search->advise->row[search->advise->best];
        if (tries[i].setting == NULL ||
            (tries[i].unless != NULL && advise_sets(best, tries[i].unless)))
            continue;
        memcpy(row.setting, best->setting, sizeof row.setting);
        row.setting_count = best->setting_count;
        STATUS_TRY(advise_setting_add(arena, &row, tries[i].setting, reterr));
        STATUS_TRY(advise_row_add(search, row, reterr));
    }
    return STATUS_OK;
}

/* What does not fit may do so if streams take turns at links: under another arbitration gathers can
 * run ahead of reductions, whose buffers pile up. */
static enum status turns_play(struct advise_search *search, struct error *reterr)
{
    struct advise_row row = {.setting_count = 0};
    const struct session *session = search->session;
    if (search->advise->row[0].state == ADVISE_TOO_LONG || search->advise->row[0].fits ||
        session->scenario.run.arbitration == ARBITRATION_FAIR)
        return STATUS_OK;
    STATUS_TRY(advise_setting_add(session->arena, &row, "/run/arbitration=fair", reterr));
    return advise_row_add(search, row, reterr);
}

/* Where nothing fits so far: weights sharded instead of replicated, then smaller microbatches. What
 * cannot be divided so is no neighbour, and not divided further. */
static enum status smaller_play(struct advise_search *search, struct error *reterr)
{
    struct arena *arena = search->session->arena;
    struct advise *advise = search->advise;
    const struct mesh *mesh = &search->session->mesh;
    const struct workload_plan *plan = &search->session->scenario.workload;
    bool const alone = mesh->axis[MESH_EP].size * mesh->axis[MESH_CP].size == 1;
    bool const shards = mesh->present[MESH_DP] && alone;
    for (uint32_t more = 2; more <= 16; more *= 2) {
        uint32_t const count = advise->count;
        advise_best_find(advise);
        if (advise->best != ADVISE_NONE) return STATUS_OK;
        struct advise_row row = {.setting_count = 0};
        STATUS_TRY(advise_setting_add(
            arena, &row, arena_format(arena, "/workload/accumulate=%u", plan->accumulate * more),
            reterr));
        STATUS_TRY(advise_setting_add(arena, &row, "/workload/remat=block", reterr));
        if (shards && plan->zero < 3)
            STATUS_TRY(shards_add(search, &row, "/workload/zero=3", reterr));
        struct rows one = {.count = 0};
        STATUS_TRY(row_add(search, &one, &row, mesh->present[MESH_TP], GRAPH_REMAT_BLOCK, reterr));
        STATUS_TRY(advise_rows_add(search, one.row, one.count, reterr));
        if (advise->count > count && advise->row[count].state == ADVISE_REFUSED) {
            advise->count = count;
            break;
        }
        /* Still smaller ones have still more events. */
        if (advise->row[advise->count - 1].state == ADVISE_TOO_LONG) break;
    }
    return STATUS_OK;
}

/* The neighbour that is known to hold least. */
static const struct advise_row *least_row(const struct advise *advise)
{
    const struct advise_row *least = &advise->row[0];
    for (uint32_t i = 1; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        if (row->state != ADVISE_REFUSED && row->memory_bytes < least->memory_bytes) least = row;
    }
    return least;
}

static bool any_may_fit(const struct advise *advise)
{
    for (uint32_t i = 0; i < advise->count; i++)
        if (advise->row[i].state == ADVISE_TOO_LONG || advise->row[i].fits) return true;
    return false;
}

/* Where nothing fits so far, and nothing may: the optimizer in the host's memory, of the scenario
 * and of the neighbour that holds least, then what remat keeps as well. What cannot be offloaded is
 * no neighbour. */
static enum status offload_play(struct advise_search *search, struct error *reterr)
{
    static const char optimizer[] = "/workload/offload=optimizer";
    struct arena *arena = search->session->arena;
    struct advise *advise = search->advise;
    struct advise_row const own = {.setting_count = 0}, least = *least_row(advise);
    const struct {
        const struct advise_row *like;
        const char *setting;
    } tries[] = {{&own, optimizer}, {&least, optimizer}, {&least, "/workload/offload=both"}};
    if (search->session->scenario.workload.kept.offload != WORKLOAD_OFFLOAD_NONE) return STATUS_OK;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        uint32_t const count = advise->count;
        if (any_may_fit(advise)) return STATUS_OK;
        struct advise_row row = {.setting_count = tries[i].like->setting_count};
        memcpy(row.setting, tries[i].like->setting, sizeof row.setting);
        STATUS_TRY(advise_setting_add(arena, &row, tries[i].setting, reterr));
        STATUS_TRY(advise_row_add(search, row, reterr));
        if (advise->count > count && advise->row[count].state == ADVISE_REFUSED)
            advise->count = count;
    }
    return STATUS_OK;
}

enum status advise_run(const struct session_source *source, const struct session *session,
                       struct worker *worker, uint32_t thread_count, struct advise *ret_advise,
                       struct error *reterr)
{
    const struct inference_generation *generation =
        &session->scenario.workload.inference.generation;
    *ret_advise = (struct advise){.hbm_bytes = session->machine.chip.hbm_capacity_bytes,
                                  .page = advise_page(generation),
                                  .own_page = generation->page,
                                  .source = source};
    struct advise_search search = {
        .source = source, .session = session, .worker = worker, .advise = ret_advise};
    pool_open(&search.pool, worker, thread_count);
    STATUS_TRY(advise_row_add(&search, (struct advise_row){.setting_count = 0}, reterr));
    if (session->scenario.workload.kind != WORKLOAD_TRAIN_STEP)
        return advise_inference(&search, reterr);
    search.shards = !ret_advise->row[0].fits && session->mesh.axis[MESH_DP].size > 1 &&
                    !session->mesh.present[MESH_FSDP] && !session->mesh.present[MESH_PP];
    STATUS_TRY(splits_play(&search, reterr));
    STATUS_TRY(between_play(&search, reterr));
    STATUS_TRY(turns_play(&search, reterr));
    STATUS_TRY(smaller_play(&search, reterr));
    STATUS_TRY(offload_play(&search, reterr));
    STATUS_TRY(rest_play(&search, reterr));
    advise_best_find(ret_advise);
    return STATUS_OK;
}
