/*
 * cmd_run.c: a scenario from its file to summary, result and timeline.
 */
#include <stdio.h>
#include <uv.h>

#include "sim/base/strbuf.h"
#include "sim/report/inference_analysis.h"
#include "sim/report/result.h"
#include "sim/report/run_interval.h"
#include "sim/report/run_memory.h"
#include "sim/report/smallest_slice.h"
#include "sim/report/summary.h"
#include "sim/report/table.h"
#include "sim/report/timeline.h"
#include "sim/schedule/schedule.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/generate.h"
#include "tools/podsim/common/interval.h"
#include "tools/podsim/common/op_rows.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/pool.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/session.h"
#include "tools/podsim/common/slice.h"
#include "tools/podsim/common/timeline_file.h"
#include "tools/podsim/common/trace_chips.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/run/advise.h"
#include "tools/podsim/run/run_room.h"

static const struct option run_options[] = {
    {"--set", "/POINTER=VALUE", "change a key of the scenario; may be repeated", true},
    {"--preset", "NAME", "a framework, for keys that the scenario leaves out", false},
    {"--program", NULL, "FILE is a program's text, of `podsim show program --format text`", false},
    {"--full", NULL, "every chip and every hop: no folding", false},
    {"--json", "FILE", "write the result as JSON; - is standard output", false},
    {"--csv", "FILE", "of a generation: write its steps, a row for each page; - is standard output",
     false},
    TIMELINE_OPTIONS,
    {"--advise", NULL, "simulate the scenario's neighbours too and name the best that fits", false},
    POOL_OPTION,
    {"--uncertainty", NULL, "between which times a measured step would lie", false},
    {"--engine", "NAME", "the event queue: fast or reference", false},
    {"--every-layer", NULL, "simulate layers one by one even where they are alike", false},
    {"--no-record", NULL, "simulate every message of collectives that are alike", false},
    {"--timing", NULL, "say how long the simulation itself took", false},
    {"--quiet", NULL,
     "no summary; for a step that does not fit only the error, and what --advise says", false},
    {0},
};

/* One run; the worker's until it has ended. */
struct run {
    const struct options *options;
    const char *path;
    struct session_source source;
    struct cancel building; /* While the program is. */
    struct session session;
    struct report_input input;
    struct least_memory least;
    struct advise advise;
    bool is_advised;
    struct op_rows ops; /* With measured kernels. */
    bool unfit; /* Refused because of its memory: result and reason say how much, and what fits. */
    bool known_unfit; /* Before it is simulated: its peak is looked for, in a bounded number of
                       * events.
                       */
    bool too_long;    /* More events than that. */
    struct trace_chips shown;
    struct generation generation;
    struct report_interval interval; /* With --uncertainty. */
    struct output json;
    struct output csv;
    struct output trace;
    struct strbuf summary;
    struct strbuf room;   /* How many sequences would fit, of inference that does not. */
    struct strbuf reason; /* Of a refusal: the table of what needs how much memory. */
    struct strbuf result;
    struct strbuf rows;
    struct strbuf timeline;
    struct worker *worker;
    uint32_t thread_count; /* -j */
    double wall_s;
    char engine_setting[64];
};

static bool is_stdout(const struct run *run, const char *option)
{
    return output_is_stdout(options_value(run->options, option));
}

/* What goes where the summary would. */
static bool to_stdout(const struct run *run)
{
    return is_stdout(run, "--json") || is_stdout(run, "--csv");
}

static bool summary_in_colour(const struct run *run)
{
    return report_in_colour(to_stdout(run) ? 2 : 1);
}

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct run *run = owner;
    run->too_long = run->known_unfit && progress->events > ADVISE_EVENTS_MAX;
    return worker_progress(run->worker, progress->share, progress->events) && !run->too_long;
}

static enum status replay(struct run *run, struct error *reterr)
{
    struct session *session = &run->session;
    bool const record = run->trace.path != NULL && !run->known_unfit;
    const char *const list = options_value(run->options, "--trace-chips");
    STATUS_TRY(trace_chips_read(list, &session->machine, &run->shown, reterr));
    struct replay_options const options = {
        .shown_chips = run->shown.chip,
        .shown_count = run->shown.count,
        .record = record,
        .every_layer = options_has(run->options, "--every-layer"),
        .every_message = options_has(run->options, "--no-record"),
        .watch = watch,
        .watch_owner = run,
    };
    uint64_t const begin_ns = uv_hrtime();
    STATUS_TRY(session_replay(session, &run->source, &options, reterr));
    run->wall_s = (double)(uv_hrtime() - begin_ns) * 1e-9;
    return STATUS_OK;
}

static bool is_quiet(const struct run *run)
{
    return options_has(run->options, "--quiet");
}

static void write_more(const void *owner, struct json_writer *json)
{
    const struct run *run = owner;
    if (run->ops.count > 0) op_rows_put(&run->ops, json);
    if (run->is_advised) advise_write_json(&run->advise, json);
}

/* Rows say which tables gave ops their times. */
static enum status ops_find(struct run *run, struct error *reterr)
{
    run->ops.machine = &run->session.machine;
    run->ops.program = &run->session.program;
    return op_rows_find(run->session.arena, &run->ops, reterr);
}

/* Whether anything is printed: what was asked for by name is, quiet or not. */
static bool prints(const struct run *run)
{
    return !is_quiet(run) || options_has(run->options, "--advise");
}

/* `where`: the key that could make it fit; "": there are many. Where nothing else is printed, the
 * error says what would fit, or how to find it. */
static enum status oversubscribed(const struct run *run, const char *where, struct error *reterr)
{
    bool const trains = run->session.scenario.workload.kind == WORKLOAD_TRAIN_STEP;
    bool const says = is_quiet(run) && run->room.size_bytes > 0;
    const char *const how = trains && !prints(run) ? "--advise looks for a layout that does; " : "";
    return error_set(reterr, STATUS_LIMIT, where,
                     "the step does not fit the memory of a chip; %s%s%s"
                     "\"allow_oversubscription\": true in the workload simulates it all the same",
                     says ? run->room.bytes : "", says ? "; " : "", how);
}

/* What the commands of the advice run: what was read from a pipe is gone. */
static const char *advised(const struct run *run)
{
    return run->source.is_piped ? "-" : run->path;
}

/* Simulates the neighbours. */
static enum status advise(struct run *run, struct error *reterr)
{
    STATUS_TRY(advise_run(&run->source, &run->session, run->worker, run->thread_count, &run->advise,
                          reterr));
    run->is_advised = true;
    return STATUS_OK;
}

/* Of a training step that does not fit neighbours are told without being asked for, where anything
 * is told at all; of inference, how many sequences would, and, where the peak was seen, the
 * smallest slice. Returns by `ret_where` what a smaller or a larger one would make fit. */
static enum status advise_unfit(struct run *run, double peak_bytes, const char **ret_where,
                                struct error *reterr)
{
    *ret_where = "";
    const struct session *session = &run->session;
    if (session->scenario.workload.kind != WORKLOAD_TRAIN_STEP) {
        bool const any = run_room_write(session, &run->input.largest, peak_bytes, &run->room);
        if (!is_quiet(run) && run->room.bytes != NULL)
            strbuf_add(&run->reason, "\n%s\n", run->room.bytes);
        *ret_where = any ? "/workload/batch" : "/machine";
        if (!is_quiet(run) && run->input.roofline != NULL)
            inference_slice_print(&run->input, &run->reason);
        if (!options_has(run->options, "--advise")) return STATUS_OK;
    }
    if (!prints(run)) return STATUS_OK;
    STATUS_TRY(advise(run, reterr));
    advise_write_text(&run->advise, advised(run), &run->reason);
    if (run->advise.best == ADVISE_NONE && session->scenario.workload.kind == WORKLOAD_TRAIN_STEP)
        smallest_slice_print(&session->scenario.workload, &session->machine, &run->reason);
    return STATUS_OK;
}

/* Whether a step is known not to fit before it is simulated. It is simulated all the same, so that
 * what it holds is counted as that of any other. */
static enum status foresee(struct run *run, struct error *reterr)
{
    struct session *session = &run->session;
    STATUS_TRY(least_memory_of(session->arena, &session->program, &run->least, reterr));
    run->known_unfit = !session->scenario.workload.allow_oversubscription &&
                       run->least.total_bytes > session->machine.chip.hbm_capacity_bytes;
    return STATUS_OK;
}

/* One that has too many events for its peak says what it holds at least. */
static enum status refuse_long(struct run *run, struct error *reterr)
{
    struct session *session = &run->session;
    const char *where = "";
    run->input = (struct report_input){.title = session->title,
                                       .question = session->scenario.question,
                                       .machine = &session->machine,
                                       .program = &session->program,
                                       .write_more = write_more,
                                       .more_owner = run};
    run->unfit = true;
    if (!is_quiet(run)) run_memory_write_least(&run->input, &run->least, &run->reason);
    STATUS_TRY(advise_unfit(run, (double)run->least.total_bytes, &where, reterr));
    result_write_unfit(&run->input, &run->least, &run->result);
    return oversubscribed(run, where, reterr);
}

static bool infers(const struct session *session)
{
    return !session->is_program && session->scenario.workload.kind != WORKLOAD_TRAIN_STEP;
}

/* Whether anything says what would fit. */
static bool says_fit(const struct run *run)
{
    return infers(&run->session) && (!is_quiet(run) || run->json.path != NULL);
}

/* On how few chips the step would fit. */
static enum status slices_find(struct run *run, struct error *reterr)
{
    if (!says_fit(run)) return STATUS_OK;
    return slice_find(&run->session, &run->input, run->worker, &run->input.slices, reterr);
}

/* How many sequences fit, where rows of the cache limit them. */
static enum status largest_find(struct run *run, struct error *reterr)
{
    if (!says_fit(run) || run->session.roofline.counts.memory.cache_bytes <= 0) return STATUS_OK;
    return run_room_find(&run->session, &run->input, &run->least, true, run->worker,
                         &run->input.largest, reterr);
}

/* One whose peak was seen. */
static enum status refuse_seen(struct run *run, struct error *reterr)
{
    const char *where = "";
    if (run->session.scenario.workload.allow_oversubscription || run_memory_fits(&run->input))
        return STATUS_OK;
    run->unfit = true;
    if (!is_quiet(run)) run_memory_write(&run->input, &run->reason);
    if (infers(&run->session))
        STATUS_TRY(run_room_find_unfit(&run->session, &run->input, &run->least,
                                       run->json.path != NULL, run->worker, &run->input.largest,
                                       reterr));
    STATUS_TRY(advise_unfit(run, (double)run->session.trace.memory.peak_bytes, &where, reterr));
    STATUS_TRY(result_write(run->session.arena, &run->input, &run->result, reterr));
    return oversubscribed(run, where, reterr);
}

/* Before a long run: the outputs were opened before the scenario said which files it reads. */
static enum status spare_what_was_read(const struct run *run, struct error *reterr)
{
    static const char *const outputs[] = {"--json", "--csv", "--trace"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const char *const path = options_value(run->options, outputs[i]);
        if (path != NULL) STATUS_TRY(output_spares(path, run->options, reterr));
    }
    return STATUS_OK;
}

static bool watch_steps(void *owner, const struct replay_progress *progress)
{
    return worker_progress(((struct run *)owner)->worker, progress->share, progress->events);
}

/* Each step, behind what was replayed for memory and the timeline. */
static enum status generate(struct run *run, struct error *reterr)
{
    struct replay_options const options = {
        .every_layer = options_has(run->options, "--every-layer"),
        .every_message = options_has(run->options, "--no-record"),
        .watch = watch_steps,
        .watch_owner = run,
    };
    STATUS_TRY(generate_play(&run->session, &run->source, &options, &run->generation, reterr));
    run->input.generation = &run->generation;
    if (run->session.is_program) return STATUS_OK;
    inference_fit_found(&run->input.largest, &run->generation.fit, &run->generation.fit_of_gib);
    inference_fit_tried(&run->input.slices.of_gb, &run->generation.fit);
    inference_fit_tried(&run->input.slices.of_gib, &run->generation.fit_of_gib);
    generation_write_csv(&run->generation, &run->rows);
    return STATUS_OK;
}

static enum status uncertainty(struct run *run, struct error *reterr)
{
    STATUS_TRY(interval_find(&run->session, &run->interval, reterr));
    run->input.interval = &run->interval;
    return STATUS_OK;
}

/* Everything up to complete texts; nothing is written yet. */
static enum status work_texts(struct run *run, struct error *reterr)
{
    struct session *session = &run->session;
    bool const colour = summary_in_colour(run);
    run->building = (struct cancel){.stops = worker_stops, .owner = run->worker};
    run->source.cancel = &run->building;
    run->reason.columns = report_columns(2);
    STATUS_TRY(session_build(session, &run->source, SESSION_PROGRAM, reterr));
    if (options_has(run->options, "--uncertainty"))
        STATUS_TRY(residual_kind_check(session, reterr));
    if (session->scenario.workload.kind != WORKLOAD_GENERATE && options_has(run->options, "--csv"))
        return error_set(reterr, STATUS_INVALID, "--csv",
                         "rows are steps of a workload of kind \"generate\"; --json has all of "
                         "other results");
    STATUS_TRY(spare_what_was_read(run, reterr));
    STATUS_TRY(foresee(run, reterr));
    STATUS_TRY(worker_check(run->worker, reterr));
    enum status const status = replay(run, reterr);
    STATUS_TRY(worker_check(run->worker, reterr));
    if (run->too_long) return refuse_long(run, reterr);
    if (status != STATUS_OK) return status;
    report_from_session(session, &run->input);
    run->input.write_more = write_more;
    run->input.more_owner = run;
    bool const generates = session_output(session) > 0;
    if (session->machine.chip.kernels.stack != NULL && !generates)
        STATUS_TRY(ops_find(run, reterr));
    STATUS_TRY(report_name(session->arena, run->options, run->path, &run->input, reterr));
    if (options_has(run->options, "--timing")) run->input.wall_s = run->wall_s;
    STATUS_TRY(slices_find(run, reterr));
    STATUS_TRY(refuse_seen(run, reterr));
    STATUS_TRY(largest_find(run, reterr));
    if (generates) STATUS_TRY(generate(run, reterr));
    if (options_has(run->options, "--uncertainty")) STATUS_TRY(uncertainty(run, reterr));
    if (options_has(run->options, "--advise")) STATUS_TRY(advise(run, reterr));
    run->summary.columns = report_columns(to_stdout(run) ? 2 : 1);
    if (!is_quiet(run))
        STATUS_TRY(summary_write(session->arena, &run->input, colour, &run->summary, reterr));
    if (run->is_advised) advise_write_text(&run->advise, advised(run), &run->summary);
    if (run->json.path != NULL)
        STATUS_TRY(result_write(session->arena, &run->input, &run->result, reterr));
    if (run->trace.path != NULL)
        STATUS_TRY(timeline_write(session->arena, &run->input, &run->timeline, reterr));
    return worker_check(run->worker, reterr);
}

static enum status work(void *owner, struct worker *worker, struct error *reterr)
{
    struct run *run = owner;
    run->worker = worker;
    enum status const status = work_texts(run, reterr);
    if (status != STATUS_OK && !(status == STATUS_LIMIT && run->unfit)) return status;
    struct error unfit = *reterr;
    STATUS_TRY(output_write(&run->json, &run->result, reterr));
    if (run->unfit) {
        STATUS_TRY(output_finish(&run->json, reterr));
        *reterr = unfit;
        return status;
    }
    STATUS_TRY(output_write(&run->csv, &run->rows, reterr));
    STATUS_TRY(timeline_file_write(&run->trace, &run->timeline, reterr));
    STATUS_TRY(output_finish(&run->trace, reterr));
    STATUS_TRY(output_finish(&run->csv, reterr));
    return output_finish(&run->json, reterr);
}

static enum status open_outputs(struct run *run, struct error *reterr)
{
    const char *const json = options_value(run->options, "--json");
    const char *const trace = options_value(run->options, "--trace");
    STATUS_TRY(pool_read(run->options, &run->thread_count, reterr));
    STATUS_TRY(timeline_file_check(run->options, reterr));
    const char *const csv = options_value(run->options, "--csv");
    const char *const summary = prints(run) && !to_stdout(run) ? "-" : NULL;
    STATUS_TRY(outputs_distinct(4, (const char *const[]){csv, trace, json, summary}, reterr));
    STATUS_TRY(output_open(&run->json, json, run->options, reterr));
    STATUS_TRY(output_open_table(&run->csv, csv, &generation_cells, run->options, reterr));
    if (run->source.is_program && options_has(run->options, "--advise"))
        return error_set(reterr, STATUS_INVALID, "--advise",
                         "a program's text has no workload whose neighbours could be tried");
    return output_open(&run->trace, trace, run->options, reterr);
}

static void add_engine(struct run *run)
{
    const char *const engine = options_value(run->options, "--engine");
    if (engine == NULL) return;
    (void)snprintf(run->engine_setting, sizeof run->engine_setting, "/run/engine=%s", engine);
    run->source.settings[run->source.setting_count++].text = run->engine_setting;
}

/* The summary goes where the result does not. */
static int print(struct run *run, enum status status, struct error *error)
{
    struct error ignored = {0};
    if (status == STATUS_OK && prints(run))
        status = output_print(&run->summary, to_stdout(run), error);
    if (status == STATUS_OK) return EXIT_DONE;
    if (prints(run)) (void)output_print(&run->reason, true, &ignored);
    return command_fail_scenario(run->options, run->path, error);
}

static int run(const struct options *options)
{
    static struct run run;
    struct error error = {0};
    run.options = options;
    run.path = options->operand[0];
    enum status status = session_source_read(options, run.path, &run.source, &error);
    add_engine(&run);
    if (status == STATUS_OK) status = open_outputs(&run, &error);
    if (status == STATUS_OK)
        status =
            worker_run(work, &run, (struct progress_words){"step", "steps for the period"}, &error);
    int const exit_status = print(&run, status, &error);
    output_abandon(&run.json);
    output_abandon(&run.csv);
    output_abandon(&run.trace);
    strbuf_free(&run.summary);
    strbuf_free(&run.room);
    strbuf_free(&run.reason);
    strbuf_free(&run.result);
    strbuf_free(&run.rows);
    strbuf_free(&run.timeline);
    session_close(&run.session);
    session_source_close(&run.source);
    return exit_status;
}

const struct command command_run = {
    .name = "run",
    .usage = "podsim run FILE [--set /pointer=value]... [--full] [--json FILE|-] [--csv FILE|-]\n"
             "           [--trace FILE] [--trace-chips LIST] [--advise] [--uncertainty]\n"
             "           [--engine NAME] [--every-layer] [--no-record] [--timing] [--quiet]\n"
             "       podsim run --program FILE [...]",
    .summary = "simulates a scenario: how long it takes, and why",
    .help = "Simulates one step on the queues of chips and links, and prints one screen: the\n"
            "step, its bound, exposed communication, memory, the roofline and each reason for\n"
            "a difference from it. A step that does not fit the memory ends with a table of\n"
            "the memory by category, and with neighbours that fit; --json then has\n"
            "\"fits\": false. --advise simulates the scenario's neighbours (splits of tp,\n"
            "remat, offload, collective matmul, prefetch; of inference the cache and activations,\n"
            "too) and names the best that fits. With --quiet neither the summary nor the table is\n"
            "printed, and neighbours only where --advise asks for them. --uncertainty adds the\n"
            "times between which 80 of 100 measured steps would lie, by published measurements of\n"
            "similar steps; it needs a stack of measured kernels.\n"
            "\n"
            "FILE is a scenario, a name of `podsim list scenarios`, or - for standard input; with\n"
            "--program it is a program's text, which has no roofline.\n"
            "\n"
            "  podsim run llama3-8b-fsdp-v5e-16x16\n"
            "  podsim run FILE --set /workload/batch_tokens=8M --set /run/prefetch_layers=2\n"
            "  podsim run FILE --set '/mesh={\"fsdp\": [\"x\", \"y\", \"z\"]}'\n"
            "  podsim run FILE --json - --quiet | jq .step_time_s\n"
            "  podsim run FILE --trace step.pftrace --trace-chips \"0,0,0 0,0,1\"\n"
            "\n"
            "--set takes JSON if it parses as such, else a string; counts may end in K, M, G,\n"
            "T or P, powers of 1024. Files are written whole or not at all; Ctrl-C stops cleanly\n"
            "with exit status 130.\n",
    .operands_min = 1,
    .operands_max = 1,
    .options = run_options,
    .run = run,
};
