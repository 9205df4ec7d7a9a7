#include "tools/podsim/run/advise.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/report/analysis.h"
#include "sim/report/least_memory.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/run/advise_mesh.h"

struct search {
    const struct session_source *source;
    const struct session *session; /* Of the scenario itself. */
    struct worker *worker;
    struct advise *advise;
    uint64_t events; /* Of all rows so far, for the line of progress. */
    bool shards;     /* Replicas that do not fit become shards: dp is called fsdp in every split. */
};

/* What a neighbour's run has done; beyond the limit it stops. */
struct row_watch {
    struct search *search;
    bool too_long;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct row_watch *row = owner;
    struct search *search = row->search;
    row->too_long = progress->events > ADVISE_EVENTS_MAX;
    double const share = (search->advise->count + progress->share) / ADVISE_ROWS_MAX;
    return worker_progress(search->worker, share, search->events + progress->events) &&
           !row->too_long;
}

/* Plays one built neighbour and keeps what came of it. */
static enum status row_play(struct search *search, struct session_source *source,
                            struct session *session, struct advise_row *row, struct error *reterr)
{
    struct least_memory least;
    STATUS_TRY(least_memory_of(session->arena, &session->program, &least, reterr));
    row->memory_bytes = least.total_bytes;
    struct row_watch owner = {.search = search};
    struct replay_options const options = {.watch = watch, .watch_owner = &owner};
    enum status const status = session_replay(session, source, &options, reterr);
    row->state = least.total_bytes > search->advise->hbm_bytes ? ADVISE_UNFIT : ADVISE_TOO_LONG;
    if (owner.too_long && worker_check(search->worker, reterr) == STATUS_OK) return STATUS_OK;
    if (status != STATUS_OK) return status;
    struct report_input input;
    struct analysis facts;
    report_from_session(session, &input);
    STATUS_TRY(analysis_build(session->arena, &input, &facts, reterr));
    row->state = ADVISE_PLAYED;
    row->step_ps = session->trace.step_ps;
    row->has_period = session->trace.period.time > 0;
    row->time_ps = row->has_period ? session->trace.period.time : row->step_ps;
    row->mfu = row->has_period ? facts.period_mfu : facts.mfu;
    row->memory_bytes = session->trace.memory.peak_bytes;
    row->fits = row->memory_bytes <= search->advise->hbm_bytes;
    search->events += session->trace.work.events;
    return STATUS_OK;
}

static bool settings_equal(const struct advise_row *one, const struct advise_row *other)
{
    if (one->setting_count != other->setting_count) return false;
    for (uint32_t i = 0; i < one->setting_count; i++)
        if (strcmp(one->setting[i], other->setting[i]) != 0) return false;
    return true;
}

/* Plays the scenario with these settings, unless that has been done. */
static enum status row_add(struct search *search, struct advise_row row, struct error *reterr)
{
    struct advise *advise = search->advise;
    struct arena *arena = search->session->arena;
    struct session_source source = *search->source;
    struct session session;
    struct error error = {0};
    for (uint32_t i = 0; i < advise->count; i++)
        if (settings_equal(&advise->row[i], &row)) return STATUS_OK;
    if (advise->count == ADVISE_ROWS_MAX) return STATUS_OK;
    if (source.setting_count + row.setting_count > SESSION_SETTINGS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--advise", "too many --set with it");
    source.full = false;
    for (uint32_t i = 0; i < row.setting_count; i++)
        source.settings[source.setting_count++].text = row.setting[i];
    enum status status = session_build(&session, &source, SESSION_PROGRAM, &error);
    if (status == STATUS_OK && session.scenario.run.steps > ADVISE_STEPS_MAX)
        session.scenario.run.steps = ADVISE_STEPS_MAX;
    if (status == STATUS_OK) status = row_play(search, &source, &session, &row, &error);
    if (status != STATUS_OK && status != STATUS_INTERRUPTED && status != STATUS_NO_MEMORY) {
        row.state = ADVISE_REFUSED;
        row.why = arena_text(arena, error.message);
        status = row.why == NULL ? error_set(&error, STATUS_NO_MEMORY, "", "there is no memory")
                                 : STATUS_OK;
    }
    session_close(&session);
    if (status != STATUS_OK) *reterr = error;
    if (status == STATUS_OK) advise->row[advise->count++] = row;
    return status;
}

/* One more change has to gain half a percent. */
static bool is_better(const struct advise_row *row, const struct advise_row *best)
{
    if (row->setting_count <= best->setting_count) return row->time_ps < best->time_ps;
    return row->time_ps < best->time_ps - best->time_ps / 200;
}

static void best_find(struct advise *advise)
{
    advise->best = ADVISE_NONE;
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        if (row->state != ADVISE_PLAYED || !row->fits) continue;
        if (advise->best == ADVISE_NONE || is_better(row, &advise->row[advise->best]))
            advise->best = i;
    }
}

static enum status setting_add(struct arena *arena, struct advise_row *row, const char *setting,
                               struct error *reterr)
{
    SIM_ASSERT(row->setting_count < ADVISE_SETTINGS_MAX);
    row->setting[row->setting_count] = setting == NULL ? NULL : arena_text(arena, setting);
    if (row->setting[row->setting_count++] == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "--advise", "there is no memory");
    return STATUS_OK;
}

/* What tp gathers is kept only where there are tp and no remat. */
static enum status row_try(struct search *search, struct advise_row row, bool has_tp,
                           enum graph_remat remat, struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    if (plan->tp_inputs == WORKLOAD_TP_INPUTS_WHOLE && (!has_tp || remat != GRAPH_REMAT_NONE))
        STATUS_TRY(setting_add(search->session->arena, &row, "/workload/tp_inputs=shards", reterr));
    return row_add(search, row, reterr);
}

/* A mesh with remat as it is (unless that has been simulated) and with either of the usual ones. */
static enum status remats_play(struct search *search, const struct advise_row *split, bool has_tp,
                               struct error *reterr)
{
    static const struct {
        enum graph_remat remat;
        const char *setting;
    } remats[] = {{GRAPH_REMAT_NONE, "/workload/remat=none"},
                  {GRAPH_REMAT_BLOCK, "/workload/remat=block"}};
    enum graph_remat const own = search->session->scenario.workload.remat;
    STATUS_TRY(row_try(search, *split, has_tp, own, reterr));
    for (uint32_t r = 0; r < sizeof remats / sizeof *remats; r++) {
        struct advise_row row = *split;
        if (own == remats[r].remat) continue;
        STATUS_TRY(setting_add(search->session->arena, &row, remats[r].setting, reterr));
        STATUS_TRY(row_try(search, row, has_tp, remats[r].remat, reterr));
    }
    return STATUS_OK;
}

/* The scenario's own split, whatever it is, and then every other one of tp, with each remat. */
static enum status splits_play(struct search *search, struct error *reterr)
{
    const struct session *session = search->session;
    struct advise_row const own = {.setting_count = 0};
    uint32_t ranks[ADVISE_SPLITS_MAX];
    uint32_t const splits = advise_mesh_splits(session, ranks);
    STATUS_TRY(remats_play(search, &own, session->mesh.present[MESH_TP], reterr));
    for (uint32_t s = 0; s < splits; s++) {
        struct advise_row split = own;
        bool keeps_zero = true;
        if (!search->shards && advise_mesh_is_current(session, ranks[s])) continue;
        const char *const mesh =
            advise_mesh_setting(session, ranks[s], search->shards, &keeps_zero);
        STATUS_TRY(setting_add(session->arena, &split, mesh, reterr));
        if (!keeps_zero && session->scenario.workload.zero > 0)
            STATUS_TRY(setting_add(session->arena, &split, "/workload/zero=0", reterr));
        STATUS_TRY(remats_play(search, &split, ranks[s] > 1, reterr));
    }
    return STATUS_OK;
}

static bool sets(const struct advise_row *row, const char *pointer)
{
    size_t const length = strlen(pointer);
    for (uint32_t i = 0; i < row->setting_count; i++)
        if (strncmp(row->setting[i], pointer, length) == 0 && row->setting[i][length] == '=')
            return true;
    return false;
}

/* The best so far with one thing more changed. ZeRO-2 reduces gradients for each microbatch, ZeRO-1
 * once; where a split of the mesh has set the stage already, it stays. */
static enum status rest_play(struct search *search, struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    struct arena *arena = search->session->arena;
    bool const reduces_each = plan->zero == 2 && plan->accumulate > 1;
    const char *const settings[] = {
        reduces_each ? "/workload/zero=1" : NULL,
        plan->collective_matmul ? "/run/collective_matmul=false" : "/run/collective_matmul=true",
        plan->prefetch_layers == 1 ? "/run/prefetch_layers=2" : "/run/prefetch_layers=1",
    };
    for (uint32_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        best_find(search->advise);
        if (search->advise->best == ADVISE_NONE) return STATUS_OK;
        struct advise_row row = {.setting_count = 0};
        const struct advise_row *best = &search->advise->row[search->advise->best];
        if (settings[i] == NULL || (i == 0 && sets(best, "/workload/zero"))) continue;
        memcpy(row.setting, best->setting, sizeof row.setting);
        row.setting_count = best->setting_count;
        STATUS_TRY(setting_add(arena, &row, settings[i], reterr));
        STATUS_TRY(row_add(search, row, reterr));
    }
    return STATUS_OK;
}

/* Where nothing fits so far: weights sharded instead of replicated, then smaller microbatches. What
 * cannot be divided so is no neighbour, and not divided further. */
static enum status smaller_play(struct search *search, struct error *reterr)
{
    struct arena *arena = search->session->arena;
    struct advise *advise = search->advise;
    const struct mesh *mesh = &search->session->mesh;
    const struct workload_plan *plan = &search->session->scenario.workload;
    bool const alone = mesh->axis[MESH_EP].size * mesh->axis[MESH_CP].size == 1;
    bool const shards = mesh->present[MESH_DP] && alone;
    for (uint32_t more = 2; more <= 16; more *= 2) {
        uint32_t const count = advise->count;
        best_find(advise);
        if (advise->best != ADVISE_NONE) return STATUS_OK;
        struct advise_row row = {.setting_count = 0};
        STATUS_TRY(setting_add(
            arena, &row, arena_format(arena, "/workload/accumulate=%u", plan->accumulate * more),
            reterr));
        STATUS_TRY(setting_add(arena, &row, "/workload/remat=block", reterr));
        if (shards && plan->zero < 3)
            STATUS_TRY(setting_add(arena, &row, "/workload/zero=3", reterr));
        STATUS_TRY(row_try(search, row, mesh->present[MESH_TP], GRAPH_REMAT_BLOCK, reterr));
        if (advise->count > count && advise->row[count].state == ADVISE_REFUSED) {
            advise->count = count;
            break;
        }
        /* Still smaller ones have still more events. */
        if (advise->row[advise->count - 1].state == ADVISE_TOO_LONG) break;
    }
    return STATUS_OK;
}

enum status advise_run(const struct session_source *source, const struct session *session,
                       struct worker *worker, struct advise *ret_advise, struct error *reterr)
{
    *ret_advise =
        (struct advise){.hbm_bytes = session->machine.chip.hbm_capacity_bytes, .source = source};
    struct search search = {
        .source = source, .session = session, .worker = worker, .advise = ret_advise};
    STATUS_TRY(row_add(&search, (struct advise_row){.setting_count = 0}, reterr));
    search.shards = !ret_advise->row[0].fits && session->mesh.axis[MESH_DP].size > 1 &&
                    !session->mesh.present[MESH_FSDP] && !session->mesh.present[MESH_PP];
    STATUS_TRY(splits_play(&search, reterr));
    STATUS_TRY(smaller_play(&search, reterr));
    STATUS_TRY(rest_play(&search, reterr));
    best_find(ret_advise);
    return STATUS_OK;
}
