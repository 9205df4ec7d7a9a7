/*
 * result.h: the result of a run as JSON. Keys, units and meanings: docs/results.md.
 */
#ifndef SIM_REPORT_RESULT_H
#define SIM_REPORT_RESULT_H

#include "sim/base/status.h"
#include "sim/report/report.h"

struct arena;
struct text;

/* Appends the document to `text`. */
enum status result_write(struct arena *arena, const struct report_input *input, struct text *text,
                         struct error *reterr);

/* The roofline alone, for `podsim roofline --json`. */
void result_write_roofline(const struct report_input *input, struct text *text);

#endif
