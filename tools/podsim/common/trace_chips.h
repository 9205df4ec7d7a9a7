/*
 * trace_chips.h: which chips a timeline shows.
 */
#ifndef TOOLS_PODSIM_COMMON_TRACE_CHIPS_H
#define TOOLS_PODSIM_COMMON_TRACE_CHIPS_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

struct trace_chips {
    uint32_t chip[TRACE_SHOWN_MAX]; /* Chips of the machine, in the order of the list. */
    uint32_t count;
};

/* "0,0,0 1,0,3": coordinates, separated by blanks. NULL: the first chip. */
enum status trace_chips_read(const char *list, const struct machine *machine,
                             struct trace_chips *ret_chips, struct error *reterr);

#endif
