/*
 * pipeline_run_times.h: what passes of a schedule took when it was run: the F, I, W and O of its
 * formula.
 */
#ifndef TOOLS_PODSIM_PIPELINE_PIPELINE_RUN_TIMES_H
#define TOOLS_PODSIM_PIPELINE_PIPELINE_RUN_TIMES_H

#include "sim/schedule/schedule.h"
#include "sim/trace/trace.h"

struct arena;

/* Of a chunk, a mean over stages, each of which counts once however many of its passes are of a
 * kind: pairs and split passes are not spread evenly over the stages. `roles` are of the schedule's
 * ranks, with the times of their passes.
 *
 * A pair is measured whole, whether its passes ran at once or one after the other; F, I
 * and W come from the passes outside of pairs. Where a stage splits no backward pass, it is
 * divided as others do, and where no stage does, in halves. */
enum status pipeline_run_times_measure(struct arena *arena, const struct schedule *schedule,
                                       const struct trace_role *roles,
                                       struct schedule_times *ret_times, struct error *reterr);

#endif
