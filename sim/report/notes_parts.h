/*
 * notes_parts.h: what lies between the roofline's lower bound and the step, as a sum.
 */
#ifndef SIM_REPORT_NOTES_PARTS_H
#define SIM_REPORT_NOTES_PARTS_H

#include "sim/report/notes.h"

/* Fills notes->part: longest first, adding up to step - lower. */
void notes_parts_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes);

/* Adds a part in the order of lengths. A part without length is left out. */
void notes_part_insert(struct notes *notes, struct notes_part part);
void notes_part_add(struct notes *notes, const char *name, double seconds);
/* Adds the part "less `what`". `seconds` is below 0. */
void notes_part_less(struct arena *arena, struct notes *notes, const char *what, double seconds);

#endif
