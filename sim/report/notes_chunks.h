/*
 * notes_chunks.h: why collectives of tp are exposed although collective matmul overlaps them chunk
 * by chunk.
 */
#ifndef SIM_REPORT_NOTES_CHUNKS_H
#define SIM_REPORT_NOTES_CHUNKS_H

#include "sim/report/notes.h"

/* For a step with tp and collective matmul, whose tp collectives are exposed for `exposed_s`.
 * `overridden`: a slow chip or link, which has its own note, is why they take long. */
void notes_chunks_add(struct arena *arena, const struct report_input *input,
                      const struct analysis *analysis, double exposed_s, bool overridden,
                      struct notes *notes);

#endif
