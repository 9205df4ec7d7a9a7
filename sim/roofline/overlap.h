/*
 * overlap.h: which tp collectives the matmuls beside them can hide.
 */
#ifndef SIM_ROOFLINE_OVERLAP_H
#define SIM_ROOFLINE_OVERLAP_H

#include "sim/roofline/roofline.h"

/* Fills beside, tp_excess_s and critical_s from the rest of the roofline. */
void overlap_evaluate(const struct workload_plan *plan, const struct machine *machine,
                      const struct mesh *mesh, struct roofline *roofline);

#endif
