/*
 * compose_build.h: what the composition of a plan has in common, for compose*.c alone.
 */
#ifndef SIM_COLLECTIVE_COMPOSE_BUILD_H
#define SIM_COLLECTIVE_COMPOSE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/choice.h"
#include "sim/collective/pieces.h"
#include "sim/collective/plan.h"
#include "sim/collective/portions.h"
#include "sim/collective/shares.h"

/* What is being built, and from what. */
struct build {
    struct arena *arena;
    const struct plan_request *request;
    const char *where;
    const struct choice *choice;
    struct plan *plan;
    struct error *reterr;
    struct shares shares; /* Over the axes of the grid; one share where there is none. */
    struct pieces pieces;
    struct portions portions; /* Of pieces, between two levels. */
};

static inline bool build_is_ragged(const struct build *build)
{
    return build->request->ragged.expert_count > 0;
}

/* compose_cuts.c: how the array is cut: into shares, pieces, chunks for other ops, and portions. */
enum status cuts_set(struct build *build);

#endif
