/*
 * schedules_trace.h: a schedule that was run with given times, as a timeline: a track a rank.
 */
#ifndef TOOLS_PODSIM_PIPELINE_SCHEDULES_TRACE_H
#define TOOLS_PODSIM_PIPELINE_SCHEDULES_TRACE_H

#include "tools/podsim/pipeline/schedules.h"

/* A unit of time is a millisecond; what falls between nanoseconds is rounded down. */
enum status schedules_write_trace(struct arena *arena, const struct options *options,
                                  const struct schedules_row *row, struct strbuf *text,
                                  struct error *reterr);

#endif
