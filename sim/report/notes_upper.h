/*
 * notes_upper.h: why a step takes longer than what nothing overlaps should take at most.
 */
#ifndef SIM_REPORT_NOTES_UPPER_H
#define SIM_REPORT_NOTES_UPPER_H

#include "sim/report/notes.h"

/* Nothing where the step is within its upper bound. */
void notes_upper_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes);

#endif
