/*
 * setting_place.h: places in a scenario that the command line has changed.
 */
#ifndef TOOLS_PODSIM_COMMON_SETTING_PLACE_H
#define TOOLS_PODSIM_COMMON_SETTING_PLACE_H

#include "sim/base/status.h"
#include "tools/podsim/common/options.h"

struct strbuf;

/* An error whose place, a JSON pointer, an option has written is placed at this option:
 * "--set /workload/zero=4". One whose place only contains what an option has written names both:
 * "/mesh with --set /mesh/tp=...". */
void setting_place(const struct options *options, struct error *error);

/* "/workload/batch=64", of a long value the beginning. */
void setting_add(const char *setting, struct strbuf *text);

#endif
