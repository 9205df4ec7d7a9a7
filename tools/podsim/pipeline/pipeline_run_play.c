/* Plays the rows of `podsim pipeline FILE`. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/report/timeline.h"
#include "sim/step/workload.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/trace_chips.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pipeline/pipeline_run.h"
#include "tools/podsim/pipeline/pipeline_run_times.h"

enum { SETTING_BYTES = 96 };

/* One row while it is simulated. */
struct playing {
    struct pipeline_run *staged;
    struct pipeline_run_row *row;
    uint32_t thread; /* Of the pool. */
    struct session session;
    struct cancel cancel; /* While it is built. */
    char setting[2][SETTING_BYTES];
    struct trace_chips shown;
};

int64_t pipeline_run_work_ps(const struct trace_role *role)
{
    int64_t work_ps = 0;
    for (uint32_t phase = 0; phase < PROGRAM_PHASE_COUNT; phase++)
        if (phase != PROGRAM_PHASE_UPDATE)
            work_ps += role->phase[phase].compute_ps + role->phase[phase].exposed_ps;
    return work_ps;
}

int64_t pipeline_run_period_ps(const struct pipeline_run_row *row)
{
    return row->period.time > 0 ? row->period.time : row->step_ps;
}

static struct pipeline_run_bubbles bubbles_of(const struct pipeline_run_row *row)
{
    int64_t least_ps = INT64_MAX, most_ps = 0;
    struct pipeline_run_bubbles bubble = {0};
    for (uint32_t r = 0; r < row->of->rank_count; r++) {
        const struct trace_role *role = &row->role[r];
        int64_t const work_ps = pipeline_run_work_ps(role);
        /* What a rank waits for before its first pass is not of the time from there on. */
        int64_t const idle_ps =
            role->last_end_ps - role->first_begin_ps - (work_ps - role->exposed_before_ps);
        least_ps = work_ps < least_ps ? work_ps : least_ps;
        most_ps = work_ps > most_ps ? work_ps : most_ps;
        if (idle_ps > bubble.per_rank_ps) bubble.per_rank_ps = idle_ps;
    }
    bubble.makespan_ps = row->span_ps - least_ps;
    bubble.busiest_ps = row->span_ps - most_ps;
    return bubble;
}

uint64_t pipeline_run_peak_bytes(const struct pipeline_run_row *row)
{
    uint64_t most = 0;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++)
        most = row->role[r].memory.peak_bytes > most ? row->role[r].memory.peak_bytes : most;
    return most;
}

static bool watch(void *owner, const struct replay_progress *progress)
{
    const struct playing *playing = owner;
    /* Further steps, for the period, are as many as nobody knows before. */
    double const share = progress->share < 1 ? progress->share : 1;
    return pool_progress(&playing->staged->of->pool, playing->thread, share, progress->events);
}

/* Chips of the timeline: those that are named, or else the first of each rank. */
static enum status shown_choose(struct playing *playing, struct error *reterr)
{
    const struct program *program = &playing->session.program;
    const struct comparison *comparison = playing->staged->of;
    const char *const list = options_value(comparison->options, "--trace-chips");
    if (!comparison->traces) return STATUS_OK;
    if (list != NULL)
        return trace_chips_read(list, &playing->session.machine, &playing->shown, reterr);
    while (playing->shown.count < program->role_count && playing->shown.count < TRACE_SHOWN_MAX) {
        uint32_t at[MACHINE_AXES_MAX];
        program_role_first(program, playing->shown.count, at);
        playing->shown.chip[playing->shown.count++] =
            machine_chip_at(&playing->session.machine, at);
    }
    return STATUS_OK;
}

static enum status timeline_take(struct playing *playing, struct error *reterr)
{
    struct comparison *comparison = playing->staged->of;
    struct session *session = &playing->session;
    struct report_input input;
    if (!comparison->traces) return STATUS_OK;
    report_from_session(session, &input);
    STATUS_TRY(report_name(session->arena, comparison->options, comparison->options->operand[0],
                           &input, reterr));
    input.title = arena_format(session->arena, "%s: %s, %s", input.title, playing->row->of->name,
                               counted(playing->row->of->microbatch_count, "microbatch").text);
    if (input.title == NULL) return error_no_memory(reterr, "");
    return timeline_write(session->arena, &input, &comparison->timeline, reterr);
}

static enum status replay(struct playing *playing, struct error *reterr)
{
    struct pipeline_run *staged = playing->staged;
    struct pipeline_run_row *row = playing->row;
    struct session_source source = staged->source;
    source.schedule = row->of->given;
    source.cancel = &playing->cancel;
    source.drawn = &staged->drawn[playing->thread];
    (void)snprintf(playing->setting[0], SETTING_BYTES, "/workload/accumulate=%u",
                   row->of->microbatch_count);
    source.settings[source.setting_count++].text = playing->setting[0];
    if (row->of->given == NULL) {
        (void)snprintf(playing->setting[1], SETTING_BYTES, "/workload/schedule=\"%s\"",
                       row->of->name);
        source.settings[source.setting_count++].text = playing->setting[1];
    }
    STATUS_TRY(session_build(&playing->session, &source, SESSION_PROGRAM, reterr));
    STATUS_TRY(shown_choose(playing, reterr));
    struct replay_options const options = {
        .shown_chips = playing->shown.chip,
        .shown_count = playing->shown.count,
        .record = playing->shown.count > 0,
        .curves = staged->draws_memory,
        .watch = watch,
        .watch_owner = playing,
    };
    return session_replay(&playing->session, &source, &options, reterr);
}

static enum status results_take(struct playing *playing, struct error *reterr)
{
    struct pipeline_run *staged = playing->staged;
    struct pipeline_run_row *row = playing->row;
    const struct session *session = &playing->session;
    const struct trace *trace = &session->trace;
    uint32_t const ranks = trace->role_count;
    void *memory = NULL;
    STATUS_TRY(workload_schedule(row->of->arena, &session->scenario.workload, &session->machine,
                                 &session->mesh, &row->of->schedule, reterr));
    STATUS_TRY(arena_try(row->of->arena, ranks, sizeof *row->role, &memory, reterr));
    row->role = memory;
    memcpy(row->role, trace->roles, ranks * sizeof *row->role);
    STATUS_TRY(arena_try(row->of->arena, ranks, sizeof *row->parameter_count, &memory, reterr));
    row->parameter_count = memory;
    uint64_t const block_bytes =
        format_stored_bytes(session->scenario.workload.formats.weights, FORMAT_BLOCK);
    for (uint32_t r = 0; r < ranks; r++) {
        const struct program_role *role = &session->program.roles[r];
        row->parameter_count[r] =
            role->resident_bytes[PROGRAM_MEMORY_PARAMETERS] * FORMAT_BLOCK / block_bytes;
        /* The session's, which is closed. */
        row->role[r].pass_ps = row->role[r].pass_begin_ps = row->role[r].pass_end_ps = NULL;
        row->role[r].curve = (struct trace_curve){.count = 0};
        if (row->role[r].last_end_ps > row->span_ps) row->span_ps = row->role[r].last_end_ps;
        if (row->role[r].memory.peak_bytes > row->role[row->fullest].memory.peak_bytes)
            row->fullest = r;
    }
    row->step_ps = trace->step_ps;
    row->period = trace->period;
    double const period_s = units_seconds(pipeline_run_period_ps(row));
    double const peak =
        (double)trace->fold.chips * session->roofline.rates.peak_flop_per_s * period_s;
    row->mfu = session->roofline.flop.useful / peak;
    row->mfu_attention =
        (session->roofline.flop.useful + session->roofline.flop.useful_attention) / peak;
    row->tokens_per_s = (double)session->program.tokens / period_s;
    row->chips_replayed = trace->fold.replayed;
    row->bubble = bubbles_of(row);
    STATUS_TRY(pipeline_run_activations_take(row->of->arena, row, &session->program, reterr));
    row->fits = pipeline_run_peak_bytes(row) <= staged->hbm_bytes;
    STATUS_TRY(pipeline_run_weights_take(row->of->arena, row, &session->program, trace, reterr));
    STATUS_TRY(pipeline_run_times_measure(row->of->arena, &row->of->schedule, trace->roles,
                                          &row->times, reterr));
    struct schedule_request const request = {.rank_count = ranks,
                                             .microbatch_count = row->of->microbatch_count,
                                             .chunk_count = row->of->schedule.chunk_count,
                                             .times = row->times};
    if (row->of->form != NULL) row->of->formula = row->of->form->formula(&request);
    return schedule_play(row->of->arena, &row->of->schedule, &row->times, &playing->cancel,
                         row->of->name, &row->equal, reterr);
}

/* When passes of the first chip of each rank began and ended. */
static enum status spans_take(struct playing *playing, struct error *reterr)
{
    struct arena *arena = playing->row->of->arena;
    struct pipeline_run_row *row = playing->row;
    const struct trace *trace = &playing->session.trace;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, trace->role_count, sizeof *row->played.lane, &memory, reterr));
    row->played = (struct schedule_played){.lane = memory, .makespan = row->span_ps};
    for (uint32_t r = 0; r < trace->role_count; r++) {
        const struct trace_role *role = &trace->roles[r];
        uint32_t const count = row->of->schedule.rank[r].count;
        uint64_t const bytes =
            (count < role->pass_count ? count : role->pass_count) * sizeof(int64_t);
        struct schedule_lane *lane = &row->played.lane[r];
        STATUS_TRY(arena_try(arena, count, sizeof *lane->begin, &memory, reterr));
        lane->begin = memory;
        STATUS_TRY(arena_try(arena, count, sizeof *lane->end, &memory, reterr));
        lane->end = memory;
        if (bytes == 0) continue;
        memcpy(lane->begin, role->pass_begin_ps, bytes);
        memcpy(lane->end, role->pass_end_ps, bytes);
    }
    return STATUS_OK;
}

/* The memory of the first chip of the fullest rank, as it changes. */
static enum status curve_take(struct playing *playing, struct error *reterr)
{
    struct arena *arena = playing->row->of->arena;
    struct pipeline_run_row *row = playing->row;
    const struct trace_curve *curve = &playing->session.trace.roles[row->fullest].curve;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, curve->count, sizeof *curve->at_ps, &memory, reterr));
    row->curve = (struct trace_curve){.at_ps = memory, .count = curve->count};
    STATUS_TRY(arena_try(arena, curve->count, sizeof *curve->bytes, &memory, reterr));
    row->curve.bytes = memory;
    memcpy(row->curve.at_ps, curve->at_ps, curve->count * sizeof *curve->at_ps);
    memcpy(row->curve.bytes, curve->bytes, curve->count * sizeof *curve->bytes);
    return STATUS_OK;
}

enum status pipeline_run_play(struct comparison *comparison, uint32_t index, uint32_t thread,
                              struct error *reterr)
{
    struct pipeline_run *staged = comparison->owner;
    struct pipeline_run_row *row = &staged->row[index];
    struct playing playing = {
        .staged = staged,
        .row = row,
        .thread = thread,
        .cancel = {.stops = worker_stops, .owner = comparison->worker},
    };
    row->of = &comparison->row[index];
    enum status status = replay(&playing, reterr);
    if (status == STATUS_OK) status = results_take(&playing, reterr);
    if (status == STATUS_OK) status = timeline_take(&playing, reterr);
    if (status == STATUS_OK && staged->draws) status = spans_take(&playing, reterr);
    if (status == STATUS_OK && staged->draws_memory) status = curve_take(&playing, reterr);
    session_close(&playing.session);
    return status;
}

void pipeline_run_rank(struct comparison *comparison, uint32_t index)
{
    const struct pipeline_run *staged = comparison->owner;
    const struct pipeline_run_row *row = &staged->row[index];
    struct comparison_row *of = &comparison->row[index];
    of->fits = row->fits;
    of->figure[COMPARISON_PERIOD] = (double)pipeline_run_period_ps(row);
    of->figure[COMPARISON_STEP] = (double)row->step_ps;
    of->figure[COMPARISON_BUBBLE] = (double)row->bubble.makespan_ps;
    of->figure[COMPARISON_MEMORY] = (double)pipeline_run_peak_bytes(row);
}

/* The batch of a scenario is the same with any number of microbatches. */
static bool are_compared(const struct comparison_row *row, const struct comparison_row *other)
{
    (void)row;
    (void)other;
    return true;
}

const struct comparison_way pipeline_run_way = {
    .read = pipeline_run_read,
    .close = pipeline_run_close,
    .play = pipeline_run_play,
    .rank = pipeline_run_rank,
    .are_compared = are_compared,
    .write_text = pipeline_run_write_text,
    .put_head = pipeline_run_put_head,
    .put_row = pipeline_run_put_row,
    .write_svg = pipeline_run_write_svg,
    .cells = &pipeline_run_cells,
    .find = pipeline_run_find,
};
