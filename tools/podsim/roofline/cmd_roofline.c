/*
 * cmd_roofline.c: the closed forms alone, without a run.
 */
#include "sim/base/strbuf.h"
#include "sim/report/report_roofline.h"
#include "sim/report/result.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"

static const struct option roofline_options[] = {
    {"--set", "/POINTER=VALUE", "change a key of the scenario; may be repeated", true},
    {"--preset", "NAME", "a framework, for keys that the scenario leaves out", false},
    {"--json", "FILE", "write it as JSON; - is standard output", false},
    {0},
};

static enum status print(const struct options *options, struct session *session,
                         struct error *reterr)
{
    static struct output json;
    struct report_input input;
    struct strbuf result = {0};
    const char *const path = options_value(options, "--json");
    bool const to_stdout = output_is_stdout(path);
    struct strbuf text = {.columns = report_columns(to_stdout ? 2 : 1)};
    report_from_session(session, &input);
    report_roofline_write(&input, report_in_colour(to_stdout ? 2 : 1), &text);
    if (path != NULL) result_write_roofline(&input, &result);
    enum status status = output_distinct(path, to_stdout ? NULL : "-", reterr);
    if (status == STATUS_OK) status = output_open(&json, path, options, reterr);
    if (status == STATUS_OK) status = output_write(&json, &result, reterr);
    if (status == STATUS_OK) status = output_finish(&json, reterr);
    if (status == STATUS_OK) status = output_print(&text, to_stdout, reterr);
    output_abandon(&json);
    strbuf_free(&text);
    strbuf_free(&result);
    return status;
}

static int roofline(const struct options *options)
{
    static struct session_source source;
    struct error error = {0};
    struct session session = {0};
    enum status status = session_source_read(options, options->operand[0], &source, &error);
    if (status == STATUS_OK) status = session_build(&session, &source, SESSION_PROGRAM, &error);
    if (status == STATUS_OK) status = print(options, &session, &error);
    session_close(&session);
    session_source_close(&source);
    if (status == STATUS_OK) return EXIT_DONE;
    return command_fail_scenario(options, options->operand[0], &error);
}

const struct command command_roofline = {
    .name = "roofline",
    .usage = "podsim roofline FILE [--set /pointer=value]... [--json FILE|-]",
    .summary = "the bounds by closed forms, without a run",
    .help =
        "Prints closed forms: the time that each resource needs for the step. The largest is a\n"
        "lower bound of the step. The sum is an upper bound at the data sheet's rates; kernels\n"
        "of a stack may take longer. A pipeline adds up all its ranks.\n"
        "The book's rules follow, with the scenario's numbers. `podsim run` shows where the step\n"
        "lies between the bounds.\n"
        "\n"
        "  podsim roofline scenarios/train/llama3-70b-fsdp-tp-v5p-16x16x16.json\n",
    .operands_min = 1,
    .operands_max = 1,
    .options = roofline_options,
    .run = roofline,
};
