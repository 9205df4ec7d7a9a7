/*
 * limits.h: what a training step may not be: in a number format that the chip does not multiply, or
 * so large that the integers it is counted in would wrap. Internal to sim/step.
 */
#ifndef SIM_STEP_LIMITS_H
#define SIM_STEP_LIMITS_H

#include "sim/base/status.h"
#include "sim/step/ranks.h"

/* The chip must have a rate for matmuls of linear layers and for all others. */
enum status limits_format_check(const struct ranks *ranks, struct error *reterr);

/* FLOP and bytes of a part of the model, and what a chip's ops take in all: below 2^62. Once all
 * sizes of `ranks` are known, and before graphs of them are counted. Errors: STATUS_LIMIT at
 * "/workload". */
enum status limits_sizes_check(const struct ranks *ranks, struct error *reterr);

#endif
