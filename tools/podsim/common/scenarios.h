/*
 * scenarios.h: the files of scenarios/, as they were built into the binary.
 */
#ifndef TOOLS_PODSIM_COMMON_SCENARIOS_H
#define TOOLS_PODSIM_COMMON_SCENARIOS_H

#include "sim/base/embed.h"

extern const struct embed_file embed_scenarios[];
extern const unsigned embed_scenarios_count;

#endif
