/*
 * notes_parts.h: what lies between the roofline's lower bound and the step, as a sum.
 */
#ifndef SIM_REPORT_NOTES_PARTS_H
#define SIM_REPORT_NOTES_PARTS_H

#include "sim/report/notes.h"

/* Fills notes->part: longest first, adding up to step - lower. */
void notes_parts_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *facts, struct notes *notes);

#endif
