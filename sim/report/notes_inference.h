/* notes_inference.h: why a step of inference is not what the book's formula says. */
#ifndef SIM_REPORT_NOTES_INFERENCE_H
#define SIM_REPORT_NOTES_INFERENCE_H

#include "sim/report/notes.h"

void notes_inference_build(struct arena *arena, const struct report_input *input,
                           const struct analysis *analysis, struct notes *notes);

/* What a generation's times are made of. */
void notes_generation_build(struct arena *arena, const struct report_input *input,
                            struct notes *notes);

#endif
