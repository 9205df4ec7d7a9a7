/*
 * results.h: what a run has found, once it has ended, as a trace.
 */
#ifndef SIM_REPLAY_RESULTS_H
#define SIM_REPLAY_RESULTS_H

#include "sim/base/status.h"

struct arena;
struct replay;
struct trace;

enum status results_take(struct arena *arena, struct replay *replay, struct trace *ret_trace,
                         struct error *reterr);

#endif
