/*
 * notes_kernels.h: what of a step has no measured kernels: all of it, where the chip has none of
 * its preset's stack, or the ops that no table has; and clocks that a step does not have.
 */
#ifndef SIM_REPORT_NOTES_KERNELS_H
#define SIM_REPORT_NOTES_KERNELS_H

#include "sim/report/notes.h"

/* That the preset's stack has no tables of the chip. */
void notes_preset_build(struct arena *arena, const struct report_input *input, struct notes *notes);

/* That a clock of products in fp8 changes nothing, and that a stack has no clock of training. */
void notes_clocks_build(struct arena *arena, const struct report_input *input, struct notes *notes);

/* Of a single step; ops that no table of the machine's stack has are named where they take long. */
void notes_kernels_build(struct arena *arena, const struct report_input *input,
                         const struct analysis *analysis, struct notes *notes);

#endif
