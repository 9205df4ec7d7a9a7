/*
 * level_demand.h: what a plan asks of one of its levels, from the way its primitives go there; what
 * the pieces of the plan are chosen by.
 */
#ifndef SIM_COLLECTIVE_LEVEL_DEMAND_H
#define SIM_COLLECTIVE_LEVEL_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/choice.h"
#include "sim/collective/pieces.h"
#include "sim/collective/plan.h"

/* Adds a dimension to a level: one that switches serve is a level of its own. `cost`: of a byte on
 * an axis of the grid; 0 elsewhere. The level's bytes are left alone. */
void level_demand_add(const struct plan_request *request, const struct choice *choice,
                      uint32_t dimension, uint32_t cost, struct pieces_level *level);

/* Whether whole arrays go up a tree or down, storey by storey. NULL: they do not. */
bool level_relays_whole(const struct primitive *primitive, uint32_t size);

#endif
