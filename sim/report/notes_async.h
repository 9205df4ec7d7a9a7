/*
 * notes_async.h: what start and end of asynchronous collectives take from compute.
 */
#ifndef SIM_REPORT_NOTES_ASYNC_H
#define SIM_REPORT_NOTES_ASYNC_H

#include "sim/report/notes.h"

/* Nothing where they take a tenth of the step or less. */
void notes_async_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes);

#endif
