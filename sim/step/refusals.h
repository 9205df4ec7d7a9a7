/*
 * refusals.h: what a step refuses by a combination of its model, mesh and plan, rather than by what
 * does not divide (ranks.c) or is too large (limits.h). Internal to sim/step.
 */
#ifndef SIM_STEP_REFUSALS_H
#define SIM_STEP_REFUSALS_H

#include "sim/base/status.h"
#include "sim/step/ranks.h"

#define REFUSE(holds, status, where, ...)                                                          \
    if (holds) return error_set(reterr, STATUS_##status, where, __VA_ARGS__)

/* A name may be a path of any length; its beginning tells which it is. */
#define NAME "%.200s"

/* Once ranks are known; and once more when it is known how many share a sequence. */
enum status refusals_check(const struct ranks *ranks, struct error *reterr);

/* Refuses kernels of an engine or a framework that nothing runs here (refusals_software.c). */
enum status refusals_software(const struct ranks *ranks, struct error *reterr);

/* Refuses recipes of fp8 that no software runs on the chip (casts.c). */
enum status refusals_casts(const struct ranks *ranks, struct error *reterr);
#endif
