/* Plays the points of `podsim pareto`: each in memory of its own, one after the other. */
#include <math.h>
#include <stdio.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/graph/parameters.h"
#include "sim/measure/choices.h"
#include "sim/program/least_memory.h"
#include "sim/report/frontier.h"
#include "sim/report/inference_whole.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pareto/pareto.h"

enum { SETTING_BYTES = 32 };

/* A point while it is built and simulated. */
struct playing {
    struct pareto *pareto;
    struct pareto_curve *curve;
    struct session session;
    struct session_source source;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct pareto *pareto = owner;
    double const points = (double)pareto->curve_count * pareto->batch_count;
    return worker_show(pareto->worker, (pareto->done_count + progress->share) / points,
                       pareto->events + progress->events);
}

static void settings_add(struct session_source *source, const struct pareto_value *value)
{
    for (uint32_t i = 0; i < PARETO_SETTINGS_MAX && value->setting[i] != NULL; i++)
        source->settings[source->setting_count++].text = value->setting[i];
}

static enum status machines_build(struct pareto *pareto, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(
        arena_try(pareto->arena, pareto->shapes.count, sizeof *pareto->machine, &memory, reterr));
    pareto->machine = memory;
    for (uint32_t i = 0; i < pareto->shapes.count; i++) {
        struct pareto_machine *machine = &pareto->machine[i];
        struct session_source source = pareto->source;
        struct choices_args choices;
        struct error ignored;
        settings_add(&source, &pareto->shapes.value[i]);
        machine->is =
            session_build(&machine->session, &source, SESSION_MACHINE, &ignored) == STATUS_OK;
        if (!machine->is) continue;
        choices = session_choices(&machine->session);
        machine->is = choices_create(machine->session.arena, &choices, &machine->chooser,
                                     &ignored) == STATUS_OK;
    }
    return STATUS_OK;
}

void pareto_close(struct pareto *pareto)
{
    for (uint32_t i = 0; pareto->machine != NULL && i < pareto->shapes.count; i++)
        session_close(&pareto->machine[i].session);
    for (uint32_t c = 0; pareto->curve != NULL && c < pareto->curve_count; c++)
        session_close(&pareto->curve[c].whole); /* Of a sweep that ended early. */
    session_close(&pareto->base);
}

/* Scenario, machine and mesh of a curve, with a batch that its points may replace. */
static enum status curve_build(struct playing *playing, uint32_t batch, struct error *reterr)
{
    struct pareto_curve *curve = playing->curve;
    struct session_source source = playing->source;
    const struct pareto_machine *machine =
        &playing->pareto->machine[curve->shape - playing->pareto->shapes.value];
    char setting[SETTING_BYTES];
    if (machine->is) source.machine = &machine->session.machine;
    settings_add(&source, curve->shape);
    settings_add(&source, curve->mesh);
    settings_add(&source, curve->length);
    (void)snprintf(setting, sizeof setting, "/workload/batch=%u", batch);
    source.settings[source.setting_count++].text = setting;
    enum status status = session_build(&curve->whole, &source, SESSION_MESH, reterr);
    if (status == STATUS_OK && !machine->is) status = error_no_memory(reterr, "");
    if (status != STATUS_OK) session_close(&curve->whole);
    STATUS_TRY(status);
    curve->whole.scenario.workload.inference.chooser = machine->chooser;
    return STATUS_OK;
}

/* The program of a batch on a curve. To be closed whatever is returned. */
static enum status build(struct playing *playing, uint32_t batch, struct error *reterr)
{
    struct pareto_curve *curve = playing->curve;
    playing->source = playing->pareto->source;
    playing->source.cancel = &playing->pareto->cancel;
    playing->source.drawn = &playing->pareto->drawn;
    if (curve->whole.arena == NULL) STATUS_TRY(curve_build(playing, batch, reterr));
    return session_batch_build(&curve->whole, batch, true, &playing->session, reterr);
}

/* Of what the user or the machine ends, no point is the reason. */
static bool ends_all(enum status status)
{
    return status == STATUS_INTERRUPTED || status == STATUS_NO_MEMORY;
}

static enum status keep_text(struct arena *arena, struct strbuf *text, const char **ret_text,
                             struct error *reterr)
{
    /* Nothing was added for a mesh without axes. */
    *ret_text = text->failed ? NULL : arena_text(arena, text->bytes == NULL ? "" : text->bytes);
    strbuf_free(text);
    if (*ret_text == NULL) return error_no_memory(reterr, "");
    return STATUS_OK;
}

static struct inference_model book_model(const struct pareto *pareto,
                                         const struct workload_plan *plan)
{
    struct inference_model model = inference_book_model(plan);
    if (pareto->book_parameters == 0) return model;
    double const total = (double)model_count(&plan->model).total;
    model.parameters *= pareto->book_parameters / total;
    model.parameter_bytes *= pareto->book_parameters / total;
    return model;
}

static struct lengths_distribution lengths_of(const struct workload_plan *plan,
                                              enum inference_part part)
{
    const struct inference_plan *of = &plan->inference;
    return part == INFERENCE_DECODES ? of->decodes.context.of : of->prompts.tokens.of;
}

/* Tokens of a sequence that are there before those that are drawn. */
static uint64_t cached_of(const struct workload_plan *plan, enum inference_part part)
{
    return part == INFERENCE_DECODES ? 0 : plan->inference.prompts.cached;
}

/* Where the curve's formula turns: each batch in flight has a pass of its own over all parameters,
 * or one for each chunk of its prompts, and so has each rank of data. */
static void critical_find(const struct workload_plan *plan, enum inference_part part,
                          const struct inference_chips *chips, struct pareto_curve *curve)
{
    struct inference_sum const sum = inference_sum(plan, part);
    uint64_t const others = inference_sum_all(plan).tokens - sum.tokens;
    bool const is_drawn = curve->drawn.mean != 0 && part == INFERENCE_PROMPTS;
    double each = is_drawn ? (double)curve->drawn.mean : (double)sum.tokens / (double)sum.sequences;
    if (part == INFERENCE_PROMPTS && plan->inference.prompts.chunk != 0)
        each = fmin(each, (double)plan->inference.prompts.chunk);
    curve->critical_tokens =
        inference_batch_count(&plan->inference) * chips->copies_read *
        inference_critical_tokens(curve->book.parameter_bytes / curve->book.parameters,
                                  chips->flop_per_s, chips->hbm_bytes_per_s);
    curve->critical_batch = (curve->critical_tokens - (double)others) / each;
}

/* What all points of a curve share, of the first that could be built. */
static enum status curve_begin(struct playing *playing, struct error *reterr)
{
    struct pareto_curve *curve = playing->curve;
    const struct session *session = &playing->session;
    const struct workload_plan *plan = &session->scenario.workload;
    struct arena *arena = playing->pareto->arena;
    struct inference_chips const chips =
        inference_book_chips(plan, &session->machine, &session->mesh);
    struct strbuf shape = {0}, mesh = {0};
    if (curve->chip_count != 0) return STATUS_OK;
    curve->book = book_model(playing->pareto, plan);
    curve->hbm_bytes = session->machine.chip.hbm_capacity_bytes;
    enum inference_part const part = pareto_part(playing->pareto);
    struct inference_sum const sum = inference_sum(plan, part);
    curve->drawn = lengths_of(plan, part);
    curve->length_tokens = curve->drawn.mean != 0
                               ? (double)(curve->drawn.mean + cached_of(plan, part))
                               : (double)sum.context_tokens / (double)sum.sequences;
    critical_find(plan, part, &chips, curve);
    double const held_share = inference_whole_held_tokens(plan, part) / (double)sum.context_tokens;
    curve->book_wall = inference_max_batch(&curve->book, &chips, curve->length_tokens * held_share);
    table_shape(&session->machine, &shape);
    table_mesh(&session->mesh, &session->machine, &mesh);
    curve->chip_count = session->machine.chip_count;
    enum status const status = keep_text(arena, &shape, &curve->shape_text, reterr);
    if (status != STATUS_OK) strbuf_free(&mesh);
    STATUS_TRY(status);
    return keep_text(arena, &mesh, &curve->mesh_text, reterr);
}

/* Whether what is held at least is there. */
static enum status memory_check(struct playing *playing, struct pareto_point *point, bool *ret_fits,
                                struct error *reterr)
{
    struct session *session = &playing->session;
    struct least_memory least;
    STATUS_TRY(least_memory_of(session->arena, &session->program, &least, reterr));
    point->memory_bytes = (double)least.total_bytes;
    point->memory_is_peak = least.is_peak;
    *ret_fits = least.total_bytes <= session->machine.chip.hbm_capacity_bytes;
    return STATUS_OK;
}

static enum status figures_take(struct playing *playing, struct pareto_point *point,
                                struct error *reterr)
{
    struct session *session = &playing->session;
    struct inference_sum const sum =
        inference_sum(&session->scenario.workload, pareto_part(playing->pareto));
    struct report_input input;
    struct analysis analysis;
    report_from_session(session, &input);
    STATUS_TRY(analysis_build(session->arena, &input, &analysis, reterr));
    point->latency_s = analysis.step_s;
    point->tokens_per_s_per_chip = analysis.tokens_per_s / (double)session->machine.chip_count;
    point->tokens_per_s_per_user = (double)sum.tokens / (double)sum.sequences / analysis.step_s;
    point->shares = inference_shares_of(&input, &analysis);
    point->memory_bytes = (double)session->trace.memory.peak_bytes;
    point->memory_is_peak = true;
    point->room = inference_batch_expected(&input, session->machine.chip.hbm_capacity_bytes);
    playing->pareto->events += session->trace.work.events;
    return STATUS_OK;
}

static enum status point_play(struct playing *playing, struct pareto_point *point,
                              struct error *reterr)
{
    struct session *session = &playing->session;
    const struct workload_plan *plan = &session->scenario.workload;
    bool fits = false;
    STATUS_TRY(build(playing, point->batch, reterr));
    STATUS_TRY(curve_begin(playing, reterr));
    struct inference_chips const chips =
        inference_book_chips(plan, &session->machine, &session->mesh);
    struct inference_sum const sum = inference_sum(plan, pareto_part(playing->pareto));
    point->length_tokens = (double)sum.context_tokens / (double)sum.sequences;
    point->book = inference_book_step(plan, &playing->curve->book, &chips);
    point->book_tokens_per_s_per_chip =
        (double)inference_sum_all(plan).tokens / chips.count / point->book.step_s;
    STATUS_TRY(memory_check(playing, point, &fits, reterr));
    point->state = PARETO_UNFIT;
    if (!fits && !plan->allow_oversubscription) return STATUS_OK;
    struct replay_options const options = {.watch = watch, .watch_owner = playing->pareto};
    STATUS_TRY(
        roofline_train_step(plan, &session->machine, &session->mesh, &session->roofline, reterr));
    STATUS_TRY(session_replay(session, &playing->source, &options, reterr));
    STATUS_TRY(figures_take(playing, point, reterr));
    if (point->memory_bytes <= (double)session->machine.chip.hbm_capacity_bytes ||
        plan->allow_oversubscription)
        point->state = PARETO_PLAYED;
    return STATUS_OK;
}

/* It is built, and if it fits simulated. One that cannot be has its reason, and is not the end of
 * the others. */
static enum status point_take(struct pareto *pareto, struct pareto_curve *curve,
                              struct pareto_point *point, struct error *reterr)
{
    struct playing playing = {.pareto = pareto, .curve = curve};
    struct error error = {0};
    enum status status = point_play(&playing, point, &error);
    session_close(&playing.session);
    if (status == STATUS_OK) return STATUS_OK;
    if (ends_all(status)) {
        *reterr = error;
        return status;
    }
    point->state = PARETO_REFUSED;
    point->why = arena_format(pareto->arena, "%s%s%s", error.where,
                              error.where[0] == '\0' ? "" : ": ", error.message);
    if (point->why == NULL) return error_no_memory(reterr, "");
    return STATUS_OK;
}

static struct frontier_point frontier_point_of(const struct pareto_point *point)
{
    return (struct frontier_point){
        .latency_s = point->latency_s,
        .rate = point->tokens_per_s_per_chip,
        .is = point->state == PARETO_PLAYED,
    };
}

/* The knees of curves, and the frontier of those of equal length. */
static enum status group_mark(struct pareto *pareto, uint32_t first, uint32_t end,
                              struct error *reterr)
{
    uint32_t const batches = pareto->batch_count, count = (end - first) * batches;
    void *memory = NULL;
    STATUS_TRY(arena_try(pareto->arena, count, sizeof(struct frontier_point), &memory, reterr));
    struct frontier_point *points = memory;
    STATUS_TRY(arena_try(pareto->arena, count, sizeof(bool), &memory, reterr));
    bool *on = memory;
    for (uint32_t i = 0; i < count; i++)
        points[i] = frontier_point_of(&pareto->curve[first + i / batches].point[i % batches]);
    frontier_mark(points, count, on);
    for (uint32_t i = 0; i < count; i++)
        pareto->curve[first + i / batches].point[i % batches].is_on_frontier = on[i];
    for (uint32_t c = first; c < end; c++) {
        struct pareto_curve *curve = &pareto->curve[c];
        curve->knee = frontier_knee(&points[(c - first) * batches], batches);
        if (curve->knee != frontier_none) curve->point[curve->knee].is_knee = true;
    }
    return STATUS_OK;
}

uint32_t pareto_group_end(const struct pareto *pareto, uint32_t first)
{
    uint32_t end = first;
    while (end < pareto->curve_count && pareto->curve[end].length == pareto->curve[first].length)
        end++;
    return end;
}

enum status pareto_play(void *owner, struct worker *worker, struct error *reterr)
{
    struct pareto *pareto = owner;
    pareto->worker = worker;
    pareto->cancel = (struct cancel){.stops = worker_stops, .owner = worker};
    STATUS_TRY(machines_build(pareto, reterr));
    for (uint32_t c = 0; c < pareto->curve_count; c++) {
        struct pareto_curve *curve = &pareto->curve[c];
        for (uint32_t b = 0; b < pareto->batch_count; b++, pareto->done_count++) {
            STATUS_TRY(worker_check(worker, reterr));
            STATUS_TRY(point_take(pareto, curve, &curve->point[b], reterr));
        }
        if (curve->chip_count != 0) STATUS_TRY(pareto_find_wall(pareto, curve, reterr));
        session_close(&curve->whole);
    }
    for (uint32_t first = 0, end = 0; first < pareto->curve_count; first = end) {
        end = pareto_group_end(pareto, first);
        STATUS_TRY(group_mark(pareto, first, end, reterr));
    }
    return STATUS_OK;
}
