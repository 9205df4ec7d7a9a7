/*
 * algorithms.h: the algorithms that every collective of a step can go by, for refusals of one that
 * cannot. Internal to sim/step.
 */
#ifndef SIM_STEP_ALGORITHMS_H
#define SIM_STEP_ALGORITHMS_H

#include "sim/base/status.h"
#include "sim/program/program.h"

/* Refuses an algorithm at /run/algorithm: `refused` is the collective that cannot go by it, NULL
 * where nobody has such an algorithm. `automatic` is the step lowered with "auto".
 * STATUS_NOT_FOUND, STATUS_UNSUPPORTED. */
enum status algorithms_refuse(const struct program *automatic, const struct algorithm *asked,
                              const struct plan_request *refused, struct error *reterr);

#endif
