/*
 * cmd_check.c: whether files are scenarios. Form only: whether it fits the memory is the run's.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/session.h"
#include "tools/podsim/common/setting_place.h"

static const struct option check_options[] = {
    {"--set", "/POINTER=VALUE", "change a key of every scenario; may be repeated", true},
    {0},
};

/* Of several files, what all of them are given is wrong in the named one. */
static int fail(const struct options *options, const char *path, const struct error *error)
{
    struct error placed = *error;
    setting_place(options, &placed);
    struct error const setting = placed;
    if (options->operand_count > 1 && strncmp(setting.where, "--", 2) == 0)
        (void)snprintf(placed.where, sizeof placed.where, "%.80s: %.100s", path, setting.where);
    return command_fail(path, &placed);
}

static int check(const struct options *options)
{
    static struct session_source source;
    int exit_status = EXIT_DONE;
    for (uint32_t i = 0; i < options->operand_count; i++) {
        struct error error = {0};
        struct session session = {0};
        struct strbuf text = {.columns = report_columns(1)};
        enum status status = session_source_read(options, options->operand[i], &source, &error);
        if (status == STATUS_OK) status = session_build(&session, &source, SESSION_PROGRAM, &error);
        strbuf_add(&text, "%s: ok\n", options->operand[i]);
        if (status == STATUS_OK) status = output_print(&text, false, &error);
        if (status != STATUS_OK) exit_status = fail(options, options->operand[i], &error);
        strbuf_free(&text);
        session_close(&session);
        session_source_close(&source);
    }
    return exit_status;
}

const struct command command_check = {
    .name = "check",
    .usage = "podsim check FILE... [--set /pointer=value]...",
    .summary = "checks the form of scenario files",
    .help = "Reads each file and builds its machine, mesh and program, but runs nothing. Prints a\n"
            "line for each file: `FILE: ok`, or what is wrong and where. `podsim run` checks\n"
            "whether a scenario fits the memory.\n"
            "\n"
            "  podsim check scenarios/train/*.json\n",
    .operands_min = 1,
    .operands_max = OPTIONS_GIVEN_MAX,
    .options = check_options,
    .run = check,
};
