/*
 * overlap.h: which tp collectives are hidden by the matmuls that run meanwhile.
 */
#ifndef SIM_ROOFLINE_OVERLAP_H
#define SIM_ROOFLINE_OVERLAP_H

#include "sim/roofline/roofline.h"

/* Fills overlap, tp_excess_s and critical_s from the rest of the roofline. */
void overlap_evaluate(const struct workload_plan *plan, const struct machine *machine,
                      const struct mesh *mesh, struct roofline *roofline);

#endif
