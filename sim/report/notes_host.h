/*
 * notes_host.h: what copies to and from the host cost the step.
 */
#ifndef SIM_REPORT_NOTES_HOST_H
#define SIM_REPORT_NOTES_HOST_H

#include "sim/report/notes.h"

/* Nothing where nothing is offloaded. */
void notes_host_build(struct arena *arena, const struct report_input *input,
                      const struct analysis *analysis, struct notes *notes);

#endif
