#include "sim/roofline/tier_load.h"

#include <math.h>
#include <stddef.h>

struct algorithm tiers_played(const struct workload_plan *plan, const char *own)
{
    return algorithm_of(own != NULL ? own : plan->algorithm);
}

/* Boxes of chips below a tier, and the members of groups along an axis that lie in them. */
struct cut {
    const struct machine *machine;
    const struct group_dimension *dimension;
    uint32_t axis, box; /* Its length. */
};

/* Arrays' worth, or parts of one, that all groups along one line of the axis have to bring from box
 * to box. */
struct crossing {
    double gathered;  /* A copy to each box but the first. */
    double exchanged; /* What members in different boxes have for each other. */
    double shifted;   /* Messages to the next, and from the last to the first. */
};

/* The members of one group: where the first is, and those after it. */
static void cut_group(const struct cut *cut, uint32_t first, struct crossing *crossing)
{
    uint32_t const size = cut->dimension->size;
    double boxes = 0, together = 0;
    for (uint32_t i = 0, last; i < size; i = last) {
        uint32_t const box = (first + i * cut->dimension->stride) / cut->box;
        for (last = i + 1; last < size; last++)
            if ((first + last * cut->dimension->stride) / cut->box != box) break;
        double const share = (double)(last - i) / size;
        together += share * share;
        boxes++;
    }
    crossing->gathered += boxes - 1;
    crossing->exchanged += 1 - together;
    crossing->shifted += boxes > 1 ? boxes : 0;
}

static struct crossing cut_line(const struct cut *cut)
{
    struct crossing crossing = {0, 0, 0};
    uint32_t const stride = cut->dimension->stride, length = cut->machine->shape[cut->axis];
    for (uint32_t at = 0; at < length; at += cut->dimension->size * stride)
        for (uint32_t i = 0; i < stride; i++) cut_group(cut, at + i, &crossing);
    return crossing;
}

/* Whether a group's collectives go over all dimensions at once. */
static bool is_flat(const struct workload_plan *plan, const struct workload_traffic *traffic)
{
    return tiers_played(plan, traffic->algorithm).flat;
}

/* Members along levels that are farther away. An array goes over these first, so what each member
 * gathers over this dimension is as many times larger; but not if all are reached at once. */
static double farther_members(const struct workload_plan *plan,
                              const struct workload_traffic *traffic, uint32_t dimension)
{
    double members = 1;
    if (is_flat(plan, traffic)) return 1;
    for (uint32_t d = 0; d < traffic->group.dimension_count; d++)
        if (traffic->group.dimension[d].switched &&
            traffic->group.dimension[d].axis > traffic->group.dimension[dimension].axis)
            members *= traffic->group.dimension[d].size;
    return members;
}

/* What tokens have to cross: of several dimensions only where they go once to each unit, else an
 * exchange may go another way. */
static double exchanged_bytes(const struct workload_plan *plan,
                              const struct workload_traffic *traffic, uint32_t dimension)
{
    const struct group *group = &traffic->group;
    double const ranks = (double)group_rank_count(group);
    bool const flat = is_flat(plan, traffic);
    if (traffic->crossing_bytes[0] == 0)
        return group->dimension_count == 1 ? traffic->all_to_all_bytes : 0;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (flat && group->dimension[d].axis > group->dimension[dimension].axis) return 0;
    return traffic->crossing_bytes[dimension] * group->dimension[dimension].size / ranks;
}

/* Bytes of one direction that a line of the axis has to bring across the cut. Where switches copy
 * and add, only one way is known to carry all of a gather or a reduction: those are told apart. */
struct demand {
    double copied, added, others;
};

static void demand_add(const struct workload_plan *plan, const struct cut *cut,
                       const struct workload_traffic *traffic, uint32_t dimension,
                       struct demand *demand)
{
    const struct group *group = &traffic->group;
    struct crossing const crossing = cut_line(cut);
    bool const in_switches = tiers_played(plan, traffic->algorithm).in_switches;
    double const share = farther_members(plan, traffic, dimension) *
                         group->dimension[dimension].size / (double)group_rank_count(group);
    *(in_switches ? &demand->copied : &demand->others) +=
        crossing.gathered * share * traffic_gathered_bytes(traffic);
    *(in_switches ? &demand->added : &demand->others) +=
        crossing.gathered * share * traffic_scattered_bytes(traffic);
    demand->others += crossing.exchanged * exchanged_bytes(plan, traffic, dimension);
    if (group->dimension_count == 1) demand->others += crossing.shifted * traffic->permute_bytes;
}

static double tier_busy_s(const struct workload_plan *plan, const struct machine *machine,
                          const struct workload_traffic *const *traffic, uint32_t count,
                          uint32_t axis, uint32_t tier)
{
    const struct level *level = &machine->level[machine->axis_level[axis]];
    struct demand demand = {0, 0, 0};
    for (uint32_t t = 0; t < count; t++)
        for (uint32_t d = 0; d < traffic[t]->group.dimension_count; d++) {
            const struct group_dimension *dimension = &traffic[t]->group.dimension[d];
            struct cut const cut = {machine, dimension, axis,
                                    level_box_length(machine, level, (int32_t)tier - 1, axis)};
            if (dimension->axis == axis) demand_add(plan, &cut, traffic[t], d, &demand);
        }
    double const lines = (double)machine->chip_count / machine->shape[axis];
    double const rate = (double)level_unit_count(machine, level, (int32_t)tier - 1) *
                        (double)level_bundle_bytes_per_s(&level->tier[tier]);
    return lines * (fmax(demand.copied, demand.added) + demand.others) / rate;
}

double tier_load_busy_s(const struct workload_plan *plan, const struct machine *machine,
                        const struct workload_traffic *const *traffic, uint32_t count,
                        uint32_t axis)
{
    double longest = 0;
    const struct level *level = &machine->level[machine->axis_level[axis]];
    for (uint32_t tier = 0; tier < level->tier_count; tier++)
        longest = fmax(longest, tier_busy_s(plan, machine, traffic, count, axis, tier));
    return longest;
}
