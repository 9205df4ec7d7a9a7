/*
 * run_step.h: a run's own figures: how long its step takes, what bounds it, its shares, and what
 * was simulated. A figure is one row of run_step.c, for its line and for its member of the JSON.
 */
#ifndef SIM_REPORT_RUN_STEP_H
#define SIM_REPORT_RUN_STEP_H

#include <stdbool.h>

#include "sim/report/analysis.h"

struct json_writer;
struct strbuf;

/* The step, its rates and its period; its shares; the chips and events that it took. */
void run_step_write(const struct report_input *input, const struct analysis *analysis, bool colour,
                    struct strbuf *text);
void run_step_write_shares(const struct report_input *input, const struct analysis *analysis,
                           bool colour, struct strbuf *text);
void run_step_write_fold(const struct report_input *input, const struct analysis *analysis,
                         struct strbuf *text);

/* The first members of a result; "breakdown"; "reported_rank". */
void run_step_put(const struct report_input *input, const struct analysis *analysis,
                  struct json_writer *json);
void run_step_put_shares(const struct report_input *input, const struct analysis *analysis,
                         struct json_writer *json);
void run_step_put_rank(const struct report_input *input, const struct analysis *analysis,
                       struct json_writer *json);

#endif
