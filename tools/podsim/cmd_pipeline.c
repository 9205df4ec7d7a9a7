/*
 * cmd_pipeline.c: pipeline schedules side by side.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/text.h"
#include "sim/schedule/schedule_csv.h"
#include "tools/podsim/command.h"
#include "tools/podsim/comparison.h"
#include "tools/podsim/output.h"
#include "tools/podsim/report.h"
#include "tools/podsim/schedules.h"
#include "tools/podsim/shell.h"
#include "tools/podsim/staged.h"

struct outputs {
    struct output json, svg;
    enum schedule_dialect dialect;
};

static enum status open_outputs(const struct options *options, struct outputs *outputs,
                                struct error *reterr)
{
    const char *const json = options_value(options, "--json");
    const char *const svg = options_value(options, "--svg");
    const char *const dialect = options_value(options, "--dialect");
    if (svg != NULL && strcmp(svg, "-") == 0)
        return error_set(reterr, STATUS_INVALID, "--svg", "a picture needs a file of its own");
    if (dialect != NULL && strcmp(dialect, "compute_only") != 0 &&
        strcmp(dialect, "compute_comms") != 0)
        return error_set(reterr, STATUS_INVALID, "--dialect",
                         "\"%s\" is neither compute_only nor compute_comms", dialect);
    if (dialect != NULL && !options_has(options, "--csv-out"))
        return error_set(reterr, STATUS_INVALID, "--dialect", "needs --csv-out FOLDER");
    outputs->dialect = dialect != NULL && strcmp(dialect, "compute_comms") == 0
                           ? SCHEDULE_COMPUTE_COMMS
                           : SCHEDULE_COMPUTE_ONLY;
    STATUS_TRY(output_distinct(json, svg, reterr));
    STATUS_TRY(output_open(&outputs->json, json, options, reterr));
    return output_open(&outputs->svg, svg, options, reterr);
}

/* One file, under another name until it is whole. */
static enum status csv_write(const struct comparison *comparison, const struct comparison_row *row,
                             enum schedule_dialect dialect, const char *folder,
                             struct error *reterr)
{
    char path[OUTPUT_PATH_BYTES], name[64];
    struct text text = {0};
    size_t length = 0;
    for (const char *c = row->name; *c != '\0' && length < sizeof name - 1; c++)
        name[length++] = *c == ':' ? '-' : *c;
    name[length] = '\0';
    int const size = snprintf(path, sizeof path, "%s/%s-%ux%u.csv", folder, name, row->rank_count,
                              row->microbatch_count);
    if (size < 0 || (size_t)size >= sizeof path)
        return error_set(reterr, STATUS_LIMIT, "--csv-out", "the name of the folder is too long");
    STATUS_TRY(output_spares(path, comparison->options, reterr));
    enum status status =
        schedule_csv_write(comparison->arena, &row->schedule, dialect, &text, reterr);
    if (status == STATUS_OK) status = text_write_file(&text, path, reterr);
    text_free(&text);
    return status;
}

/* Of rows that were played and are not from files themselves. A schedule that such a file cannot
 * say is passed over with a sentence, unless it is alone. */
static enum status csvs_write(const struct comparison *comparison, enum schedule_dialect dialect,
                              struct text *notes, struct error *reterr)
{
    const char *const folder = options_value(comparison->options, "--csv-out");
    if (folder == NULL) return STATUS_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return error_set(reterr, STATUS_IO, folder, "cannot be made: %s", strerror(errno));
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        if (row->refused.status != STATUS_OK || row->form == NULL) continue;
        enum status const status = csv_write(comparison, row, dialect, folder, reterr);
        if (status == STATUS_UNSUPPORTED && comparison->row_count > 1)
            text_add(notes, "- no file for %s: %s\n", row->name, reterr->message);
        else if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status write_results(const struct comparison *comparison, struct outputs *outputs,
                                 struct error *reterr)
{
    struct text text = {0}, json = {0}, svg = {0};
    const struct comparison_way *way = comparison->way;
    bool const to_stdout = outputs->json.path != NULL && strcmp(outputs->json.path, "-") == 0;
    enum status status = STATUS_OK;
    struct report_terminal const terminal = report_terminal(to_stdout ? 2 : 1);
    way->write_text(comparison, &terminal, &text);
    way->write_json(comparison, &json);
    if (outputs->svg.path != NULL) status = way->write_svg(comparison, &svg, reterr);
    if (status == STATUS_OK) status = output_write(&outputs->json, &json, reterr);
    if (status == STATUS_OK) status = output_write(&outputs->svg, &svg, reterr);
    if (status == STATUS_OK) status = csvs_write(comparison, outputs->dialect, &text, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->json, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->svg, reterr);
    if (status == STATUS_OK) status = output_print(&text, to_stdout, reterr);
    text_free(&text);
    text_free(&json);
    text_free(&svg);
    return status;
}

/* What was played is shown, whatever kept the rest from it. */
static enum status comparison_run(struct comparison *comparison, struct outputs *outputs,
                                  struct error *reterr)
{
    STATUS_TRY(comparison->way->read(comparison, reterr));
    STATUS_TRY(open_outputs(comparison->options, outputs, reterr));
    enum status const status = shell_run(comparison_play, comparison, "schedules", reterr);
    if (comparison_played(comparison) == 0) return status;
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
        (void)error_set(&error, STATUS_NO_MEMORY, "", "there is no memory");
        arena_destroy(arena);
        return command_fail(NULL, &error);
    }
    comparison->way = file == NULL ? &schedules_way : &staged_way;
    comparison->options = options;
    comparison->arena = arena;
    enum status const status = comparison_run(comparison, &outputs, &error);
    output_abandon(&outputs.json);
    output_abandon(&outputs.svg);
    int exit_status = EXIT_DONE;
    if (status == STATUS_INTERRUPTED && comparison_played(comparison) > 0)
        exit_status = EXIT_INTERRUPTED; /* The text says so. */
    else if (status != STATUS_OK)
        exit_status = command_fail(file, &error);
    arena_destroy(arena);
    return exit_status;
}

const struct command command_pipeline = {
    .name = "pipeline",
    .usage = "podsim pipeline FILE [--schedules LIST|all] [--microbatches LIST] ...\n"
             "       podsim pipeline --stages N [--microbatches LIST] [--times F=1,I=1,W=1,hop=0]\n"
             "           [--schedules LIST|all] [--csv FILE] [--svg FILE] [--json FILE|-] ...",
    .summary = "pipeline schedules side by side: bubbles and activations",
    .help =
        "Replays a scenario with pp under each schedule, with the real ops of its layers on the\n"
        "machine's own links:\n"
        "\n"
        "  podsim pipeline scenarios/pipeline/llama3-8b-pp4-h100-32.json \\\n"
        "      --schedules gpipe,1f1b,interleaved:2,zb-h1,dualpipev --microbatches 8,16\n"
        "\n"
        "Without a file it plays schedules with given times: F, I and W are what a rank's whole "
        "share of a\n"
        "microbatch takes forward, for its input gradient and for its weight gradient; a rank "
        "with\n"
        "several chunks takes a part for each. A hop between ranks is latency and nothing else.\n"
        "Beside what comes out stands the published formula, and where it does not hold.\n"
        "\n"
        "  podsim pipeline --stages 8\n"
        "  podsim pipeline --stages 8 --microbatches 16,32 --times F=1,I=1.3,W=0.7,hop=0.1\n"
        "  podsim pipeline --stages 4 --schedules zb-v --microbatches 8 --svg zb-v.svg\n"
        "  podsim pipeline --csv mine.csv --schedules 1f1b,zb-h1 --stages 4 --microbatches 8\n"
        "\n"
        "Names: podsim list schedules. One schedule alone is drawn as lanes.\n",
    .operands_min = 0,
    .operands_max = 1,
    .options = schedules_options,
    .run = pipeline,
};
