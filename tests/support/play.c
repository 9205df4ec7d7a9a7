#include "tests/support/play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/strbuf.h"
#include "sim/measure/choices.h"
#include "sim/report/result.h"
#include "tests/support/case.h"

static const struct play_options defaults = {.engine = "fast"};

enum status play_stages(struct play *play, const struct play_options *options, struct error *reterr)
{
    struct scenario *scenario = &play->scenario;
    static const uint32_t shown[] = {0};
    STATUS_TRY(machine_build(play->arena, &scenario->machine, &play->machine, reterr));
    STATUS_TRY(mesh_build(&scenario->mesh, &play->machine, &play->mesh, reterr));
    inference_stages_set(&scenario->workload, play->mesh.axis[MESH_PP].size);
    struct choices_args const choices = {
        .machine = &play->machine,
        .protocols =
            workload_protocols(&scenario->workload, &play->machine.chip) == WORKLOAD_PROTOCOLS_NCCL,
        .all_reduce = scenario->workload.software.all_reduce,
    };
    STATUS_TRY(
        choices_create(play->arena, &choices, &scenario->workload.inference.chooser, reterr));
    STATUS_TRY(workload_lower(play->arena, &scenario->workload, &play->machine, &play->mesh,
                              &play->program, reterr));
    STATUS_TRY(roofline_train_step(&scenario->workload, &play->machine, &play->mesh,
                                   &play->roofline, reterr));
    if (options->lower_only) return STATUS_OK;
    STATUS_TRY(fold_build(play->arena, &play->machine, &play->program, options->full, &play->fold,
                          reterr));
    struct replay_options const replay = {
        .engine = options->engine != NULL ? options->engine : "fast",
        .arbitration = scenario->run.arbitration,
        .segment_bytes = options->segment_bytes,
        .shown_chips = options->shown != NULL ? options->shown : shown,
        .shown_count = options->shown != NULL ? options->shown_count : 1,
        .record = options->record,
        .every_layer = options->every_layer,
        .windows = options->windows,
        .short_stretches = options->short_stretches,
        .every_message = options->every_message,
        .count_waits = options->count_waits,
        .steps_max = options->steps_max};
    return replay_run(play->arena, &replay, &play->machine, &play->program, &play->fold,
                      &play->trace, reterr);
}

enum status play_try(struct play *play, const char *text, const struct play_options *options,
                     struct error *reterr)
{
    memset(play, 0, sizeof *play);
    if (options == NULL) options = &defaults;
    play->arena = arena_create(options->memory_bytes);
    STATUS_TRY(scenario_read_text(play->arena, "test.json", text, strlen(text), options->settings,
                                  options->setting_count, &play->scenario, reterr));
    if (options->schedule != NULL) play->scenario.workload.stages.given = options->schedule;
    return play_stages(play, options, reterr);
}

void play_run(struct play *play, const char *text, const struct play_options *options)
{
    struct error error = {0};
    if (play_try(play, text, options, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
}

void play_run_file(struct play *play, const char *path, const struct play_options *options)
{
    struct error error = {0};
    memset(play, 0, sizeof *play);
    if (options == NULL) options = &defaults;
    play->arena = arena_create(0);
    if (scenario_read(play->arena, path, options->settings, options->setting_count, &play->scenario,
                      &error) != STATUS_OK ||
        play_stages(play, options, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
}

void play_close(struct play *play)
{
    arena_destroy(play->arena);
    play->arena = NULL;
}

struct report_input play_report(const struct play *play)
{
    struct report_input input = {.title = "",
                                 .question = "",
                                 .machine = &play->machine,
                                 .mesh = &play->mesh,
                                 .workload = &play->scenario.workload,
                                 .program = &play->program,
                                 .trace = &play->trace,
                                 .roofline = &play->roofline};
    for (uint32_t axis = 0; axis < play->fold.axis_count; axis++)
        input.fold[axis] = (struct report_fold){play->fold.period[axis], play->fold.reason[axis]};
    return input;
}

bool play_result(const char *text, const struct play_options *options, struct strbuf *ret_result,
                 struct trace *ret_trace)
{
    struct error error = {.status = STATUS_OK};
    struct play play;
    enum status status = play_try(&play, text, options, &error);
    if (status == STATUS_OK) {
        struct report_input const input = play_report(&play);
        case_ok(result_write(play.arena, &input, ret_result, &case_error));
        *ret_trace = play.trace;
    } else if (status != STATUS_INVALID) {
        fail_msg("%s: %s\nin %s", error.where, error.message, text);
    }
    play_close(&play);
    return status == STATUS_OK;
}
