/*
 * result.h: the result of a run as JSON. Keys, units and meanings: docs/results.md.
 */
#ifndef SIM_REPORT_RESULT_H
#define SIM_REPORT_RESULT_H

#include "sim/base/status.h"
#include "sim/report/report.h"

struct arena;
struct least_memory;
struct strbuf;

/* Appends the document to `text`. */
enum status result_write(struct arena *arena, const struct report_input *input, struct strbuf *text,
                         struct error *reterr);

/* What is known of a step that is not simulated because its memory cannot fit. */
void result_write_unfit(const struct report_input *input, const struct least_memory *least,
                        struct strbuf *text);

/* The roofline alone, for `podsim roofline --json`. */
void result_write_roofline(const struct report_input *input, struct strbuf *text);

#endif
