/*
 * lanes.h: a schedule that was run, as lanes of text, one a rank, as wide as the terminal.
 */
#ifndef TOOLS_PODSIM_PIPELINE_LANES_H
#define TOOLS_PODSIM_PIPELINE_LANES_H

#include "sim/schedule/schedule_play.h"

struct report_terminal;
struct strbuf;

void lanes_write(const struct schedule *schedule, const struct schedule_played *played,
                 const struct report_terminal *terminal, struct strbuf *text);

#endif
