/*
 * report_roofline.h: the roofline of a scenario on one screen: each resource's time and share, and
 * the book's rules with the scenario's numbers.
 */
#ifndef SIM_REPORT_REPORT_ROOFLINE_H
#define SIM_REPORT_REPORT_ROOFLINE_H

#include <stdbool.h>

#include "sim/report/report.h"

struct json_writer;
struct strbuf;

/* `input` needs neither program nor trace. */
void report_roofline_write(const struct report_input *input, bool colour, struct strbuf *text);

/* The line of a run's summary. */
void report_roofline_write_bounds(const struct report_input *input, double step_s,
                                  struct strbuf *text);

/* The member "roofline". */
void report_roofline_put(const struct report_input *input, struct json_writer *json);

#endif
