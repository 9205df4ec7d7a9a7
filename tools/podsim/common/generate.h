/*
 * generate.h: the steps of a generation, one after the other: the prefill by itself, and the last
 * step of each page.
 */
#ifndef TOOLS_PODSIM_COMMON_GENERATE_H
#define TOOLS_PODSIM_COMMON_GENERATE_H

#include "sim/report/generation.h"
#include "tools/podsim/common/session.h"

/* The session was replayed; its digest and its counts of work are of all steps behind this. Of the
 * options `watch` sees the share of all steps and the events of all parts, between parts too; and
 * the rest is each part's. */
enum status generate_play(struct session *session, const struct session_source *source,
                          const struct replay_options *options, struct generation *ret_generation,
                          struct error *reterr);

#endif
