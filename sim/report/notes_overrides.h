/*
 * notes_overrides.h: notes on overridden links and chips, where the step waits for them.
 */
#ifndef SIM_REPORT_NOTES_OVERRIDES_H
#define SIM_REPORT_NOTES_OVERRIDES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/report/analysis.h"
#include "sim/report/notes.h"

/* What the other notes must not explain otherwise. */
struct notes_overrides {
    uint32_t axis_bits; /* Machine axes whose busiest link is a slow one. */
    bool chip;          /* A chip is slower than the others. */
};

/* The override of the busiest link of a port, if it is slower than the chip's links; or NULL. */
const struct machine_link_override *notes_overrides_slow_link(const struct report_input *input,
                                                              uint32_t port);

struct notes_overrides notes_overrides_build(struct arena *arena, const struct report_input *input,
                                             const struct analysis *analysis, struct notes *notes);

#endif
