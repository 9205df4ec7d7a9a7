/*
 * roofline_flop.h: the FLOP of a step over the machine: useful ones, and those that are executed
 * besides. Internal to sim/roofline.
 */
#ifndef SIM_ROOFLINE_ROOFLINE_FLOP_H
#define SIM_ROOFLINE_ROOFLINE_FLOP_H

#include "sim/roofline/roofline.h"

/* Fills the FLOP of a roofline that has its rates, from what is counted of one chip. */
void roofline_flop(const struct workload_plan *plan, const struct machine *machine,
                   const struct workload_counts *counts, struct roofline *roofline);

#endif
