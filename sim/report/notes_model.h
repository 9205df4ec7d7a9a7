/*
 * notes_model.h: notes on the parts of a model that most models do not have, as far as they change
 * a step: windows, experts, modules that predict further tokens.
 */
#ifndef SIM_REPORT_NOTES_MODEL_H
#define SIM_REPORT_NOTES_MODEL_H

#include "sim/report/notes.h"

/* Adds a note for each of these parts that the model has. */
enum status notes_model_build(struct arena *arena, const struct report_input *input,
                              struct notes *notes, struct error *reterr);

#endif
