#include "tools/podsim/run/advise_search.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/program/least_memory.h"
#include "sim/report/analysis.h"
#include "tools/podsim/common/generate.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/run/advise_row.h"

/* What a neighbour's run has done; beyond the limit it stops. */
struct row_watch {
    struct advise_search *search;
    uint32_t thread;
    bool too_long;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct row_watch *row = owner;
    double const share = progress->share < 1 ? progress->share : 1;
    row->too_long = progress->events > ADVISE_EVENTS_MAX;
    return pool_progress(&row->search->pool, row->thread, share, progress->events) &&
           !row->too_long;
}

uint64_t advise_page(const struct inference_generation *of)
{
    return units_larger(of->page, units_ceil_divide(of->output, ADVISE_PAGES_MAX));
}

/* A whole answer in a few pages. The scenario's own answer has the same pages, so that rows
 * compare. The prefill and the last step have been simulated for its memory. */
static enum status generation_play(const struct replay_options *options,
                                   struct session_source *source, struct session *session,
                                   struct advise_row *row, struct error *reterr)
{
    struct inference_generation *of = &session->scenario.workload.inference.generation;
    struct generation generation = {0};
    of->page = advise_page(of);
    STATUS_TRY(generate_play(session, source, options, &generation, reterr));
    row->step_ps = row->time_ps = generation_total_ps(&generation);
    row->has_period = false;
    row->mfu = 0;
    return STATUS_OK;
}

/* Plays one built neighbour and keeps what came of it. */
static enum status row_play(struct advise_search *search, uint32_t thread,
                            struct session_source *source, struct session *session,
                            struct advise_row *row, struct error *reterr)
{
    struct least_memory least;
    STATUS_TRY(least_memory_of(session->arena, &session->program, &least, reterr));
    row->memory_bytes = least.total_bytes;
    row->tp_ranks = session->mesh.axis[MESH_TP].size;
    row->tp_d_ranks = session->mesh.axis[MESH_TP_D].size;
    row->dp_ranks = session->mesh.axis[MESH_DP].size;
    struct row_watch owner = {.search = search, .thread = thread};
    struct replay_options const options = {.watch = watch, .watch_owner = &owner};
    enum status status = session_replay(session, source, &options, reterr);
    row->state = least.total_bytes > search->advise->hbm_bytes ? ADVISE_UNFIT : ADVISE_TOO_LONG;
    if (owner.too_long && worker_check(search->worker, reterr) == STATUS_OK) return STATUS_OK;
    if (status != STATUS_OK) return status;
    struct report_input input;
    struct analysis analysis;
    report_from_session(session, &input);
    STATUS_TRY(analysis_build(session->arena, &input, &analysis, reterr));
    row->digest = session->trace.digest;
    row->step_ps = session->trace.step_ps;
    /* A prompt's first token waits for all stages, however soon the next prompt may follow. */
    row->has_period =
        session->trace.period.time > 0 && session->scenario.workload.kind != WORKLOAD_PREFILL;
    row->time_ps = row->has_period ? session->trace.period.time : row->step_ps;
    row->mfu = row->has_period ? analysis.period.mfu : analysis.mfu;
    row->memory_bytes = session->trace.memory.peak_bytes;
    row->fits = row->memory_bytes <= search->advise->hbm_bytes;
    if (session->scenario.workload.kind == WORKLOAD_GENERATE)
        status = generation_play(&options, source, session, row, reterr);
    row->state = owner.too_long ? ADVISE_TOO_LONG : ADVISE_PLAYED;
    return owner.too_long ? worker_check(search->worker, reterr) : status;
}

static bool settings_equal(const struct advise_row *one, const struct advise_row *other)
{
    if (one->setting_count != other->setting_count) return false;
    for (uint32_t i = 0; i < one->setting_count; i++)
        if (strcmp(one->setting[i], other->setting[i]) != 0) return false;
    return true;
}

/* Neighbours that are simulated together. */
struct batch {
    struct advise_search *search;
    struct advise_row row[ADVISE_ROWS_MAX];
    struct error refused[ADVISE_ROWS_MAX];
    uint32_t count;
};

static bool is_known(const struct batch *batch, const struct advise_row *row)
{
    const struct advise *advise = batch->search->advise;
    for (uint32_t i = 0; i < advise->count; i++)
        if (settings_equal(&advise->row[i], row)) return true;
    for (uint32_t i = 0; i < batch->count; i++)
        if (settings_equal(&batch->row[i], row)) return true;
    return false;
}

/* Builds and plays a neighbour, the part of a batch. What cannot be is no failure. */
static enum status batch_part(void *owner, uint32_t index, uint32_t thread, struct error *reterr)
{
    struct batch *batch = owner;
    struct advise_search *search = batch->search;
    struct advise_row *row = &batch->row[index];
    struct session_source source = *search->source;
    struct session session;
    source.full = false;
    /* Rows have one machine, and what is fastest on its links is looked for once: it is kept for
     * one thread. Rows on other threads look for themselves, and find the same. */
    source.chooser = thread == 0 ? &search->session->scenario.workload.inference.chooser : NULL;
    for (uint32_t i = 0; i < row->setting_count; i++)
        source.settings[source.setting_count++].text = row->setting[i];
    enum status status = session_build(&session, &source, SESSION_PROGRAM, reterr);
    if (status == STATUS_OK && session.scenario.run.steps > ADVISE_STEPS_MAX)
        session.scenario.run.steps = ADVISE_STEPS_MAX;
    if (status == STATUS_OK) status = row_play(search, thread, &source, &session, row, reterr);
    session_close(&session);
    if (status == STATUS_OK || status == STATUS_INTERRUPTED || status == STATUS_NO_MEMORY)
        return status;
    row->state = ADVISE_REFUSED;
    batch->refused[index] = *reterr;
    return STATUS_OK;
}

/* Compute can wait only for collectives of an axis that the mesh has, and of tp only without
 * collective matmuls: the scenario's other words of `run.overlap` go. So do collective matmuls
 * where blocks end in AllReduces, and user buffers where products no longer go chunk by chunk. */
static enum status overlaps_add(const struct advise_search *search, struct advise_row *row,
                                struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    const struct workload_overlaps *overlap = &plan->software.overlap;
    bool const asks = advise_sets_to(row, "/run/collective_matmul=true");
    bool const sums = advise_sets_to(row, "/workload/activations=replicated");
    bool const has_chunks = asks && !sums;
    const struct {
        bool waits, is_lost;
        const char *setting;
    } roles[] = {
        {overlap->fsdp != WORKLOAD_OVERLAP_ALL, advise_loses(row, MESH_FSDP),
         "/run/overlap/fsdp=true"},
        {overlap->tp != WORKLOAD_OVERLAP_ALL, advise_loses(row, MESH_TP) || has_chunks,
         "/run/overlap/tp=true"},
        {overlap->ep_apart, advise_loses(row, MESH_EP), "/run/overlap/ep=true"},
        {overlap->pp_apart, advise_loses(row, MESH_PP), "/run/overlap/pp=true"},
        {plan->collective_matmul || asks, sums, "/run/collective_matmul=false"},
        {plan->software.chunks != WORKLOAD_CHUNKS_RANKS,
         advise_loses(row, MESH_TP) || sums || advise_sets_to(row, "/run/collective_matmul=false"),
         "/run/matmul_chunks=ranks"},
    };
    for (uint32_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (roles[i].waits && roles[i].is_lost)
            STATUS_TRY(advise_setting_add(search->session->arena, row, roles[i].setting, reterr));
    return STATUS_OK;
}

enum status advise_rows_add(struct advise_search *search, const struct advise_row *rows,
                            uint32_t count, struct error *reterr)
{
    struct advise *advise = search->advise;
    struct arena *arena = search->session->arena;
    struct batch batch = {.search = search};
    for (uint32_t i = 0; i < count && advise->count + batch.count < ADVISE_ROWS_MAX; i++) {
        struct advise_row row = rows[i];
        STATUS_TRY(overlaps_add(search, &row, reterr));
        if (is_known(&batch, &row)) continue;
        if (search->source->setting_count + row.setting_count > SESSION_SETTINGS_MAX)
            return error_set(reterr, STATUS_LIMIT, "--advise", "too many --set with it");
        batch.row[batch.count++] = row;
    }
    struct parallel const parallel = pool_parallel(&search->pool);
    struct parallel_work const work = {
        .part = batch_part,
        .owner = &batch,
        .part_count = batch.count,
        .share_begin = (double)advise->count / ADVISE_ROWS_MAX,
        .share_end = (double)(advise->count + batch.count) / ADVISE_ROWS_MAX,
    };
    STATUS_TRY(parallel_run(&parallel, &work, reterr));
    for (uint32_t i = 0; i < batch.count; i++) {
        struct advise_row *row = &batch.row[i];
        if (row->state == ADVISE_REFUSED) row->why = arena_text(arena, batch.refused[i].message);
        if (row->state == ADVISE_REFUSED && row->why == NULL) return error_no_memory(reterr, "");
        advise->row[advise->count++] = *row;
    }
    return STATUS_OK;
}

enum status advise_row_add(struct advise_search *search, struct advise_row row,
                           struct error *reterr)
{
    return advise_rows_add(search, &row, 1, reterr);
}

/* One more change has to gain half a percent. */
static bool is_better(const struct advise_row *row, const struct advise_row *best)
{
    if (row->setting_count <= best->setting_count) return row->time_ps < best->time_ps;
    return row->time_ps < best->time_ps - best->time_ps / 200;
}

void advise_best_find(struct advise *advise)
{
    advise->best = ADVISE_NONE;
    for (uint32_t i = 0; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        if (row->state != ADVISE_PLAYED || !row->fits) continue;
        if (advise->best == ADVISE_NONE || is_better(row, &advise->row[advise->best]))
            advise->best = i;
    }
}
