/*
 * generate.h: the steps of a generation, one after the other: the prefill by itself, and the last
 * step of each page.
 */
#ifndef TOOLS_PODSIM_COMMON_GENERATE_H
#define TOOLS_PODSIM_COMMON_GENERATE_H

#include "sim/report/generation.h"
#include "tools/podsim/common/session.h"

struct worker;

/* The session was replayed; its digest and its counts of work are of all steps behind this.
 * `every_layer` as struct replay_options has it. */
enum status generate_play(struct session *session, const struct session_source *source,
                          struct worker *worker, bool every_layer,
                          struct generation *ret_generation, struct error *reterr);

#endif
