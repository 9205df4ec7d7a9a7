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
#include "tools/podsim/output.h"
#include "tools/podsim/report.h"
#include "tools/podsim/schedules.h"
#include "tools/podsim/shell.h"
#include "tools/podsim/staged.h"

/* With given times, or of a scenario's own pipeline. */
struct comparison {
    struct schedules schedules;
    struct staged *staged; /* NULL: given times. */
    struct output json, svg;
    enum schedule_dialect dialect;
};

static enum status work(void *owner, struct shell *shell, struct error *reterr)
{
    struct comparison *comparison = owner;
    if (comparison->staged != NULL) return staged_play(comparison->staged, shell, reterr);
    return schedules_play(&comparison->schedules, shell, reterr);
}

static enum status open_outputs(struct comparison *comparison, struct error *reterr)
{
    const struct options *options = comparison->schedules.options;
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
    comparison->dialect = dialect != NULL && strcmp(dialect, "compute_comms") == 0
                              ? SCHEDULE_COMPUTE_COMMS
                              : SCHEDULE_COMPUTE_ONLY;
    STATUS_TRY(output_distinct(json, svg, reterr));
    STATUS_TRY(output_open(&comparison->json, json, NULL, reterr));
    return output_open(&comparison->svg, svg, NULL, reterr);
}

/* One file, under another name until it is whole. */
static enum status csv_write(const struct comparison *comparison, const char *row_name,
                             const struct schedule *schedule, const char *folder,
                             struct error *reterr)
{
    char path[OUTPUT_PATH_BYTES], name[64];
    struct text text = {0};
    size_t length = 0;
    for (const char *c = row_name; *c != '\0' && length < sizeof name - 1; c++)
        name[length++] = *c == ':' ? '-' : *c;
    name[length] = '\0';
    int const size = snprintf(path, sizeof path, "%s/%s-%ux%u.csv", folder, name,
                              schedule->rank_count, schedule->microbatch_count);
    if (size < 0 || (size_t)size >= sizeof path)
        return error_set(reterr, STATUS_LIMIT, "--csv-out", "the name of the folder is too long");
    enum status status = schedule_csv_write(comparison->schedules.arena, schedule,
                                            comparison->dialect, &text, reterr);
    if (status == STATUS_OK) status = text_write_file(&text, path, reterr);
    text_free(&text);
    return status;
}

/* The schedule of a row that was played and is not from a file itself; or NULL. */
static const struct schedule *row_schedule(const struct comparison *comparison, uint32_t row,
                                           const char **ret_name)
{
    if (comparison->staged != NULL) {
        const struct staged_row *of = &comparison->staged->row[row];
        *ret_name = of->name;
        return of->refused.status == STATUS_OK && of->form != NULL ? &of->schedule : NULL;
    }
    const struct schedules_row *of = &comparison->schedules.row[row];
    *ret_name = of->name;
    return of->refused.status == STATUS_OK && of->form != NULL ? &of->schedule : NULL;
}

/* A schedule that such a file cannot say is passed over with a sentence, unless it is alone. */
static enum status csvs_write(struct comparison *comparison, struct text *notes,
                              struct error *reterr)
{
    const char *const folder = options_value(comparison->schedules.options, "--csv-out");
    bool const is_staged = comparison->staged != NULL;
    uint32_t const rows =
        is_staged ? comparison->staged->done_count : comparison->schedules.done_count;
    uint32_t const asked =
        is_staged ? comparison->staged->row_count : comparison->schedules.row_count;
    if (folder == NULL) return STATUS_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return error_set(reterr, STATUS_IO, folder, "cannot be made: %s", strerror(errno));
    for (uint32_t i = 0; i < rows; i++) {
        const char *name = NULL;
        const struct schedule *schedule = row_schedule(comparison, i, &name);
        if (schedule == NULL) continue;
        enum status const status = csv_write(comparison, name, schedule, folder, reterr);
        if (status == STATUS_UNSUPPORTED && asked > 1)
            text_add(notes, "- no file for %s: %s\n", name, reterr->message);
        else if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status write_results(struct comparison *comparison, struct error *reterr)
{
    struct text text = {0}, json = {0}, svg = {0};
    const struct schedules *schedules = &comparison->schedules;
    const struct staged *staged = comparison->staged;
    const char *const json_path = comparison->json.path;
    bool const to_stdout = json_path != NULL && strcmp(json_path, "-") == 0;
    enum status status = STATUS_OK;
    bool const colour = report_in_colour(to_stdout ? 2 : 1), draws = comparison->svg.path != NULL;
    if (staged != NULL) {
        staged_write_text(staged, colour, &text);
        staged_write_json(staged, &json);
        if (draws) status = staged_write_svg(staged, &svg, reterr);
    } else {
        schedules_write_text(schedules, colour, &text);
        schedules_write_json(schedules, &json);
        if (draws) status = schedules_write_svg(schedules, &svg, reterr);
    }
    if (status == STATUS_OK) status = output_write(&comparison->json, &json, reterr);
    if (status == STATUS_OK) status = output_write(&comparison->svg, &svg, reterr);
    if (status == STATUS_OK) status = csvs_write(comparison, &text, reterr);
    if (status == STATUS_OK) status = output_finish(&comparison->json, reterr);
    if (status == STATUS_OK) status = output_finish(&comparison->svg, reterr);
    if (status == STATUS_OK) status = output_print(&text, to_stdout, reterr);
    text_free(&text);
    text_free(&json);
    text_free(&svg);
    return status;
}

static uint32_t rows_done(const struct comparison *comparison)
{
    return comparison->staged != NULL ? comparison->staged->done_count
                                      : comparison->schedules.done_count;
}

static enum status rows_read(struct comparison *comparison, struct error *reterr)
{
    struct schedules *schedules = &comparison->schedules;
    const struct options *options = schedules->options;
    if (options->operand_count == 0) return schedules_read(schedules, reterr);
    void *memory = NULL;
    STATUS_TRY(arena_try(schedules->arena, 1, sizeof *comparison->staged, &memory, reterr));
    comparison->staged = memory;
    comparison->staged->options = options;
    comparison->staged->arena = schedules->arena;
    return staged_read(comparison->staged, reterr);
}

static enum status comparison_run(struct comparison *comparison, struct error *reterr)
{
    STATUS_TRY(rows_read(comparison, reterr));
    STATUS_TRY(open_outputs(comparison, reterr));
    enum status const status = shell_run(work, comparison, "schedules", reterr);
    if (status != STATUS_OK && status != STATUS_INTERRUPTED) return status;
    if (rows_done(comparison) == 0) return status;
    STATUS_TRY(write_results(comparison, reterr));
    return status;
}

static int pipeline(const struct options *options)
{
    struct error error = {0};
    enum status status = STATUS_OK;
    struct arena *arena = arena_create(0);
    struct comparison *comparison = arena == NULL ? NULL : arena_take(arena, 1, sizeof *comparison);
    const char *const file = options->operand_count > 0 ? options->operand[0] : NULL;
    if (comparison == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "", "there is no memory");
        arena_destroy(arena);
        return command_fail(NULL, &error);
    }
    comparison->schedules.options = options;
    comparison->schedules.arena = arena;
    status = comparison_run(comparison, &error);
    output_abandon(&comparison->json);
    output_abandon(&comparison->svg);
    int exit_status = EXIT_DONE;
    if (status == STATUS_INTERRUPTED && rows_done(comparison) > 0)
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
