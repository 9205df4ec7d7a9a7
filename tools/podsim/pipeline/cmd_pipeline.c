/*
 * cmd_pipeline.c: pipeline schedules side by side.
 */
#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/timeline_file.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pipeline/comparison.h"
#include "tools/podsim/pipeline/comparison_csv.h"
#include "tools/podsim/pipeline/comparison_rows.h"
#include "tools/podsim/pipeline/pipeline_run.h"
#include "tools/podsim/pipeline/schedules.h"

struct outputs {
    struct output json, rows, svg, trace;
    struct comparison_csv csv;
};

static enum status open_outputs(const struct comparison *comparison, struct outputs *outputs,
                                struct error *reterr)
{
    const struct options *options = comparison->options;
    const char *const json = options_value(options, "--json");
    const char *const rows = options_value(options, "--csv");
    const char *const svg = options_value(options, "--svg");
    const char *const trace = options_value(options, "--trace");
    STATUS_TRY(output_picture_check(svg, reterr));
    STATUS_TRY(outputs_distinct(4, (const char *const[]){trace, json, svg, rows}, reterr));
    STATUS_TRY(output_distinct(trace, "-", reterr));
    STATUS_TRY(comparison_csv_open(comparison, &outputs->csv, reterr));
    STATUS_TRY(output_open(&outputs->json, json, options, reterr));
    STATUS_TRY(output_open_table(&outputs->rows, rows, &comparison_cells, options, reterr));
    STATUS_TRY(output_open(&outputs->trace, trace, options, reterr));
    return output_open(&outputs->svg, svg, options, reterr);
}

static enum status write_results(const struct comparison *comparison, struct outputs *outputs,
                                 struct error *reterr)
{
    struct strbuf text = {0}, json = {0}, rows = {0}, svg = {0};
    const struct comparison_way *way = comparison->way;
    bool const to_error = comparison_prints_to_error(comparison);
    enum status status = STATUS_OK;
    struct report_terminal const terminal = report_terminal(to_error ? 2 : 1);
    text.columns = terminal.is_one ? terminal.columns : 0;
    bool const any = comparison_played(comparison) > 0;
    if (any)
        way->write_text(comparison, &terminal, &text);
    else
        comparison_write_refused(comparison, &text);
    comparison_write_json(comparison, &json);
    comparison_write_csv(comparison, &rows);
    /* Of no rows there is no picture, and a file that is there stays. */
    if (outputs->svg.path != NULL && any) status = way->write_svg(comparison, &svg, reterr);
    if (status == STATUS_OK) status = output_write(&outputs->json, &json, reterr);
    if (status == STATUS_OK) status = output_write(&outputs->rows, &rows, reterr);
    if (status == STATUS_OK && any) status = output_write(&outputs->svg, &svg, reterr);
    if (status == STATUS_OK)
        status = timeline_file_write(&outputs->trace, &comparison->timeline, reterr);
    if (status == STATUS_OK)
        status = comparison_csv_write(comparison, &outputs->csv, &text, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->json, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->rows, reterr);
    if (status == STATUS_OK && any) status = output_finish(&outputs->svg, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->trace, reterr);
    if (status == STATUS_OK) status = output_print(&text, to_error, reterr);
    strbuf_free(&text);
    strbuf_free(&json);
    strbuf_free(&rows);
    strbuf_free(&svg);
    return status;
}

/* What was simulated is shown, whatever kept the rest from it. */
static enum status comparison_run(struct comparison *comparison, struct outputs *outputs,
                                  struct error *reterr)
{
    STATUS_TRY(pool_read(comparison->options, &comparison->thread_count, reterr));
    STATUS_TRY(comparison->way->read(comparison, reterr));
    STATUS_TRY(comparison_read_trace(comparison, reterr));
    STATUS_TRY(comparison_check_picture(comparison, reterr));
    STATUS_TRY(open_outputs(comparison, outputs, reterr));
    enum status const status =
        worker_run(comparison_play, comparison, (struct progress_words){"schedules", NULL}, reterr);
    if (comparison_played(comparison) == 0 &&
        (comparison->row_count == 1 || comparison->done_count < comparison->row_count))
        return status;
    comparison_rank(comparison);
    struct error error;
    if (write_results(comparison, outputs, &error) == STATUS_OK) return status;
    *reterr = error;
    return error.status;
}

static int pipeline(const struct options *options)
{
    struct error error = {0};
    static struct outputs outputs;
    struct arena *arena = arena_create(0);
    struct comparison *comparison = arena == NULL ? NULL : arena_take(arena, 1, sizeof *comparison);
    const char *const file = options->operand_count > 0 ? options->operand[0] : NULL;
    if (comparison == NULL) {
        (void)error_no_memory(&error, "");
        arena_destroy(arena);
        return command_fail(NULL, &error);
    }
    comparison->way = file == NULL ? &schedules_way : &pipeline_run_way;
    comparison->options = options;
    comparison->arena = arena;
    enum status const status = comparison_run(comparison, &outputs, &error);
    output_abandon(&outputs.json);
    output_abandon(&outputs.rows);
    output_abandon(&outputs.svg);
    output_abandon(&outputs.trace);
    strbuf_free(&comparison->timeline);
    comparison_csv_close(&outputs.csv);
    comparison_close(comparison);
    if (comparison->way->close != NULL) comparison->way->close(comparison);
    int exit_status = EXIT_DONE;
    if (status == STATUS_INTERRUPTED && comparison_played(comparison) > 0)
        exit_status = EXIT_INTERRUPTED; /* The text says so. */
    else if (status != STATUS_OK)
        exit_status = command_fail_scenario(options, file, &error);
    arena_destroy(arena);
    return exit_status;
}

const struct command command_pipeline = {
    .name = "pipeline",
    .usage = "podsim pipeline FILE [--schedules LIST|all] [--microbatches LIST]\n"
             "           [--sort KEY] ...\n"
             "       podsim pipeline --stages N [--microbatches LIST]\n"
             "           [--times F=1,I=1,W=1,hop=0] [--schedules LIST|all]\n"
             "           [--schedule-csv FILE] [--sort KEY] [--csv FILE] ...",
    .summary = "pipeline schedules side by side: bubbles and activations",
    .help = "Simulates a scenario with pp under each schedule, with the real ops of its\n"
            "layers on the machine's own links:\n"
            "\n"
            "  podsim pipeline scenarios/pipeline/llama3-8b-pp4-h100-32.json \\\n"
            "      --schedules gpipe,1f1b,interleaved:2,zb-h1,dualpipev \\\n"
            "      --microbatches 8,16 --sort period\n"
            "\n"
            "Without a file it simulates schedules with given times: F, I and W are the times\n"
            "of a rank's whole share of a microbatch, forward, for its input gradient and for\n"
            "its weight gradient. A rank with several chunks takes a part for each. A hop\n"
            "between ranks is latency only. Each row has the published formula, and a line\n"
            "says where it does not hold.\n"
            "\n"
            "  podsim pipeline --stages 8\n"
            "  podsim pipeline --stages 8 --microbatches 16,32 \\\n"
            "      --times F=1,I=1.3,W=0.7,hop=0.1\n"
            "  podsim pipeline --stages 4 --schedules zb-v --microbatches 8 --svg zb-v.svg\n"
            "  podsim pipeline --schedule-csv mine.csv --schedules 1f1b --stages 4 \\\n"
            "      --microbatches 8\n"
            "\n"
            "The best row has a * in front: the shortest period of the rows that fit. The\n"
            "row of the search (auto) comes last. \"all\" is every schedule except none,\n"
            "which has no pipeline.\n"
            "\n"
            "Names: podsim list schedules. One schedule alone is drawn as lanes.\n",
    .operands_min = 0,
    .operands_max = 1,
    .options = schedules_options,
    .run = pipeline,
};
