/*
 * update.h: what the optimizer, Adam, asks of a chip for an update of weights. Internal to
 * sim/step.
 */
#ifndef SIM_STEP_UPDATE_H
#define SIM_STEP_UPDATE_H

#include <stdint.h>

#include "sim/base/work.h"

struct ranks;

/* Bytes of the two moments of `elements` weights. */
uint64_t update_moments_bytes(const struct ranks *ranks, uint64_t elements);

/* The update of `elements` weights: gradient, moments and weights are read, and all of them but the
 * gradient written. The machine's stack of software says of which kernels the update is made, and
 * what it does with all `gradients` of the rank. */
struct work update_work(const struct ranks *ranks, uint64_t elements, uint64_t gradients);

/* The norm of `elements` gradients, where updates clip them (ranks_clips()). */
struct work update_norm_work(const struct ranks *ranks, uint64_t elements);

#endif
