/*
 * stage_bound.h: how long messages between pipeline stages take at least, in closed form: bytes
 * that two neighbours exchange, or that a rank sends, over the rate of what is between them,
 * whatever the order of passes; and how long if no two are sent at once.
 */
#ifndef SIM_ROOFLINE_STAGE_BOUND_H
#define SIM_ROOFLINE_STAGE_BOUND_H

#include "sim/machine/machine.h"
#include "sim/roofline/roofline.h"
#include "sim/step/counts.h"

/* Fills `stages_s`; the axis that they lie on is busy for at least so long. */
void stage_bound_evaluate(const struct machine *machine, const struct workload_counts *counts,
                          struct roofline *roofline);

/* All messages one after another, on the slowest links. */
double stage_bound_slow_s(const struct machine *machine, const struct workload_counts *counts);

#endif
