/*
 * link_bound.h: how long the links of a step are busy at least, whatever algorithms play its
 * collectives. It asks the machine alone: which links a cut severs, what they carry, whether the
 * switches behind them can copy and add, and by which links the machine takes a message from one
 * member of a group to another.
 *
 * A cut severs some machine axes, so that each group lies in boxes. What boxes have for each other
 * crosses: of a gathered array each box needs what it has not; the sum of arrays takes a message
 * less than there are boxes, and as many again to tell it to all. Where a switch copies and adds,
 * a box only has to tell its part and to hear the rest once: V for an AllReduce of V, instead of
 * 2·V·(n-1)/n. V also bounds the box at the corner of a grid that does not close.
 *
 * Sources: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
 * workstations, JPDC 69 (2009), section 3 (2·(n-1)/n); Chan et al., Collective communication:
 * theory, practice, and experience (2007), section 4 (lower bounds of each kind); Klenk et al., An
 * In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives (ISCA 2020),
 * section 4 (V); the book, chapter 3 (bisection of an AllToAll).
 */
#ifndef SIM_ROOFLINE_LINK_BOUND_H
#define SIM_ROOFLINE_LINK_BOUND_H

#include <stdbool.h>

#include "sim/machine/machine.h"
#include "sim/step/counts.h"

/* By machine axis. Where arrays may go over one axis or another, the axes share them so that the
 * busiest is busy as short as possible; the largest of these is a bound of the step. */
void link_bound(const struct machine *machine, const struct workload_traffic *const *traffic,
                uint32_t count, double ret_busy_s[MACHINE_AXES_MAX]);

/* Whether switches that serve a group can copy or add. */
bool link_bound_copies(const struct machine *machine, const struct group *group);

#endif
