/*
 * rates.h: what a step achieves: tokens a second, and the share of the chips' FLOP/s.
 */
#ifndef SIM_REPORT_RATES_H
#define SIM_REPORT_RATES_H

#include "sim/report/analysis.h"

/* Of the step, which is longer than 0, and from step to step where that was asked for. */
void rates_fill(const struct report_input *input, struct analysis *analysis);

#endif
