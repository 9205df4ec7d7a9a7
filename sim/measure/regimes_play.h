/*
 * regimes_play.h: the runs of a map. Internal to regimes.
 */
#ifndef SIM_MEASURE_REGIMES_PLAY_H
#define SIM_MEASURE_REGIMES_PLAY_H

#include "sim/measure/regimes.h"

/* Simulates every curve of every group, and what follows from the curves. Algorithms, groups, sizes
 * and the memory of results are there. STATUS_INTERRUPTED keeps the groups that are finished. */
enum status regimes_play(const struct regimes_plan *plan, struct regimes *regimes,
                         struct error *reterr);

/* An algorithm of the map on one of its groups, for one size. */
enum status regimes_choose(struct arena *arena, const struct regimes *regimes,
                           const struct regimes_group *group, uint32_t algorithm,
                           uint64_t size_bytes, const struct measure_row_choice **ret_choice,
                           struct error *reterr);
enum status regimes_plan_build(struct arena *arena, const struct regimes *regimes,
                               const struct regimes_group *group, uint32_t algorithm,
                               uint64_t size_bytes, struct plan *ret_plan, struct error *reterr);
/* The option that named the algorithm. */
const char *regimes_place(const struct regimes *regimes, uint32_t algorithm);

#endif
