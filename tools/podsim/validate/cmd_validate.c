/*
 * cmd_validate.c: predictions against published measurements.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/pool.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/validate/validate.h"

enum { SETS_MAX = 128 };

static const struct option validate_options[] = {
    {"--published", NULL, "the built-in published measurements", false},
    {"--test", "NAME", "a test, or a group of other rows; may be repeated", true},
    {"--show", "ID", "print the scenario of a row, which `podsim run -` takes, and run nothing",
     false},
    {"--svg", "FILE", "draw predicted against measured; - is standard output", false},
    {"--json", "FILE", "write rows and scores as JSON; - is standard output", false},
    {"--csv", "FILE", "write the rows as CSV; - is standard output", false},
    {"--markdown", "FILE", "write the tables of docs/accuracy-published.md; - is standard output",
     false},
    {"--residuals", "FILE", "write what `podsim run --uncertainty` reads; - is standard output",
     false},
    POOL_OPTION,
    {0},
};

struct outputs {
    struct output json, csv, svg, markdown, residuals;
};

/* Whether an output goes where the text would. */
static bool takes_stdout(const struct options *options)
{
    static const char *const outputs[] = {"--json", "--csv", "--svg", "--markdown", "--residuals"};
    bool takes = false;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        takes = takes || output_is_stdout(options_value(options, outputs[i]));
    return takes;
}

static enum status open_outputs(const struct options *options, struct outputs *outputs,
                                struct error *reterr)
{
    const char *const json = options_value(options, "--json");
    const char *const csv = options_value(options, "--csv");
    const char *const svg = options_value(options, "--svg");
    const char *const markdown = options_value(options, "--markdown");
    const char *const residuals = options_value(options, "--residuals");
    STATUS_TRY(outputs_distinct(6,
                                (const char *const[]){svg, json, csv, markdown, residuals,
                                                      takes_stdout(options) ? NULL : "-"},
                                reterr));
    STATUS_TRY(output_open(&outputs->json, json, options, reterr));
    STATUS_TRY(output_open(&outputs->svg, svg, options, reterr));
    STATUS_TRY(output_open(&outputs->markdown, markdown, options, reterr));
    STATUS_TRY(output_open(&outputs->residuals, residuals, options, reterr));
    return output_open_table(&outputs->csv, csv, &validate_cells, options, reterr);
}

typedef void write_fn(const struct validate *validate, struct strbuf *text);

static enum status output_fill(struct output *output, write_fn *write,
                               const struct validate *validate, struct error *reterr)
{
    struct strbuf text = {0};
    if (output->path == NULL) return STATUS_OK;
    write(validate, &text);
    enum status const status = output_write(output, &text, reterr);
    strbuf_free(&text);
    return status;
}

static enum status write_results(const struct validate *validate, struct outputs *outputs,
                                 struct error *reterr)
{
    bool const to_error = takes_stdout(validate->options);
    struct strbuf text = {.columns = report_columns(to_error ? 2 : 1)};
    STATUS_TRY(output_fill(&outputs->json, validate_write_json, validate, reterr));
    STATUS_TRY(output_fill(&outputs->csv, validate_write_csv, validate, reterr));
    STATUS_TRY(output_fill(&outputs->svg, validate_write_svg, validate, reterr));
    STATUS_TRY(output_fill(&outputs->markdown, validate_write_markdown, validate, reterr));
    STATUS_TRY(output_fill(&outputs->residuals, validate_write_residuals, validate, reterr));
    STATUS_TRY(output_finish(&outputs->json, reterr));
    STATUS_TRY(output_finish(&outputs->csv, reterr));
    STATUS_TRY(output_finish(&outputs->svg, reterr));
    STATUS_TRY(output_finish(&outputs->markdown, reterr));
    STATUS_TRY(output_finish(&outputs->residuals, reterr));
    if (to_error) return STATUS_OK;
    validate_write_text(validate, &text);
    enum status const status = output_print(&text, to_error, reterr);
    strbuf_free(&text);
    return status;
}

/* Sets by name; without --test all. */
static enum status sets_want(struct validate *validate, struct error *reterr)
{
    const struct published *published = &validate->published;
    const char *names[SETS_MAX + 1] = {NULL}, *asked = NULL;
    for (uint32_t s = 0; s < published->set_count && s < SETS_MAX; s++)
        names[s] = published->set[s].name;
    for (uint32_t s = 0; s < published->set_count; s++)
        validate->wanted[s] = !options_has(validate->options, "--test");
    for (uint32_t i = 0; (asked = options_value_at(validate->options, "--test", i)) != NULL; i++) {
        bool is_known = false;
        for (uint32_t s = 0; s < published->set_count; s++) {
            if (!name_same(published->set[s].name, asked)) continue;
            validate->wanted[s] = is_known = true;
        }
        if (!is_known)
            return error_set(reterr, STATUS_NOT_FOUND, "--test", "no test is called \"%.40s\"%s",
                             asked, name_offer(asked, names, "; the nearest is ", "", NULL).text);
    }
    return STATUS_OK;
}

static enum status row_show(struct validate *validate, const char *id, struct error *reterr)
{
    const struct published *published = &validate->published;
    const char **names = NULL, *text = NULL;
    void *memory = NULL;
    STATUS_TRY(
        arena_try(validate->arena, published->row_count + 1, sizeof(char *), &memory, reterr));
    names = memory;
    for (uint32_t i = 0; i < published->row_count; i++) {
        struct strbuf printed = {0};
        names[i] = published->row[i].id;
        if (strcmp(names[i], id) != 0) continue;
        STATUS_TRY(published_scenario(validate->arena, &published->row[i], &text, reterr));
        strbuf_add(&printed, "%s", text);
        enum status const status = output_print(&printed, false, reterr);
        strbuf_free(&printed);
        return status;
    }
    return error_set(reterr, STATUS_NOT_FOUND, "--show", "no row is called \"%.80s\"%s", id,
                     name_offer(id, names, "; the nearest is ", "", "").text);
}

/* What plays nothing has nothing to write. */
static enum status show_check(const struct options *options, struct error *reterr)
{
    static const char *const others[] = {"--test",     "--svg",       "--json", "--csv",
                                         "--markdown", "--residuals", "-j"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_has(options, others[i]))
            return error_set(reterr, STATUS_INVALID, others[i],
                             "--show prints a scenario and simulates nothing; leave this out");
    return STATUS_OK;
}

/* Outputs are opened before the work. */
static enum status run(struct validate *validate, struct outputs *outputs, struct error *reterr)
{
    const char *const id = options_value(validate->options, "--show");
    void *memory = NULL;
    if (!options_has(validate->options, "--published"))
        return error_set(reterr, STATUS_INVALID, "",
                         "only published measurements are known; say --published");
    if (id != NULL) STATUS_TRY(show_check(validate->options, reterr));
    STATUS_TRY(published_read(validate->arena, &validate->published, reterr));
    if (id != NULL) return row_show(validate, id, reterr);
    uint32_t const set_count = validate->published.set_count;
    STATUS_TRY(arena_try(validate->arena, validate->published.row_count,
                         sizeof(struct validate_result), &memory, reterr));
    validate->result = memory;
    STATUS_TRY(arena_try(validate->arena, set_count, sizeof(bool), &memory, reterr));
    validate->wanted = memory;
    STATUS_TRY(
        arena_try(validate->arena, set_count, sizeof(struct validate_score), &memory, reterr));
    validate->score = memory;
    STATUS_TRY(sets_want(validate, reterr));
    STATUS_TRY(pool_read(validate->options, &validate->thread_count, reterr));
    STATUS_TRY(open_outputs(validate->options, outputs, reterr));
    STATUS_TRY(worker_run(validate_play, validate, (struct progress_words){"rows", NULL}, reterr));
    return write_results(validate, outputs, reterr);
}

static int validate(const struct options *options)
{
    static struct validate validate;
    static struct outputs outputs;
    struct error error = {0};
    enum status status = STATUS_OK;
    validate.options = options;
    validate.events_max = VALIDATE_EVENTS_MAX;
    validate.arena = arena_create(0);
    if (validate.arena == NULL) status = error_no_memory(&error, "");
    if (status == STATUS_OK) status = run(&validate, &outputs, &error);
    output_abandon(&outputs.json);
    output_abandon(&outputs.csv);
    output_abandon(&outputs.svg);
    output_abandon(&outputs.markdown);
    output_abandon(&outputs.residuals);
    arena_destroy(validate.arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

const struct command command_validate = {
    .name = "validate",
    .usage = "podsim validate --published [--test NAME]... [--json FILE|-] [--csv FILE|-]\n"
             "           [--svg FILE|-] [--markdown FILE|-] [--residuals FILE|-]\n"
             "       podsim validate --published --show ID",
    .summary = "predictions compared with published measurements",
    .help =
        "Makes a scenario of each built-in published measurement (steps of training and of\n"
        "inference, collectives), simulates it in the profile \"measured\", and compares the\n"
        "times. A test is a set of rows from which no number of podsim is set. Rows from which\n"
        "podsim may learn are in separate groups. The error of a row is predicted over\n"
        "measured, less 1. Errors of ratios are without the factor that all predictions of a\n"
        "test share. The yardsticks predict each row from its bound, at one share of the chip's\n"
        "peak: the best share for the test, or the chip's median share in the groups.\n"
        "\n"
        "  podsim validate --published --test T13\n"
        "  podsim validate --published --show korthikanti-a100-22B-full | podsim run -\n"
        "  podsim validate --published --csv rows.csv --svg rows.svg\n",
    .operands_min = 0,
    .operands_max = 0,
    .options = validate_options,
    .run = validate,
};
