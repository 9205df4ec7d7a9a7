/*
 * notes_layout.h: how a step lies on its ranks, where that is not what a reader would take for
 * granted: the order of mesh axes, a skew that changes nothing, and what is padded.
 */
#ifndef SIM_REPORT_NOTES_LAYOUT_H
#define SIM_REPORT_NOTES_LAYOUT_H

#include "sim/report/notes.h"

/* What is padded alone. */
void notes_padding_build(struct arena *arena, const struct report_input *input,
                         struct notes *notes);

void notes_layout_build(struct arena *arena, const struct report_input *input, struct notes *notes);

/* Keys that say what ranks of tp do, where there are none. */
void notes_unused_build(struct arena *arena, const struct report_input *input, struct notes *notes);

#endif
