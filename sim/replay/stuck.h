/*
 * stuck.h: a run whose events have ended before all ranks have.
 */
#ifndef SIM_REPLAY_STUCK_H
#define SIM_REPLAY_STUCK_H

#include "sim/base/status.h"

struct arena;
struct replay;

/* Every rank has to come to its end; the first that did not is named, with what it waits for. */
enum status stuck_check(struct arena *arena, struct replay *replay, struct error *reterr);

#endif
