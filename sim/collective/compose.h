/*
 * compose.h: the items of a plan: chains of the chosen primitives over the levels of a group, one
 * for each cyclic order of the axes of its grid.
 */
#ifndef SIM_COLLECTIVE_COMPOSE_H
#define SIM_COLLECTIVE_COMPOSE_H

#include "sim/collective/choice.h"
#include "sim/collective/plan.h"

struct arena;

/* Adds items and lanes to a plan whose kind, group and size are set, and names its algorithm. */
enum status compose(struct arena *arena, const struct plan_request *request, const char *where,
                    const struct choice *choice, struct plan *plan, struct error *reterr);

#endif
