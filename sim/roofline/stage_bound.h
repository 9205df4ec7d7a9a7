/*
 * stage_bound.h: how long messages between pipeline stages take at least, in closed form: bytes
 * that two neighbours exchange, or that a rank sends, over the rate of what is between them,
 * whatever the order of passes; of two copies of a model also the gradients that their ranks
 * exchange; and how long if no two messages are sent at once.
 */
#ifndef SIM_ROOFLINE_STAGE_BOUND_H
#define SIM_ROOFLINE_STAGE_BOUND_H

#include "sim/machine/machine.h"
#include "sim/roofline/roofline.h"
#include "sim/step/counts.h"

/* Fills `messages_s` and `copies_s` of the stages; the axis that they lie on is busy for at least
 * so long. */
void stage_bound_evaluate(const struct machine *machine, const struct workload_counts *counts,
                          struct roofline *roofline);

/* Of a step of inference, whose stages lie on the ranks of a group: hops of a batch's messages on
 * its way through all of them. */
double stage_bound_hops_s(const struct workload_plan *plan, const struct machine *machine,
                          const struct group *group);

/* All messages one after another, on the slowest links. */
double stage_bound_slow_s(const struct machine *machine, const struct workload_counts *counts);

#endif
