#include "tests/support/above.h"

#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"

static bool begins(const char *name, const char *words)
{
    return strncmp(name, words, strlen(words)) == 0;
}

/* Of the links that are the bound; 0: it is none of the machine's axes. */
static double busiest_s(const struct report_input *input)
{
    const struct machine *machine = input->machine;
    const struct roofline_bound *bound = &input->roofline->bound;
    int64_t busiest_ps = 0;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        uint8_t const level = machine->axis_level[axis];
        bool const grid = level == LEVEL_NONE;
        uint32_t const first = grid ? 2 * axis : machine_level_port(level, 0, false);
        uint32_t const count = grid ? 2 : 2 * machine->level[level].tier_count;
        if (bound->resource != ROOFLINE_LINKS || (bound->axis_bits >> axis & 1) == 0) continue;
        for (uint32_t port = first; port < first + count; port++)
            if (input->trace->link[port].busy_ps > busiest_ps)
                busiest_ps = input->trace->link[port].busy_ps;
    }
    return units_seconds(busiest_ps);
}

void above_check(const struct report_input *input, const struct analysis *analysis,
                 const struct notes *notes, const char *text)
{
    double const slack_s = 1e-9 * analysis->step_s, idle_s = analysis->step_s - busiest_s(input);
    double sum_s = 0;
    for (uint32_t i = 0; i < notes->part_count; i++) {
        const char *name = notes->part[i].name;
        double const seconds = notes->part[i].seconds;
        sum_s += seconds;
        case_that(seconds > 0 || begins(name, "less "), text);
        if (begins(name, "compute") && seconds > analysis->compute_s + slack_s)
            fail_msg("%g s of \"%s\", where %g s are compute\nin %s", seconds, name,
                     analysis->compute_s, text);
        if (begins(name, "compute during which") && seconds > idle_s + slack_s)
            fail_msg("%g s of \"%s\", which are so for %g s\nin %s", seconds, name, idle_s, text);
    }
    double const above_s = analysis->step_s - input->roofline->lower_s;
    case_that(sum_s > above_s - slack_s && sum_s < above_s + slack_s, text);
}
