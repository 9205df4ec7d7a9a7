/* launches.h: ops that a host launches one by one. */
#ifndef SIM_REPORT_LAUNCHES_H
#define SIM_REPORT_LAUNCHES_H

#include "sim/report/report.h"

/* Of the reported chip. */
double launches_count(const struct report_input *input);

/* What the host needs for them; 0: it launches none by itself. */
double launches_host_s(const struct report_input *input);

static inline bool launches_are_eager(const struct machine *machine)
{
    return machine->chip.launch.host_ps > 0;
}

#endif
