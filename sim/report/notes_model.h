/*
 * notes_model.h: what of a model makes its step unlike others: windows, experts, further tokens.
 */
#ifndef SIM_REPORT_NOTES_MODEL_H
#define SIM_REPORT_NOTES_MODEL_H

#include "sim/report/notes.h"

/* Nothing of what it does not have. */
enum status notes_model_build(struct arena *arena, const struct report_input *input,
                              struct notes *notes, struct error *reterr);

#endif
