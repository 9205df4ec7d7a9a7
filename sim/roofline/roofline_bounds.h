/*
 * roofline_bounds.h: the two bounds of a step, out of what its parts take.
 */
#ifndef SIM_ROOFLINE_ROOFLINE_BOUNDS_H
#define SIM_ROOFLINE_ROOFLINE_BOUNDS_H

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/roofline/roofline.h"
#include "sim/step/workload.h"

/* Fills `lower_s`, what it is bound by, and `upper_s`. */
void roofline_bound(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline);

/* All collectives of a group one after another, bytes and hops, on the slowest links. */
double roofline_group_slow_s(const struct workload_plan *plan, const struct machine *machine,
                             const struct roofline_group *group);

#endif
