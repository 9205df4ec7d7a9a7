#include "sim/roofline/all_to_all_bound.h"

#include <math.h>

#include "sim/roofline/collective_bound.h"
#include "sim/roofline/rate_range.h"

static double ranks_of(const struct group *group)
{
    return (double)group_rank_count(group);
}

/* The part of a group that a dimension is of: by itself where switches serve it, else with all
 * others of the grid. */
static struct group level_of(const struct group *group, uint32_t dimension)
{
    struct group level = {.dimension_count = 0};
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (d == dimension ||
            (!group->dimension[d].switched && !group->dimension[dimension].switched))
            level.dimension[level.dimension_count++] = group->dimension[d];
    return level;
}

double all_to_all_dimension_s(const struct machine *machine, const struct group *group,
                              uint32_t dimension, double bytes)
{
    struct group const level = level_of(group, dimension);
    double const share = ranks_of(&level) / ranks_of(group);
    struct collective_query const query = {
        .kind = COLLECTIVE_ALL_TO_ALL,
        .array_bytes = (uint64_t)(bytes * share),
    };
    struct collective_bound bound;
    collective_bound(machine, &level, &query, &bound);
    return bound.bytes_s;
}

/* Tokens go once to each unit of a level. Each level has its own bytes, and may be the bound. */
static double crossing_s(const struct machine *machine, const struct workload_traffic *traffic)
{
    double most = 0;
    for (uint32_t d = 0; d < traffic->group.dimension_count; d++)
        most = fmax(
            most, all_to_all_dimension_s(machine, &traffic->group, d, traffic->crossing_bytes[d]));
    return most;
}

double all_to_all_sent_bytes(const struct workload_traffic *traffic)
{
    double const ranks = ranks_of(&traffic->group);
    double sum = 0;
    if (!traffic_crosses(traffic)) return traffic->all_to_all_bytes / ranks * (ranks - 1) / ranks;
    for (uint32_t d = 0; d < traffic->group.dimension_count; d++) {
        struct group const level = level_of(&traffic->group, d);
        double const size = ranks_of(&level);
        sum += traffic->crossing_bytes[d] / ranks * (size - 1) / size /
               (traffic->group.dimension[d].switched ? 1 : level.dimension_count);
    }
    return sum;
}

double all_to_all_s(const struct machine *machine, const struct workload_traffic *traffic)
{
    struct collective_query const queries[] = {
        {.kind = COLLECTIVE_ALL_TO_ALL, .array_bytes = (uint64_t)traffic->all_to_all_bytes},
        {.kind = COLLECTIVE_PERMUTE,
         .array_bytes = (uint64_t)traffic->permute_bytes,
         .offset = {1}},
    };
    double total = 0;
    bool const crosses = traffic_crosses(traffic);
    if (crosses) total += crossing_s(machine, traffic);
    for (uint32_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct collective_bound bound;
        if (queries[i].array_bytes == 0) continue;
        if (crosses && queries[i].kind == COLLECTIVE_ALL_TO_ALL) continue;
        collective_bound(machine, &traffic->group, &queries[i], &bound);
        total += bound.bytes_s;
    }
    return total;
}

/* A ring carries n/8 of what the members of a dimension have for each other on each of its links; a
 * line's bundles take as long as the first, of all but one of them, n - 1 times half full. A
 * permute puts one message on each link for every member between two neighbours. Other links cannot
 * relieve a slow one, which the bound of a cut takes together with them. */
double all_to_all_slow_s(const struct machine *machine, const struct workload_traffic *traffic)
{
    const struct group *group = &traffic->group;
    double const once = all_to_all_s(machine, traffic), ranks = ranks_of(group);
    bool lines = false, grid = true, uneven = false;
    double total = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *at = &group->dimension[d];
        double const links = at->ring ? at->size / 8.0 : (at->size - 1) / 2.0;
        double const bytes = fmax(traffic->all_to_all_bytes, traffic->crossing_bytes[d]);
        lines = lines || !at->ring;
        grid = grid && !at->switched;
        if (at->switched) continue;
        double const slowest = rate_range_slowest_link(machine, at->axis);
        uneven = uneven || slowest < rate_range_fastest_link(machine, at->axis);
        total += (bytes / ranks * links + traffic->permute_bytes) * at->stride / slowest;
    }
    if (!grid) return uneven ? total + once : once;
    return lines || uneven ? fmax(total, once) : once;
}
