/*
 * plan_permute.h: the plan of a permute: one lane whose message cuts through all links between.
 */
#ifndef SIM_COLLECTIVE_PLAN_PERMUTE_H
#define SIM_COLLECTIVE_PLAN_PERMUTE_H

#include "sim/collective/plan.h"

/* Adds the lane and its item to a plan whose kind, group, size and offset are set. A displacement
 * of nothing gives a plan without items. */
enum status plan_permute_build(struct arena *arena, const char *where, struct plan *plan,
                               struct error *reterr);

#endif
