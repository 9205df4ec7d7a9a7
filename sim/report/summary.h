/*
 * summary.h: one screen for the terminal: how long the step takes, what bounds it, what is exposed,
 * what it needs, and why it is not the roofline.
 */
#ifndef SIM_REPORT_SUMMARY_H
#define SIM_REPORT_SUMMARY_H

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/report/report.h"

struct arena;
struct strbuf;

/* `colour`: the reader is a terminal that shows it. */
enum status summary_write(struct arena *arena, const struct report_input *input, bool colour,
                          struct strbuf *text, struct error *reterr);

#endif
