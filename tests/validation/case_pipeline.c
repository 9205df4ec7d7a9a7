/*
 * Evaluators of pipelines: a schedule played with given times (sim/schedule/schedule_play.h), and
 * a step over stages as it is played.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_play.h"
#include "tests/validation/case_row.h"

enum { TICKS = 1000 };

static int64_t ticks_of(const struct case_row *row, const char *key, double otherwise)
{
    return (int64_t)(row_number_or(row, key, otherwise) * TICKS);
}

/* "schedule", "stages", "microbatches" with the times F, I, W and hop of a rank's whole share. */
static struct case_value schedule(const struct case_row *row)
{
    const struct schedule_form *form = NULL;
    struct schedule built;
    struct schedule_played played;
    struct schedule_request request = {.rank_count = (uint32_t)row_count(row, "stages"),
                                       .microbatch_count = (uint32_t)row_count(row, "microbatches"),
                                       .times = {.forward = ticks_of(row, "F", 1),
                                                 .input = ticks_of(row, "I", 1),
                                                 .weight = ticks_of(row, "W", 1),
                                                 .hop = ticks_of(row, "hop", 0)}};
    struct error error = {0};
    row_check(row,
              schedule_form_parse(row_text(row, "schedule"), "/schedule", &form,
                                  &request.chunk_count, &error),
              &error);
    row_check(row, schedule_build(row->arena, form, &request, "/schedule", &built, &error), &error);
    row_simulates();
    row_check(row,
              schedule_play(row->arena, &built, &request.times, NULL, "/schedule", &played, &error),
              &error);
    const char *what = row_text(row, "what");
    if (strcmp(what, "makespan") == 0) return value_number((double)played.makespan / TICKS);
    if (strcmp(what, "bubble_share") == 0)
        return value_number((double)played.bubble_makespan / (double)played.makespan);
    row_fail(row, "a schedule has no %s", what);
}

const struct case_evaluator case_pipeline[] = {{"schedule", schedule}, {NULL, NULL}};
