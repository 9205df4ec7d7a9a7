/*
 * program_play.h: a role played without time: whether each of its needs can be met. Internal to
 * sim/program.
 */
#ifndef SIM_PROGRAM_PROGRAM_PLAY_H
#define SIM_PROGRAM_PROGRAM_PLAY_H

#include <stdbool.h>

#include "sim/program/program.h"

/* One rank, whose collectives take no time and to whom messages have come before it asks, must come
 * to its end. Else an op that can never begin is in `ret_place`. The role is sealed. */
bool program_play_ends(const struct program *program, const struct program_role *role,
                       struct program_place *ret_place);

#endif
