/*
 * notes_replicas.h: what it costs the step that several ranks hold the same weights: their
 * gradients are reduced, and what each rank has updated a part of is gathered.
 */
#ifndef SIM_REPORT_NOTES_REPLICAS_H
#define SIM_REPORT_NOTES_REPLICAS_H

#include "sim/report/notes.h"

/* A note for each group of replicas, called as the rows of its collectives are: "dp,ep" of what all
 * ranks hold, "dp" of the experts that ep splits. Minor notes are those of two groups that are
 * hidden; others come without `minor`. */
void notes_replicas_build(struct arena *arena, const struct report_input *input,
                          const struct analysis *analysis, bool minor, struct notes *notes);

#endif
