/*
 * all_to_all_bound.h: what AllToAlls and permutes of a step take of the links at least, whatever
 * their ways.
 */
#ifndef SIM_ROOFLINE_ALL_TO_ALL_BOUND_H
#define SIM_ROOFLINE_ALL_TO_ALL_BOUND_H

#include "sim/machine/machine.h"
#include "sim/step/counts.h"

/* Bytes that a rank sends in all AllToAlls, over all levels. */
double all_to_all_sent_bytes(const struct workload_traffic *traffic);

/* Seconds that the links of a dimension take for an exchange by itself of which every dimension
 * carries `bytes`, the array of the whole group: through switches what a member sends along it, on
 * the grid what crosses the tightest cut of all dimensions of the grid together. */
double all_to_all_dimension_s(const struct machine *machine, const struct group *group,
                              uint32_t dimension, double bytes);

/* All AllToAlls and permutes, if they had the group's links for themselves: the bytes that cross a
 * cut by what crosses it (collective_bound.h). */
double all_to_all_s(const struct machine *machine, const struct workload_traffic *traffic);

/* Seconds of AllToAlls and permutes as plans have them, from above: where lines of the grid are
 * among its dimensions, bundles are stored and forwarded from end to end, along one dimension after
 * the other; where links of an axis differ, its slowest one carries as much as each of the others.
 */
double all_to_all_slow_s(const struct machine *machine, const struct workload_traffic *traffic);

#endif
