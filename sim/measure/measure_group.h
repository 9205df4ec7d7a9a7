/*
 * measure_group.h: which ranks a collective is over, from text: parts of the machine's axes.
 */
#ifndef SIM_MEASURE_MEASURE_GROUP_H
#define SIM_MEASURE_MEASURE_GROUP_H

#include "sim/base/status.h"
#include "sim/collective/group.h"
#include "sim/machine/machine.h"

enum { MEASURE_AXES_BYTES = 96 };

/* "x,y", "gpu", "node:2,gpu": the slowest first. A part takes neighbours; it has to divide its
 * axis, and all groups of that shape work at once. NULL: all axes of the machine longer than one
 * chip, those that the farthest network serves first, then nearer ones, then the grid's. */
enum status measure_group(const struct machine *machine, const char *axes, const char *where,
                          struct group *ret_group, struct error *reterr);

/* The group as text that measure_group() would read: "x,y:4". Returns `buffer`. */
const char *measure_group_text(const struct machine *machine, const struct group *group,
                               char buffer[MEASURE_AXES_BYTES]);

#endif
