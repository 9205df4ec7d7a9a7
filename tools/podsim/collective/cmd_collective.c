/*
 * cmd_collective.c: collectives by themselves: a sweep of sizes, in the table of nccl-tests.
 */
#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/collective/collective.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/timeline_file.h"
#include "tools/podsim/common/worker.h"

/* One sweep; the worker's until it has ended. */
struct sweep {
    const struct options *options;
    struct collective_study study;
    struct output json, csv, trace;
};

static enum status open_outputs(struct sweep *sweep, struct error *reterr)
{
    const char *const json = options_value(sweep->options, "--json");
    const char *const csv = options_value(sweep->options, "--csv");
    const char *const trace = options_value(sweep->options, "--trace");
    const char *const table = output_is_stdout(json) || output_is_stdout(csv) ? NULL : "-";
    STATUS_TRY(outputs_distinct(4, (const char *const[]){trace, json, csv, table}, reterr));
    STATUS_TRY(output_open(&sweep->json, json, sweep->options, reterr));
    STATUS_TRY(output_open(&sweep->trace, trace, sweep->options, reterr));
    return output_open_table(&sweep->csv, csv, &collective_cells, sweep->options, reterr);
}

/* What was finished is written, of an interrupted sweep too. */
static enum status write_results(struct sweep *sweep, struct error *reterr)
{
    struct strbuf json = {0}, csv = {0};
    bool const to_error = output_is_stdout(sweep->json.path) || output_is_stdout(sweep->csv.path);
    struct strbuf table = {.columns = report_columns(to_error ? 2 : 1)};
    collective_write_table(&sweep->study, &table);
    collective_write_json(&sweep->study, &json);
    collective_write_csv(&sweep->study, &csv);
    enum status status = output_write(&sweep->json, &json, reterr);
    if (status == STATUS_OK) status = output_write(&sweep->csv, &csv, reterr);
    if (status == STATUS_OK)
        status = timeline_file_write(&sweep->trace, &sweep->study.timeline, reterr);
    if (status == STATUS_OK) status = output_finish(&sweep->trace, reterr);
    if (status == STATUS_OK) status = output_finish(&sweep->json, reterr);
    if (status == STATUS_OK) status = output_finish(&sweep->csv, reterr);
    if (status == STATUS_OK) status = output_print(&table, to_error, reterr);
    strbuf_free(&table);
    strbuf_free(&json);
    strbuf_free(&csv);
    return status;
}

static enum status sweep_run(struct sweep *sweep, struct error *reterr)
{
    STATUS_TRY(collective_read(sweep->options, &sweep->study, reterr));
    STATUS_TRY(open_outputs(sweep, reterr));
    enum status const status =
        worker_run(collective_play, &sweep->study, (struct progress_words){"sweep", NULL}, reterr);
    if (status != STATUS_OK && status != STATUS_INTERRUPTED) return status;
    if (sweep->study.row_count == 0) return status;
    STATUS_TRY(write_results(sweep, reterr));
    return status;
}

static int collective(const struct options *options)
{
    static struct sweep sweep;
    struct error error = {0};
    enum status status = STATUS_OK;
    sweep.options = options;
    sweep.study.arena = arena_create(0);
    if (sweep.study.arena == NULL) status = error_no_memory(&error, "");
    if (status == STATUS_OK) status = sweep_run(&sweep, &error);
    output_abandon(&sweep.json);
    output_abandon(&sweep.csv);
    output_abandon(&sweep.trace);
    strbuf_free(&sweep.study.timeline);
    int exit_status = EXIT_DONE;
    if (status == STATUS_INTERRUPTED && sweep.study.row_count > 0)
        exit_status = EXIT_INTERRUPTED; /* The table says so. */
    else if (status != STATUS_OK)
        exit_status = command_fail(collective_args_input(&sweep.study.asked, &error), &error);
    arena_destroy(sweep.study.arena);
    return exit_status;
}

const struct command command_collective = {
    .name = "collective",
    .usage = "podsim collective --machine SPEC --op NAME [--axes LIST] [-b SIZE] [-e SIZE] [-f N]\n"
             "           [--algorithm NAMES] [--json FILE|-] [--csv FILE|-] [--trace FILE] ...",
    .summary = "how long a collective takes for a sweep of sizes",
    .help = "Simulates one collective on an idle machine for each size, and prints the table\n"
            "of nccl-tests, with its sizes and bandwidths, and with the array V of the book,\n"
            "the closed form, what bounds it and the algorithm.\n"
            "\n"
            "  podsim collective --machine tpu-v5e:8x16 --op all_gather --axes x -b 1K -e 1G -f 4\n"
            "  podsim collective --machine tpu-v5p:16x16x16 --op all_reduce -b 8 -e 8G\n"
            "  podsim collective --machine v5p-128 --op all_to_all -e 64M --json - | jq .rows\n"
            "\n"
            "  podsim collective --machine tpu-v5p:8x8x8 --op all_reduce --axes x --concurrent 4\n"
            "  podsim collective --machine tpu-v5p:8x8x8 --op all_gather --axes x -e 1G \\\n"
            "      --concurrent \"reduce_scatter@x:256M all_to_all@x,y:64M\"\n"
            "\n"
            "  podsim collective --machine h100-sxm:nodes=4 --op all_to_all \\\n"
            "      --experts 256 --top-k 8 --algorithm direct,flat-direct\n"
            "  podsim collective --machine gh200-nvl32 --op host_load -b 1M -e 1G -f 4\n"
            "\n"
            "All groups of the shape that --axes names work at once; host_store and host_load are "
            "copies\n"
            "of every chip to and from its host's memory. Ctrl-C keeps the rows that are\n"
            "finished and ends with status 130.\n",
    .operands_min = 0,
    .operands_max = 0,
    .options = collective_options,
    .run = collective,
};
