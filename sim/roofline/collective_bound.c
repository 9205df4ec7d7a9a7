#include "sim/roofline/collective_bound.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/units.h"
#include "sim/roofline/bisection.h"
#include "sim/roofline/rate_range.h"

/* The fastest hop of an axis. */
static double hop_s(const struct machine *machine, uint32_t axis)
{
    int64_t hop_ps = machine->chip.hop_latency_ps;
    for (uint32_t k = 0; k < machine->link_override_count; k++) {
        const struct machine_link_override *link = &machine->links[k];
        if (link->from[axis] != link->to[axis] && link->latency_ps > 0 && link->latency_ps < hop_ps)
            hop_ps = link->latency_ps;
    }
    return units_seconds(hop_ps);
}

/* From one member to another that is `apart` places on, on the grid or through a level. */
static double way_s(const struct machine *machine, const struct group_dimension *dimension,
                    uint32_t apart)
{
    uint32_t const axis = dimension->axis, length = machine->shape[axis];
    uint32_t const links = apart * dimension->stride;
    if (machine->axis_level[axis] == LEVEL_NONE) {
        bool const closes = dimension->ring || machine->wrap[axis];
        return (closes && length - links < links ? length - links : links) * hop_s(machine, axis);
    }
    return links == 0 ? 0 : units_seconds(level_along(machine, axis, links).way_ps);
}

/* On a twisted torus: hops from the root, or the first member, to the farthest, or to the one that
 * a permute names. */
static double twisted_s(const struct machine *machine, const struct group *group,
                        const struct collective_query *query)
{
    bool const permutes = query->kind == COLLECTIVE_PERMUTE;
    uint32_t const ranks = permutes ? 1 : (uint32_t)group_rank_count(group);
    int32_t most = 0, hops[CHIP_AXES_MAX];
    double fastest = INFINITY;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t from[MACHINE_AXES_MAX] = {0}, to[MACHINE_AXES_MAX] = {0};
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            const struct group_dimension *at = &group->dimension[d];
            if (machine->axis_level[at->axis] != LEVEL_NONE) continue;
            int32_t const offset = query->offset[d];
            uint32_t const way = (uint32_t)(offset < 0 ? -offset : offset) % at->size;
            uint32_t const first = group_digit(group, query->root, d);
            uint32_t const other = group_digit(group, rank, d);
            from[at->axis] = (!permutes ? first : offset < 0 ? way : 0) * at->stride;
            to[at->axis] = (!permutes ? other : offset > 0 ? way : 0) * at->stride;
        }
        machine_hops(machine, from, to, hops);
        int32_t const all = abs(hops[0]) + abs(hops[1]) + abs(hops[2]);
        most = all > most ? all : most;
    }
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
        fastest = fmin(fastest, hop_s(machine, axis));
    return most * fastest;
}

/* Places between members that must hear of each other, at most: all pairs, those with the root, or
 * the one that a permute names. */
static uint32_t reach(const struct group *group, const struct collective_query *query,
                      uint32_t index)
{
    const struct group_dimension *dimension = &group->dimension[index];
    uint32_t const size = dimension->size;
    if (query->kind == COLLECTIVE_PERMUTE) {
        int32_t const offset = query->offset[index];
        return (uint32_t)(offset < 0 ? -offset : offset);
    }
    if (dimension->ring) return size / 2;
    if (dimension->switched || !collective_is_rooted(query->kind)) return size - 1;
    uint32_t const root = group_digit(group, query->root, index);
    return root > size - 1 - root ? root : size - 1 - root;
}

/* A message goes over the grid hop by hop, or once through the nearest level that joins its ends;
 * so axes of the grid add up, and levels do not. */
static double latency_s(const struct machine *machine, const struct group *group,
                        const struct collective_query *query)
{
    double grid = 0, levels = 0, nearest = INFINITY;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        double const way = way_s(machine, dimension, reach(group, query, i));
        nearest = fmin(nearest, way_s(machine, dimension, 1));
        if (machine->axis_level[dimension->axis] == LEVEL_NONE)
            grid += way;
        else
            levels = fmax(levels, way);
    }
    if (collective_on_twisted(machine, group)) grid = twisted_s(machine, group, query);
    double const farthest = fmax(grid, levels);
    bool const unknown = query->kind == COLLECTIVE_PERMUTE && farthest == 0;
    return (unknown ? nearest : farthest) + units_seconds(machine->chip.launch.message_ps);
}

/* What each rank reads and writes: what it holds is read, what it has not is written. The slowest
 * chip is in one of the groups; but nobody knows whether it is a root, or one that a permute leaves
 * out. */
static double hbm_s(const struct machine *machine, const struct group *group,
                    const struct collective_query *query)
{
    double const v = (double)query->array_bytes, n = (double)group_rank_count(group);
    double const rate = (double)machine->chip.hbm_bytes_per_s;
    double math = 1, slowest = 1;
    rate_range_slowest_chip(machine, &math, &slowest);
    double const fastest = rate_range_fastest_hbm(machine);
    enum collective_kind const kind = query->kind;
    double bytes = v;
    if (kind == COLLECTIVE_PERMUTE) return v / (rate * fastest);
    if (kind == COLLECTIVE_GATHER || kind == COLLECTIVE_SCATTER)
        return fmax(v * (n - 1) / n / (rate * fastest), v / n / (rate * slowest));
    if (kind == COLLECTIVE_ALL_REDUCE) bytes = v * (2 * n - 1) / n;
    if (kind == COLLECTIVE_ALL_TO_ALL) bytes = 2 * v * (n - 1) / (n * n);
    return bytes / (rate * slowest);
}

void collective_bound(const struct machine *machine, const struct group *group,
                      const struct collective_query *query, struct collective_bound *ret_bound)
{
    SIM_ASSERT(query->kind < COLLECTIVE_KIND_COUNT);
    struct collective_bound bound = {
        .bound_by = "latency", .where = "", .axis = -1, .level = -1, .tier = -1};
    if (group->dimension_count > 0) {
        struct bisection const cut = bisection_tightest(machine, group, query);
        bound.latency_s = latency_s(machine, group, query);
        bound.hbm_s = hbm_s(machine, group, query);
        bound.bytes_s = cut.book_s;
        bound.time_s = fmax(fmax(bound.latency_s, bound.bytes_s), bound.hbm_s);
        bound.strict_s = fmax(fmax(bound.latency_s, cut.strict_s), bound.hbm_s);
        bound.strict_s = fmin(bound.strict_s, bound.time_s);
        if (bound.time_s > bound.latency_s && bound.bytes_s >= bound.hbm_s) {
            bound.bound_by = cut.bound_by;
            bound.where = cut.where;
            bound.axis = cut.axis;
            bound.level = cut.level;
            bound.tier = cut.tier;
        } else if (bound.time_s > bound.latency_s) {
            bound.bound_by = "hbm";
        }
    }
    *ret_bound = bound;
}
