#include "sim/roofline/level_rate.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/units.h"

static double rate_of(struct level_share share)
{
    return (double)share.bytes_per_s / share.chips;
}

/* What a chip has of the cables that lead up to a tier, when all use them. */
static double tier_rate(const struct machine *machine, const struct level *level, uint32_t tier)
{
    return rate_of(level_tier_share(machine, level, tier));
}

double level_rate(const struct machine *machine, uint32_t axis)
{
    return rate_of(level_along(machine, axis, machine->shape[axis] - 1).share);
}

/* A link to each of a number of others, of one chip. */
static double mesh_rate(const struct level *level, double others)
{
    if (level->tier[0].policy != LEVEL_PAIR) return INFINITY;
    return others * (double)level->tier[0].cable_bytes_per_s;
}

double level_mesh_rate(const struct machine *machine, const struct group_dimension *dimension,
                       uint32_t others)
{
    const struct level *level = level_of_axis(machine, dimension->axis);
    return level == NULL ? INFINITY : mesh_rate(level, others);
}

double level_slow_rate(const struct machine *machine, const struct group_dimension *dimension,
                       enum level_reach reach)
{
    uint32_t const others = reach == LEVEL_TO_ONE ? 1 : dimension->size - 1;
    return fmin(level_rate(machine, dimension->axis), level_mesh_rate(machine, dimension, others));
}

/* Of the units' cables that chips side by side, as many as are between a member and the next, have
 * at most, relative to what they would have if they filled the units. */
static double spread(uint32_t chips, uint32_t unit)
{
    if (chips % unit == 0 || chips >= 2 * unit - 1) return 1; /* They fill one, at least. */
    return (double)((chips + 2 * unit - 2) / unit) * unit / chips;
}

/* A unit that is no longer than the way to the next member has no two in a row. */
double level_step_rate(const struct machine *machine, const struct group_dimension *dimension)
{
    const struct level *level = level_of_axis(machine, dimension->axis);
    double least = INFINITY;
    for (uint32_t tier = 0; tier < level->tier_count; tier++) {
        uint32_t const below = level_box_length(machine, level, (int32_t)tier - 1, dimension->axis);
        if (below > dimension->stride) break;
        least = fmin(least, tier_rate(machine, level, tier) * spread(dimension->stride, below));
    }
    return fmin(least, level_mesh_rate(machine, dimension, 1));
}

int64_t level_latency_ps(const struct machine *machine, const struct group_dimension *dimension)
{
    uint32_t const links = (dimension->size - 1) * dimension->stride;
    return level_along(machine, dimension->axis, links).way_ps;
}

int64_t level_between_ps(const struct machine *machine, const struct group_dimension *dimension,
                         uint32_t member, uint32_t other)
{
    const struct level *level = level_of_axis(machine, dimension->axis);
    uint32_t from[LEVEL_AXES_MAX] = {0}, to[LEVEL_AXES_MAX] = {0};
    from[dimension->axis] = member * dimension->stride;
    to[dimension->axis] = other * dimension->stride;
    return level_way_ps(level, level_meeting_tier(level, from, to));
}

const char *level_link_name(const struct machine *machine, uint32_t axis)
{
    const struct level *level = level_of_axis(machine, axis);
    return level == NULL ? "ici" : level->name;
}

/* Where what a group shares is gathered: the grid, then each tier of each level that it spans. One
 * unit below (a chip, a node, a leaf) has so much, and the group fills a number of these units. */
struct storey {
    double units;
    double bytes_per_s; /* Of one unit below, for this group: others use the rest meanwhile. */
};
enum { STOREYS_MAX = 1 + LEVELS_MAX * LEVEL_TIERS_MAX };

/* Members of a group along a level's axes that are in one unit of a tier; below the first, one. */
static double members_in(const struct machine *machine, const struct group *group, uint32_t index,
                         int32_t tier)
{
    double members = 1;
    for (uint32_t i = 0; tier >= 0 && i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        if (machine->axis_level[dimension->axis] != index) continue;
        uint32_t const box = machine->level[index].tier[tier].box[dimension->axis];
        uint32_t const places = (box - 1) / dimension->stride + 1;
        members *= places < dimension->size ? places : dimension->size;
    }
    return members;
}

static uint32_t storeys_of(const struct machine *machine, const struct group *group,
                           enum level_reach reach, double grid_bytes_per_s,
                           struct storey ret_storey[STOREYS_MAX])
{
    double grid = 1, along[LEVELS_MAX];
    for (uint32_t l = 0; l < LEVELS_MAX; l++) along[l] = 1;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        uint8_t const level = machine->axis_level[group->dimension[i].axis];
        *(level == LEVEL_NONE ? &grid : &along[level]) *= group->dimension[i].size;
    }
    uint32_t count = 0;
    if (grid > 1) ret_storey[count++] = (struct storey){grid, grid_bytes_per_s};
    double members = grid; /* That share what a unit of the next level has. */
    for (uint32_t l = 0; l < machine->level_count; l++) {
        for (uint32_t tier = 0; tier < machine->level[l].tier_count; tier++) {
            double const below = members_in(machine, group, l, (int32_t)tier - 1);
            if (below >= along[l]) break; /* They have met. */
            double const others = reach == LEVEL_TO_ONE ? 1 : along[l] - 1;
            double const rate = fmin(tier_rate(machine, &machine->level[l], tier),
                                     mesh_rate(&machine->level[l], others));
            ret_storey[count++] = (struct storey){along[l] / below, rate * below * members};
        }
        members *= along[l];
    }
    return count;
}

double level_dimension_rate(const struct machine *machine, const struct group_dimension *dimension,
                            enum level_reach reach)
{
    struct group const group = {.dimension = {*dimension}, .dimension_count = 1};
    double const n = dimension->size;
    return (n - 1) / n * level_group_rate(machine, &group, reach, 0) /
           level_group_share(machine, &group, reach, 0);
}

double level_group_rate(const struct machine *machine, const struct group *group,
                        enum level_reach reach, double grid_bytes_per_s)
{
    struct storey storey[STOREYS_MAX];
    uint32_t const count = storeys_of(machine, group, reach, grid_bytes_per_s, storey);
    double least = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        least = storey[i].bytes_per_s < least ? storey[i].bytes_per_s : least;
    return least;
}

double level_group_share(const struct machine *machine, const struct group *group,
                         enum level_reach reach, double grid_bytes_per_s)
{
    struct storey storey[STOREYS_MAX];
    uint32_t const count = storeys_of(machine, group, reach, grid_bytes_per_s, storey);
    double longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        double const time = (storey[i].units - 1) / storey[i].units / storey[i].bytes_per_s;
        longest = time > longest ? time : longest;
    }
    return longest * level_group_rate(machine, group, reach, grid_bytes_per_s);
}
