/*
 * roofline_bounds.h: the two bounds of a step, out of what its parts take.
 */
#ifndef SIM_ROOFLINE_ROOFLINE_BOUNDS_H
#define SIM_ROOFLINE_ROOFLINE_BOUNDS_H

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/roofline/gather_form.h"
#include "sim/roofline/roofline.h"
#include "sim/step/workload.h"

/* Fills `lower_s`, what it is bound by, and `upper_s`. */
void roofline_bound(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline);

/* Of the collectives of a mean chip. */
struct chip_work {
    double hbm_s;
    double vector_s;
};

/* `least`: of any algorithm; else at most, where all that comes and goes passes through memory. */
struct chip_work roofline_chip_work(const struct workload_plan *plan, const struct machine *machine,
                                    const struct workload_counts *counts, bool least);

/* What all groups have, those of the mesh axes last. */
void roofline_traffics(const struct workload_counts *counts,
                       const struct workload_traffic *ret_traffic[ROOFLINE_GROUPS_MAX]);

/* How a group's gathers go: by an algorithm of its own, or the plan's. */
struct gather_form roofline_gather_form(const struct workload_plan *plan,
                                        const struct machine *machine,
                                        const struct roofline_group *group);

/* Of the ops of a rank, one after the other: the profile's or a graph's, which is in the time of
 * measured kernels. */
double roofline_overheads_s(const struct machine *machine, const struct workload_counts *counts);

/* All collectives of a group one after another, bytes and hops, on the slowest links. */
double roofline_group_slow_s(const struct workload_plan *plan, const struct machine *machine,
                             const struct roofline_group *group);

#endif
