/*
 * rate_range.h: the slowest and fastest chips and links, which overrides make, for bounds from both
 * sides.
 */
#ifndef SIM_ROOFLINE_RATE_RANGE_H
#define SIM_ROOFLINE_RATE_RANGE_H

#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"

/* The shares of the rates of the chips that compute and that load slowest. */
void rate_range_slowest_chip(const struct machine *machine, double *ret_math, double *ret_hbm);

/* The share of the rate of the chip that loads fastest. */
double rate_range_fastest_hbm(const struct machine *machine);

/* What the mean chip's work takes at least. Chips that hold the same layers have the same work, so
 * the slowest of these chips sets the pace: without stages, the slowest chip of all. Stages differ,
 * and slow ones may have fewer layers: then all work is divided by the sum of all rates. */
void rate_range_work_shares(const struct machine *machine, const struct mesh *mesh,
                            double *ret_math, double *ret_hbm);

/* Bytes per second of one link of an axis in one direction: the slowest link, the fastest link, and
 * the mean of all links. If a level serves the axis: what a chip has of the level. */
double rate_range_slowest_link(const struct machine *machine, uint32_t axis);
double rate_range_fastest_link(const struct machine *machine, uint32_t axis);
double rate_range_mean_link(const struct machine *machine, uint32_t axis);

/* The longest hop of an axis. */
int64_t rate_range_longest_hop_ps(const struct machine *machine, uint32_t axis);

#endif
