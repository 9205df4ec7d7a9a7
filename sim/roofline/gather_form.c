#include "sim/roofline/gather_form.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/units.h"
#include "sim/collective/choice.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/rate_range.h"

static bool find(const struct machine *machine, const struct group *group,
                 const struct algorithm *algorithm, enum collective_kind kind,
                 struct choice *ret_choice)
{
    struct plan_request request = {.kind = kind, .group = *group};
    plan_request_links(machine, &request);
    return choice_find(&request, algorithm, ret_choice);
}

/* Whether a primitive sends to all at once, or to neighbours, and no switch works for it. */
static bool is_closed(const struct primitive *primitive, uint32_t size)
{
    enum primitive_reach const reach = primitive->cost(size).reach;
    return primitive->network == PRIMITIVE_NETWORK_NONE &&
           (reach == PRIMITIVE_REACH_NEXT || reach == PRIMITIVE_REACH_ALL);
}

struct gather_form gather_form_by(const struct machine *machine, const struct group *group,
                                  const struct algorithm *algorithm)
{
    struct algorithm const chosen = {.means = ALGORITHM_AUTO};
    struct gather_form form = {.machine = machine, .group = *group};
    struct choice gather, sum;
    bool const known = find(machine, group, algorithm, COLLECTIVE_ALL_GATHER, &gather);
    form.flat = known && gather.flat;
    form.closed = known && !gather.flat;
    if (!form.closed) (void)find(machine, group, &chosen, COLLECTIVE_ALL_GATHER, &gather);
    bool const sums = find(machine, group, algorithm, COLLECTIVE_ALL_REDUCE, &sum);
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        form.gather[d] = gather.once[d];
        form.closed = form.closed && is_closed(gather.once[d], group->dimension[d].size) &&
                      !(sums && sum.whole[d] != NULL);
    }
    return form;
}

/* Links' worth of bandwidth that a dimension has for each member, of what its busiest one sends or
 * gets. Strided members share the links between them with the groups that they are interleaved
 * with, but not their ways to a switch. */
static double links_of(const struct gather_form *form, uint32_t d)
{
    const struct group_dimension *dimension = &form->group.dimension[d];
    struct primitive_cost const cost = form->gather[d]->cost(dimension->size);
    double const others = dimension->size - 1;
    return 2 * others / (double)cost.port_units / (dimension->switched ? 1 : dimension->stride);
}

/* Of nodes without a switch: what does not send to all others at once has one link. */
static enum level_reach reach_of(const struct gather_form *form, uint32_t d)
{
    struct primitive_cost const cost = form->gather[d]->cost(form->group.dimension[d].size);
    return cost.reach == PRIMITIVE_REACH_ALL ? LEVEL_TO_ALL : LEVEL_TO_ONE;
}

static double slowest_link(const struct gather_form *form, uint32_t d)
{
    const struct group_dimension *dimension = &form->group.dimension[d];
    return dimension->switched ? level_slow_rate(form->machine, dimension, reach_of(form, d))
                               : rate_range_slowest_link(form->machine, dimension->axis);
}

/* Bytes a second that each dimension brings to a member. Rings that reach all links are as slow as
 * the slowest. The shares of the dimensions do not see overridden links, so from above each is as
 * slow as the slowest of all. */
static void rates_of(const struct gather_form *form, bool slow,
                     double ret_rate[GROUP_DIMENSIONS_MAX])
{
    const struct machine *machine = form->machine;
    double slowest = INFINITY;
    for (uint32_t d = 0; d < form->group.dimension_count; d++) {
        const struct group_dimension *dimension = &form->group.dimension[d];
        bool const all = form->gather[d]->ring &&
                         dimension->size * dimension->stride == machine->shape[dimension->axis];
        double rate = slowest_link(form, d);
        slowest = fmin(slowest, rate);
        if (dimension->switched)
            rate = level_dimension_rate(machine, dimension, reach_of(form, d));
        else if (!all)
            rate = rate_range_fastest_link(machine, dimension->axis);
        ret_rate[d] = links_of(form, d) * rate;
    }
    for (uint32_t d = 0; slow && d < form->group.dimension_count; d++)
        ret_rate[d] = links_of(form, d) * slowest;
}

/* However the members that agree in some of the dimensions share the work, V(1 - 1/n) has to come
 * to them over the others, n the product of those sizes: V(n-1)/N a member, at the rate of those
 * dimensions together. All of them together decide unless some are slow: a strided one, or a long
 * line, has that much to carry whatever the others could take over. */
static double gather_s(const struct gather_form *form, double bytes, bool slow)
{
    const struct group *group = &form->group;
    double rate[GROUP_DIMENSIONS_MAX], longest = 0;
    double const ranks = (double)group_rank_count(group);
    rates_of(form, slow, rate);
    for (uint32_t subset = 1; subset < 1u << group->dimension_count; subset++) {
        double together = 0, size = 1;
        for (uint32_t i = 0; i < group->dimension_count; i++) {
            if ((subset >> i & 1) == 0) continue;
            size *= group->dimension[i].size;
            together += rate[i];
        }
        longest = fmax(longest, bytes * (size - 1) / ranks / together);
    }
    return longest;
}

double gather_form_s(const struct gather_form *form, double bytes)
{
    return gather_s(form, bytes, false);
}

/* One dimension after the other: of all that arrives each has what its rate is of all rates, or
 * what it has to carry itself. */
static double in_turn_s(const struct gather_form *form, double bytes)
{
    const struct group *group = &form->group;
    double rate[GROUP_DIMENSIONS_MAX], all = 0, sum = 0;
    double const ranks = (double)group_rank_count(group), arriving = bytes * (ranks - 1) / ranks;
    double const whole = gather_s(form, bytes, true);
    rates_of(form, true, rate);
    for (uint32_t i = 0; i < group->dimension_count; i++) all += rate[i];
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        double const least = bytes * (group->dimension[i].size - 1) / ranks / rate[i];
        double const rest = (arriving - whole * (all - rate[i])) / rate[i];
        sum += fmax(rest, least);
    }
    return sum;
}

/* On the grid. Where lines are among several dimensions, what goes along one after the other may
 * wait for all of it: small arrays are not cut into pieces. */
static double grid_slow_s(const struct gather_form *grid, double bytes)
{
    for (uint32_t d = 0; d < grid->group.dimension_count; d++)
        if (!grid->gather[d]->ring) return in_turn_s(grid, bytes);
    return gather_s(grid, bytes, true);
}

/* An array goes over the levels one after the other, the outermost first. */
double gather_form_slow_s(const struct gather_form *form, double bytes)
{
    const struct group *group = &form->group;
    struct gather_form grid = {.machine = form->machine};
    double total = 0;
    if (form->flat) return gather_s(form, bytes, true);
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *at = &group->dimension[i];
        if (!at->switched) {
            grid.gather[grid.group.dimension_count] = form->gather[i];
            grid.group.dimension[grid.group.dimension_count++] = *at;
            continue;
        }
        double arriving = bytes * (at->size - 1) / (double)group_rank_count(group);
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (group->dimension[d].switched && group->dimension[d].axis > at->axis)
                arriving *= group->dimension[d].size;
        total += arriving / slowest_link(form, i);
    }
    if (grid.group.dimension_count > 0) total += grid_slow_s(&grid, bytes);
    return total;
}

/* Messages in series, each over a level, or over links of the grid: to the next member, or to the
 * farthest. */
static double dimension_hop_s(const struct machine *machine,
                              const struct group_dimension *dimension,
                              const struct primitive *primitive, bool longest)
{
    struct primitive_cost const cost = primitive->cost(dimension->size);
    double const overhead_s = units_seconds(machine->chip.launch.message_ps);
    if (dimension->switched)
        return cost.depth * (units_seconds(level_latency_ps(machine, dimension)) + overhead_s);
    int64_t const hop_ps = longest ? rate_range_longest_hop_ps(machine, dimension->axis)
                                   : machine->chip.hop_latency_ps;
    uint32_t const farthest = dimension->ring ? dimension->size / 2 : dimension->size - 1;
    bool const near = !primitive->routed || cost.reach == PRIMITIVE_REACH_NEXT ||
                      cost.reach == PRIMITIVE_REACH_NEAR;
    return (near ? cost.depth : farthest) * dimension->stride * units_seconds(hop_ps) +
           cost.depth * overhead_s;
}

double gather_form_hop_s(const struct gather_form *form, bool longest)
{
    double total = 0;
    for (uint32_t d = 0; d < form->group.dimension_count; d++)
        total +=
            dimension_hop_s(form->machine, &form->group.dimension[d], form->gather[d], longest);
    return total;
}

double gather_form_plan_hop_s(const struct machine *machine, const struct plan *plan)
{
    double total = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        uint32_t first = 0;
        while (!plan->item[first].flat && plan->item[first].dimension != d) first++;
        SIM_ASSERT(first < plan->item_count);
        const struct primitive *primitive = plan->item[first].primitive;
        bool const halves = plan->kind == COLLECTIVE_ALL_REDUCE && primitive->kind != plan->kind;
        total += (halves ? 2 : 1) *
                 dimension_hop_s(machine, &plan->group.dimension[d], primitive, false);
    }
    return total;
}

static double grid_rate(const struct gather_form *form)
{
    double links = 0;
    for (uint32_t d = 0; d < form->group.dimension_count; d++)
        if (!form->group.dimension[d].switched) links += links_of(form, d);
    return links * (double)form->machine->chip.ici_bytes_per_s;
}

/* Without a switch: to all others where any dimension has it so. */
static enum level_reach group_reach(const struct gather_form *form)
{
    for (uint32_t d = 0; d < form->group.dimension_count; d++)
        if (form->group.dimension[d].switched && reach_of(form, d) == LEVEL_TO_ONE)
            return LEVEL_TO_ONE;
    return LEVEL_TO_ALL;
}

double gather_form_rate(const struct gather_form *form)
{
    return level_group_rate(form->machine, &form->group, group_reach(form), grid_rate(form));
}

double gather_form_share(const struct gather_form *form)
{
    return level_group_share(form->machine, &form->group, group_reach(form), grid_rate(form));
}
