/*
 * limits.h: what a step may not be: in a number format that the chip does not multiply, or
 * so large that the integers it is counted in would wrap. Internal to sim/step.
 */
#ifndef SIM_STEP_LIMITS_H
#define SIM_STEP_LIMITS_H

#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/graph/derive.h"
#include "sim/step/ranks.h"

/* The chip must have a rate for matmuls of linear layers and for all others. */
enum status limits_format_check(const struct ranks *ranks, struct error *reterr);

/* The model's parameters, and what experts' ranks exchange: below 2^62. Once all sizes of `ranks`
 * are known. Errors: STATUS_LIMIT at "/workload". */
enum status limits_sizes_check(const struct ranks *ranks, struct error *reterr);

/* Below 2^62: what ops of a part of the model compute, which a rank has `count` times at most; and
 * `bytes`, to which the call adds what the parts take. Parts of all microbatches add up, as an
 * account of memory counts all that is ever taken. The check comes before elements of the part's
 * graph are counted. Errors: STATUS_LIMIT at "/workload". */
enum status limits_part_check(const struct ranks *ranks, const struct graph_derived *derived,
                              uint64_t count, units_wide *bytes, struct error *reterr);

#endif
