/*
 * notes_odd.h: notes on links and chips that are unlike the others, where the step waits for them.
 */
#ifndef SIM_REPORT_NOTES_ODD_H
#define SIM_REPORT_NOTES_ODD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/report/facts.h"
#include "sim/report/notes.h"

/* What the other notes must not explain otherwise. */
struct notes_odd {
    uint32_t axis_bits; /* Machine axes whose busiest link is a slow one. */
    bool chip;          /* A chip is slower than the others. */
};

struct notes_odd notes_odd_build(struct arena *arena, const struct report_input *input,
                                 const struct facts *facts, struct notes *notes);

#endif
