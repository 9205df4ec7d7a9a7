/*
 * refusals.h: what a step refuses by a combination of its model, mesh and plan, rather than by what
 * does not divide (ranks.c) or is too large (limits.h). Internal to sim/step.
 */
#ifndef SIM_STEP_REFUSALS_H
#define SIM_STEP_REFUSALS_H

#include "sim/base/status.h"
#include "sim/step/ranks.h"

/* Once ranks are known; and once more when it is known how many share a sequence. */
enum status refusals_check(const struct ranks *ranks, struct error *reterr);

/* Refuses recipes of fp8 that no software runs on the chip (casts.c). */
enum status refusals_casts(const struct ranks *ranks, struct error *reterr);
/* Refuses clipped gradients where no stack has their norm, or updates come before it (casts.c). */
enum status refusals_clips(const struct ranks *ranks, struct error *reterr);

#endif
