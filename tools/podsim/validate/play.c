/* play.c: published rows, written as scenarios and simulated. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/graph/parameters.h"
#include "sim/kernels/kernels.h"
#include "sim/report/analysis.h"
#include "sim/scenario/preset.h"
#include "tools/podsim/common/generate.h"
#include "tools/podsim/common/pool.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/session.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/validate/validate.h"

/* Rows that are simulated, each a part of the pool's work. */
struct playing {
    struct validate *validate;
    uint32_t *row; /* [part] */
    struct pool pool;
};

/* Of one row. */
struct watching {
    struct playing *playing;
    uint32_t thread;
    bool too_long;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct watching *watching = owner;
    struct playing *playing = watching->playing;
    double const share = progress->share < 1 ? progress->share : 1;
    watching->too_long = progress->events > playing->validate->events_max;
    return pool_progress(&playing->pool, watching->thread, share, progress->events) &&
           !watching->too_long;
}

static struct session_source source_of(const struct published_row *row,
                                       const struct validate_result *result)
{
    return (struct session_source){
        .path = row->id, .text = result->scenario, .text_bytes = strlen(result->scenario)};
}

static void refuse(struct validate_result *result, const struct error *error)
{
    bool const is_placed = error->where[0] == '/';
    result->state = VALIDATE_REFUSED;
    (void)snprintf(result->why, sizeof result->why, "%.180s%s%.180s", is_placed ? error->where : "",
                   is_placed ? ": " : "", error->message);
}

/* `whole_ps` is of a generation, or 0. */
static void figures_take(const struct session *session, int64_t whole_ps,
                         struct validate_result *result)
{
    const struct trace *trace = &session->trace;
    double const period_s = units_seconds(trace->period.time);
    result->predicted_s = trace->period.time > 0 ? period_s : units_seconds(trace->step_ps);
    if (whole_ps > 0) result->predicted_s = units_seconds(whole_ps);
    result->peak_bytes = (double)trace->memory.peak_bytes;
    /* PyTorch's allocator sees neither (docs/measured-memory.md). */
    result->peak_bytes -= (double)trace->memory.at_peak_bytes[PROGRAM_MEMORY_NCCL];
    result->peak_bytes -= (double)trace->memory.at_peak_bytes[PROGRAM_MEMORY_CONTEXT];
    double const capacity = (double)session->machine.chip.hbm_capacity_bytes;
    result->over = (double)trace->memory.peak_bytes / capacity - 1;
    if (result->over < 0) result->over = 0;
}

/* What the time of the step goes to. */
static enum status times_take(const struct session *session, struct validate_result *result,
                              struct error *reterr)
{
    struct report_input input;
    struct analysis analysis;
    report_from_session(session, &input);
    STATUS_TRY(analysis_build(session->arena, &input, &analysis, reterr));
    result->compute_s = analysis.compute_s;
    result->exposed_s = analysis.exposed_s;
    result->idle_s = analysis.idle_s;
    return STATUS_OK;
}

/* The kind of step, in words that live as long as the rows. A step without measured kernels has
 * none.
 */
static void kind_take(const struct session *session, const struct published_row *row,
                      struct validate_result *result)
{
    struct error ignored;
    result->has_kind = residual_kind_find(session, &result->kind, &ignored) == STATUS_OK;
    result->kind.chip = row->machine.chip;
    result->kind.stack = result->stack;
}

/* The prefill and all steps behind it. */
static enum status generate(struct session *session, const struct session_source *source,
                            const struct replay_options *options, int64_t *ret_whole_ps,
                            struct error *reterr)
{
    struct generation generation;
    STATUS_TRY(generate_play(session, source, options, &generation, reterr));
    *ret_whole_ps = generation_total_ps(&generation);
    return STATUS_OK;
}

static enum status row_play(struct playing *playing, uint32_t thread,
                            const struct published_row *row, struct validate_result *result,
                            struct error *reterr)
{
    struct session session;
    struct session_source source = source_of(row, result);
    struct watching watching = {.playing = playing, .thread = thread};
    int64_t whole_ps = 0;
    struct cancel const cancel = {.stops = worker_stops, .owner = playing->validate->worker};
    struct replay_options const options = {.watch = watch, .watch_owner = &watching};
    source.cancel = &cancel;
    enum status status = session_build(&session, &source, SESSION_PROGRAM, reterr);
    if (status == STATUS_OK) status = session_replay(&session, &source, &options, reterr);
    if (status == STATUS_OK && row->kind == PUBLISHED_GENERATE)
        status = generate(&session, &source, &options, &whole_ps, reterr);
    else if (status == STATUS_OK)
        status = times_take(&session, result, reterr);
    if (status == STATUS_INTERRUPTED && watching.too_long)
        status = error_set(reterr, STATUS_LIMIT, "", "it takes more than %g million events",
                           (double)playing->validate->events_max / 1e6);
    if (status == STATUS_OK) {
        figures_take(&session, whole_ps, result);
        kind_take(&session, row, result);
        result->state = VALIDATE_PLAYED;
    }
    session_close(&session);
    return status;
}

/* A row that cannot be simulated is a result, too. */
static enum status play_one(void *owner, uint32_t part, uint32_t thread, struct error *reterr)
{
    struct playing *playing = owner;
    struct validate *validate = playing->validate;
    const struct published_row *row = &validate->published.row[playing->row[part]];
    struct validate_result *result = &validate->result[playing->row[part]];
    STATUS_TRY(worker_check(validate->worker, reterr));
    enum status const status = row->kind == PUBLISHED_COLLECTIVE
                                   ? validate_collective(row, result, reterr)
                                   : row_play(playing, thread, row, result, reterr);
    if (status == STATUS_OK) return status;
    refuse(result, reterr);
    return status == STATUS_NO_MEMORY || status == STATUS_INTERRUPTED ? status : STATUS_OK;
}

/* --- Before they are simulated --- */

/* Of inference what bounds each step at the chip's peaks: reading the weights that its tokens need,
 * or their products. */
static double inference_useful_s(const struct session *session, const struct published_row *row)
{
    const struct workload_plan *plan = &session->scenario.workload;
    struct model_counts const counts = model_count(&plan->model);
    const struct chip *chip = &session->machine.chip;
    double const chips = session->machine.chip_count;
    bool const decodes = row->kind == PUBLISHED_DECODE;
    double const tokens = (double)row->sequences * (decodes ? 1 : (double)row->length_tokens);
    double const touched = (double)counts.active * tokens;
    double const read = touched < (double)counts.total ? touched : (double)counts.total;
    double const bytes_s = read * format_bits(plan->formats.weights) / 8 /
                           (chips * (double)chip->kernels.sheet_hbm_bytes_per_s);
    double const math_s = 2 * (double)counts.active * tokens /
                          (chips * (double)chip->math_peak_flop_per_s[plan->formats.matmuls]);
    double const steps = 1 + (double)row->output_tokens;
    return steps * (bytes_s > math_s ? bytes_s : math_s);
}

static enum status useful_find(const struct session *session, const struct published_row *row,
                               struct validate_result *result, struct error *reterr)
{
    struct roofline roofline;
    if (row->kind != PUBLISHED_STEP) {
        result->useful_s = inference_useful_s(session, row);
        return STATUS_OK;
    }
    STATUS_TRY(roofline_train_step(&session->scenario.workload, &session->machine, &session->mesh,
                                   &roofline, reterr));
    double const peak = session->machine.chip_count * roofline.rates.peak_flop_per_s;
    result->useful_s = (roofline.flop.useful + roofline.flop.useful_attention) / peak;
    return STATUS_OK;
}

static void stack_find(struct arena *arena, const struct published_row *row,
                       struct validate_result *result)
{
    struct preset preset;
    struct error ignored;
    if (preset_find(arena, row->policy.preset, row->id, &preset, &ignored) != STATUS_OK) return;
    if (preset.stack == NULL) return;
    result->stack_is_missing = !kernel_stack_is_shipped(row->machine.chip, preset.stack);
    (void)snprintf(result->stack, sizeof result->stack, "%s", preset.stack);
}

/* The text of a row's scenario, and its FLOP. */
static enum status row_prepare(struct validate *validate, const struct published_row *row,
                               struct validate_result *result, struct error *reterr)
{
    struct session session;
    STATUS_TRY(published_scenario(validate->arena, row, &result->scenario, reterr));
    if (row->kind == PUBLISHED_COLLECTIVE) return STATUS_OK;
    stack_find(validate->arena, row, result);
    struct session_source source = source_of(row, result);
    /* The stack is read when the row is simulated, and with it its recipe of fp8 and its norms. */
    source.settings[source.setting_count++].text = "/machine/stack=none";
    if (row->kind == PUBLISHED_STEP && row->policy.recipe != NULL)
        source.settings[source.setting_count++].text = "/workload/fp8_recipe=none";
    if (row->kind == PUBLISHED_STEP && row->policy.persistent_layernorm == 1)
        source.settings[source.setting_count++].text = "/workload/persistent_layernorm=false";
    enum status status = session_build(&session, &source, SESSION_MESH, reterr);
    if (status == STATUS_OK) status = useful_find(&session, row, result, reterr);
    session_close(&session);
    return status;
}

static enum status rows_prepare(struct validate *validate, struct error *reterr)
{
    for (uint32_t i = 0; i < validate->published.row_count; i++) {
        struct error error = {0};
        STATUS_TRY(worker_check(validate->worker, reterr));
        enum status const status =
            row_prepare(validate, &validate->published.row[i], &validate->result[i], &error);
        if (status == STATUS_NO_MEMORY) {
            *reterr = error;
            return status;
        }
        if (status != STATUS_OK) refuse(&validate->result[i], &error);
    }
    return STATUS_OK;
}

enum status validate_play(void *owner, struct worker *worker, struct error *reterr)
{
    struct validate *validate = owner;
    struct published *published = &validate->published;
    struct playing playing = {.validate = validate};
    void *memory = NULL;
    validate->worker = worker;
    STATUS_TRY(arena_try(validate->arena, published->row_count, sizeof(bool), &memory, reterr));
    bool *wanted = memory;
    STATUS_TRY(
        arena_try(validate->arena, published->row_count, sizeof *playing.row, &memory, reterr));
    playing.row = memory;
    STATUS_TRY(rows_prepare(validate, reterr));
    for (uint32_t s = 0; s < published->set_count; s++)
        for (uint32_t r = 0; validate->wanted[s] && r < published->set[s].row_count; r++)
            wanted[published->set[s].row[r] - published->row] = true;
    struct parallel_work work = {.part = play_one, .owner = &playing, .share_end = 1};
    for (uint32_t i = 0; i < published->row_count; i++)
        if (wanted[i] && validate->result[i].state != VALIDATE_REFUSED)
            playing.row[work.part_count++] = i;
    pool_open(&playing.pool, worker, validate->thread_count);
    struct parallel const parallel = pool_parallel(&playing.pool);
    STATUS_TRY(parallel_run(&parallel, &work, reterr));
    STATUS_TRY(validate_score(validate, reterr));
    return validate_intervals(validate, reterr);
}
