/*
 * lanes.h: a played schedule as lanes of text, one a rank.
 */
#ifndef TOOLS_PODSIM_LANES_H
#define TOOLS_PODSIM_LANES_H

#include "sim/schedule/schedule_play.h"

struct text;

void lanes_write(const struct schedule *schedule, const struct schedule_played *played, bool colour,
                 struct text *text);

#endif
