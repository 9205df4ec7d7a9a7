/*
 * tier_load.h: what all groups together put on the cables of each tier of a level, at least.
 *
 * Groups that share an axis of switches may be bound by different cables: one that stays under a
 * leaf by its cards, one that is strided over leaves by the cables above these. So what they must
 * carry adds up tier by tier, not group by group.
 */
#ifndef SIM_ROOFLINE_TIER_LOAD_H
#define SIM_ROOFLINE_TIER_LOAD_H

#include "sim/collective/algorithm.h"
#include "sim/machine/machine.h"
#include "sim/step/counts.h"
#include "sim/step/workload.h"

/* What a group's collectives are played by: what they name themselves (`own`), or else, of NULL,
 * what the plan says. */
struct algorithm tiers_played(const struct workload_plan *plan, const char *own);

/* Seconds that the cables of an axis' level are busy on average, at the tier where that is longest:
 * bytes that have to cross it, over the rate of all its cables. Of a group over several dimensions
 * no more than what must cross this one. */
double tier_load_busy_s(const struct workload_plan *plan, const struct machine *machine,
                        const struct workload_traffic *const *traffic, uint32_t count,
                        uint32_t axis);

#endif
