/*
 * program_play.h: a role run where nothing but collectives takes time, or nothing at all.
 */
#ifndef SIM_PROGRAM_PROGRAM_PLAY_H
#define SIM_PROGRAM_PROGRAM_PLAY_H

#include <stdbool.h>

#include "sim/program/program.h"

/* One rank, whose collectives take no time and to whom messages have come before it asks, must come
 * to its end. Else an op that can never begin is in `ret_place`. The role is sealed. */
bool program_play_ends(const struct program *program, const struct program_role *role,
                       struct program_place *ret_place);

/* When the last op of a rank ends if only its collectives take time, plan_ps[plan] each, and
 * messages have come before it asks: the longest chain of them. Those that run side by side count
 * once, and of one that goes chunk by chunk no chunk but the last. The role is sealed. Errors:
 * STATUS_NO_MEMORY. */
enum status program_play_longest(const struct program *program, const struct program_role *role,
                                 const int64_t *plan_ps, int64_t *ret_ps, struct error *reterr);

#endif
