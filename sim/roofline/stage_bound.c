#include "sim/roofline/stage_bound.h"

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/rate_range.h"

/* Neighbours on the grid have a link each way, which strided pipelines share. On a level all that
 * a rank sends, forward and back, leaves it by the same cables, but for one without a switch. */
static double neighbours_s(const struct machine *machine, const struct group_dimension *dimension,
                           const struct workload_counts *counts)
{
    if (machine_is_meshed(machine, dimension->axis))
        return counts->stage.bytes / level_step_rate(machine, dimension);
    if (dimension->switched) return counts->stage.sent_bytes / level_step_rate(machine, dimension);
    return dimension->stride * counts->stage.bytes /
           rate_range_fastest_link(machine, dimension->axis);
}

/* From a rank to another: along the outermost dimension in which they differ, as the switches of an
 * outer level join all chips of inner ones. */
static double message_hop_s(const struct machine *machine, const struct group *group, uint32_t from,
                            uint32_t to)
{
    double const overhead_s = units_seconds(machine->chip.launch.message_ps);
    uint32_t d = 0;
    while (group_digit(group, from, d) == group_digit(group, to, d)) d++;
    const struct group_dimension *dimension = &group->dimension[d];
    uint32_t const one = group_digit(group, from, d), other = group_digit(group, to, d);
    if (dimension->switched)
        return units_seconds(level_between_ps(machine, dimension, one, other)) + overhead_s;
    uint32_t const up = one < other ? other - one : one - other;
    uint32_t const members =
        dimension->ring && 2 * up > dimension->size ? dimension->size - up : up;
    return members * dimension->stride * units_seconds(machine->chip.hop_latency_ps) + overhead_s;
}

/* What has been decoded goes back to the first stage, and a step behind a prefill goes through all
 * once more. */
double stage_bound_hops_s(const struct workload_plan *plan, const struct machine *machine,
                          const struct group *group)
{
    uint32_t const ranks = (uint32_t)group_rank_count(group);
    bool const follows = inference_follows(&plan->inference);
    double through = 0;
    if (ranks == 1) return 0;
    double const back = message_hop_s(machine, group, ranks - 1, 0);
    for (uint32_t rank = 1; rank < ranks; rank++)
        through += message_hop_s(machine, group, rank - 1, rank);
    if (follows) return 2 * through + back;
    return inference_goes_round(&plan->inference) ? through + back : through;
}

/* What is between neighbours is between ranks that are farther apart, too: on a level a mean rank's
 * gradients leave by the cables on the way to a neighbour. On the grid all messages of one half of
 * the ranks go over the middle of the line, or over both middles of a ring. All ranks cross: two
 * copies lie on an even number of ranks of one machine axis, others are refused. */
static double copies_s(const struct machine *machine, const struct group_dimension *dimension,
                       const struct workload_counts *counts)
{
    uint32_t const axis = dimension->axis;
    double const bytes = counts->stage.copy_bytes;
    if (machine->axis_level[axis] != LEVEL_NONE) return bytes / level_step_rate(machine, dimension);
    if (machine_is_twisted(machine)) return 0; /* A message may go along other axes. */
    uint32_t const middles = dimension->ring || machine->wrap[axis] ? 2 : 1;
    uint32_t const half = dimension->size / 2;
    double const crossing = bytes * half * dimension->stride;
    return crossing / middles / rate_range_fastest_link(machine, axis);
}

static void copies_evaluate(const struct machine *machine, const struct workload_counts *counts,
                            struct roofline *roofline)
{
    const struct group *group = &counts->role[MESH_PP].group;
    const struct group_dimension *dimension = &group->dimension[0];
    if (counts->stage.copy_bytes == 0) return;
    SIM_ASSERT(group->dimension_count == 1 && dimension->size % 2 == 0);
    roofline->stages.copies_s = copies_s(machine, dimension, counts);
    /* Two ranks on a level send everything to one another by the same cables. With more ranks the
     * one that sends most to neighbours may send less than a mean one of the gradients. */
    bool const same = dimension->switched && dimension->size == 2;
    double const time_s = roofline->stages.copies_s + (same ? roofline->stages.messages_s : 0);
    double *busy_s = &roofline->ici_s[dimension->axis];
    if (time_s > *busy_s) *busy_s = time_s;
}

void stage_bound_evaluate(const struct machine *machine, const struct workload_counts *counts,
                          struct roofline *roofline)
{
    const struct group *group = &counts->role[MESH_PP].group;
    if (counts->stage.bytes == 0) return;
    const struct group_dimension *dimension = &group->dimension[0];
    roofline->stages.messages_s = neighbours_s(machine, dimension, counts);
    /* Over two levels the pair with most may lie in either, and what a rank sends forward and back
     * may leave it by different cables: at least one pair's messages at the faster rate. */
    if (group->dimension_count > 1) {
        double fastest = 0;
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            double const rate = level_step_rate(machine, &group->dimension[d]);
            if (rate > fastest) dimension = &group->dimension[d];
            if (rate > fastest) fastest = rate;
        }
        roofline->stages.messages_s = counts->stage.bytes / fastest;
    }
    double *busy_s = &roofline->ici_s[dimension->axis];
    if (roofline->stages.messages_s > *busy_s) *busy_s = roofline->stages.messages_s;
    copies_evaluate(machine, counts, roofline);
}

/* All messages one after another, each to the farthest neighbour along a dimension; between copies
 * each to the farthest member. */
static double dimension_slow_s(const struct machine *machine, const struct workload_counts *counts,
                               const struct group_dimension *dimension)
{
    int64_t const way_ps =
        dimension->switched
            ? level_latency_ps(machine, dimension)
            : dimension->stride * rate_range_longest_hop_ps(machine, dimension->axis);
    double const links = dimension->switched ? 1 : dimension->stride;
    double const rate = dimension->switched ? level_slow_rate(machine, dimension, LEVEL_TO_ONE)
                                            : rate_range_slowest_link(machine, dimension->axis);
    double const far = dimension->switched ? 1 : dimension->size - 1;
    double const copy_bytes =
        counts->stage.copy_bytes * (double)group_rank_count(&counts->role[MESH_PP].group);
    int64_t const message_ps = machine->chip.launch.message_ps;
    return (counts->stage.way_bytes + copy_bytes) * links / rate +
           counts->stage.way_count * units_seconds(way_ps + message_ps) +
           counts->stage.copy_count * (far * units_seconds(way_ps) + units_seconds(message_ps));
}

double stage_bound_slow_s(const struct machine *machine, const struct workload_counts *counts)
{
    if (counts->stage.way_count == 0 && counts->stage.copy_count == 0) return 0;
    const struct group *group = &counts->role[MESH_PP].group;
    double slowest_s = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        double const slow_s = dimension_slow_s(machine, counts, &group->dimension[d]);
        slowest_s = slow_s > slowest_s ? slow_s : slowest_s;
    }
    return slowest_s;
}
