/*
 * choices.h: what `auto` takes for the collectives of a step, as for one of `podsim collective`
 * (autotune.h). Each request of a kind, a group and a size is decided once, however many layers
 * have it.
 */
#ifndef SIM_MEASURE_CHOICES_H
#define SIM_MEASURE_CHOICES_H

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/collective/all_reduce_kernels.h"
#include "sim/collective/chooser.h"
#include "sim/machine/machine.h"

struct arena;

struct choices_args {
    const struct machine *machine;
    bool protocols; /* NCCL's compete, on GPUs in another profile than `ideal`. */
    enum all_reduce_kernels all_reduce; /* Where protocols compete. */
};

/* Choices and their names live as long as the arena and the machine. */
enum status choices_create(struct arena *arena, const struct choices_args *args,
                           struct plan_chooser *ret_chooser, struct error *reterr);

#endif
