/*
 * report_roofline.h: the roofline of a scenario on one screen: each resource's time and share, and
 * the book's rules with the scenario's numbers.
 */
#ifndef SIM_REPORT_REPORT_ROOFLINE_H
#define SIM_REPORT_REPORT_ROOFLINE_H

#include <stdbool.h>

#include "sim/report/report.h"

struct strbuf;

/* `input` needs neither program nor trace. */
void report_roofline_write(const struct report_input *input, bool colour, struct strbuf *text);

#endif
