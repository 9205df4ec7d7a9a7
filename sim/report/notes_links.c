/*
 * Time of a step falls into compute, exposed time and idle time. The bound's links are busy for
 * `lower_s` at least. Time beyond the bound has these parts:
 * - compute during which no collective, copy or message of the chip is under way on the links;
 * - time beyond `lower_s` in which the busiest of the links is busy;
 * - the rest of the time in which something is under way on the links: hops, and waits for others.
 * Exposed time of other links, and idle time, are parts of their own (notes_parts.c).
 */
#include "sim/report/notes_links.h"

#include <math.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/report/analysis_parts.h"
#include "sim/report/notes_overrides.h"
#include "sim/report/notes_parts.h"
#include "sim/roofline/link_bound.h"

uint32_t notes_links_bits(const struct roofline_bound *bound)
{
    if (bound->resource == ROOFLINE_LINKS) return bound->axis_bits;
    return bound->resource == ROOFLINE_HOST ? ANALYSIS_HOST_BIT : 0;
}

/* Chunks of arrays, and shares of several links, are rounded up to whole bytes. Time beyond a bound
 * by less than this share of the bound is rounding. */
static const double rounded = 1e-3;

/* The busiest of the bound's links. */
struct busiest_link {
    double busy_s;
    uint32_t axis, port;
};

/* The host's link is busy for what its bound says. */
static struct busiest_link busiest_of(const struct report_input *input, uint32_t bits)
{
    struct busiest_link busiest = {.busy_s = input->roofline->lower_s};
    if (bits == ANALYSIS_HOST_BIT) return busiest;
    busiest.busy_s = -1;
    for (uint32_t axis = 0; axis < input->machine->axis_count; axis++) {
        uint32_t port;
        double const busy_s = analysis_axis_busy_s(input, axis, &port);
        if ((bits >> axis & 1) != 0 && busy_s > busiest.busy_s)
            busiest = (struct busiest_link){.busy_s = busy_s, .axis = axis, .port = port};
    }
    return busiest;
}

/* Compute of the reported chip while it has nothing under way on these links. It is at most the
 * time in which the busiest link, which may be another chip's, is idle. */
static double idle_compute_s(const struct report_input *input, const struct analysis *analysis,
                             uint32_t bits, double busy_s)
{
    int64_t idle_ps = 0;
    for (uint32_t set = 0; set < TRACE_LINK_SETS_MAX; set++)
        if ((set & bits) == 0) idle_ps += input->trace->links_ps[set];
    return fmax(fmin(units_seconds(idle_ps), analysis->step_s - busy_s), 0);
}

static uint32_t bits_of(const struct group *group)
{
    uint32_t bits = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) bits |= 1u << group->dimension[d].axis;
    return bits;
}

/* Whether the bound lets switches copy and add for collectives along these axes. */
static bool bound_copies(const struct report_input *input, uint32_t bits)
{
    const struct roofline *roofline = input->roofline;
    for (uint32_t i = 0; i < roofline->group_count; i++) {
        const struct group *group = &roofline->group[i].group;
        if (bits_of(group) == bits && link_bound_copies(input->machine, group)) return true;
    }
    return false;
}

/* The collectives that are longest under way on an axis. */
static const struct analysis_class *longest_on(const struct analysis *analysis, uint32_t axis)
{
    const struct analysis_class *longest = NULL;
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (!row->collective || (row->axis_bits >> axis & 1) == 0 || row->algorithm == NULL)
            continue;
        if (longest == NULL || row->time_s > longest->time_s) longest = row;
    }
    return longest;
}

/* Why a link is busy for longer than its bound. */
static const char *more_reason(struct arena *arena, const struct report_input *input,
                               const struct analysis *analysis, const struct busiest_link *busiest)
{
    const struct analysis_class *longest = longest_on(analysis, busiest->axis);
    bool const on_grid = input->machine->axis_level[busiest->axis] == LEVEL_NONE;
    if (on_grid && notes_overrides_slow_link(input, busiest->port) != NULL) return "one is slow";
    if (longest == NULL) return "other messages";
    if (!longest->in_switches && bound_copies(input, longest->axis_bits))
        return arena_format(arena, "%s, not sharp", longest->algorithm);
    return arena_format(arena, "%s sends more", longest->algorithm);
}

void notes_links_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, double within_s, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    uint32_t const bits = notes_links_bits(&roofline->bound);
    const char *links =
        roofline->bound.axis < 0 ? input->machine->host.cable_name : roofline->bound.axes;
    struct busiest_link const busiest = busiest_of(input, bits);
    double const idle_s = idle_compute_s(input, analysis, bits, busiest.busy_s);
    /* In the rest of compute, and in exposed time, something is under way on the links. */
    double const beyond_s = analysis->compute_s - idle_s + within_s - roofline->lower_s;
    double more_s = fmax(fmin(busiest.busy_s - roofline->lower_s, beyond_s), 0);
    if (more_s < rounded * roofline->lower_s) more_s = 0;
    notes_part_add(notes, arena_format(arena, "compute during which the %s links are idle", links),
                   idle_s);
    if (more_s > 0)
        notes_part_add(notes,
                       arena_format(arena, "%s links busy beyond the bound (%s)",
                                    machine_axis_name(input->machine, busiest.axis),
                                    more_reason(arena, input, analysis, &busiest)),
                       more_s);
    if (beyond_s < 0)
        notes_part_less(
            arena, notes,
            arena_format(arena, "what the %s links do during what is listed here", links),
            beyond_s);
    else
        notes_part_add(notes,
                       arena_format(arena, "hops and waits of collectives on the %s links", links),
                       beyond_s - more_s);
}
