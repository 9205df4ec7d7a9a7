#include "sim/roofline/wire.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/units.h"

static const struct level *level_of(const struct machine *machine, uint32_t axis)
{
    uint8_t const level = machine->axis_level[axis];
    return level == LEVEL_NONE ? NULL : &machine->level[level];
}

/* Chips of the machine that a unit of a tier holds; one below the first. */
static double chips_of(const struct machine *machine, const struct level *level, int32_t tier)
{
    double chips = 1;
    for (uint32_t axis = 0; tier >= 0 && axis < machine->axis_count; axis++) {
        uint32_t const box = level->tier[tier].box[axis], length = machine->shape[axis];
        chips *= box < length ? box : length;
    }
    return chips;
}

static uint32_t meeting_tier(const struct machine *machine, const struct level *level,
                             uint32_t axis, uint32_t extent)
{
    uint32_t const from[MACHINE_AXES_MAX] = {0};
    uint32_t to[MACHINE_AXES_MAX] = {0};
    to[axis] = extent - 1;
    uint32_t const tier = level_meeting_tier(level, from, to);
    SIM_ASSERT(tier < level->tier_count && extent <= machine->shape[axis]);
    return tier;
}

double wire_level_rate(const struct machine *machine, uint32_t axis)
{
    const struct level *level = level_of(machine, axis);
    uint32_t const top = meeting_tier(machine, level, axis, machine->shape[axis]);
    double least = INFINITY;
    for (uint32_t tier = 0; tier <= top; tier++) {
        double const bundle =
            (double)level->tier[tier].cable_bytes_per_s * level->tier[tier].cable_count;
        double const rate = bundle / chips_of(machine, level, (int32_t)tier - 1);
        least = rate < least ? rate : least;
    }
    return least;
}

int64_t wire_level_latency_ps(const struct machine *machine,
                              const struct group_dimension *dimension)
{
    const struct level *level = level_of(machine, dimension->axis);
    uint32_t const extent = (dimension->size - 1) * dimension->stride + 1;
    uint32_t const top = meeting_tier(machine, level, dimension->axis, extent);
    int64_t latency_ps = 0;
    for (uint32_t tier = 0; tier <= top; tier++) latency_ps += 2 * level->tier[tier].latency_ps;
    return latency_ps;
}

const char *wire_name(const struct machine *machine, uint32_t axis)
{
    const struct level *level = level_of(machine, axis);
    return level == NULL ? "ici" : level->name;
}

/* Calls for each level that the group spans, the grid first: what one unit below it has, and how
 * many of those units there are. */
struct storey {
    double units;
    double bytes_per_s; /* Of one unit below. */
};

static uint32_t storeys_of(const struct machine *machine, const struct group *group,
                           double grid_bytes_per_s, struct storey ret_storey[1 + LEVELS_MAX])
{
    struct storey each[1 + LEVELS_MAX] = {{1, grid_bytes_per_s}};
    for (uint32_t i = 0; i <= LEVELS_MAX; i++) each[i].units = 1;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        uint8_t const level = machine->axis_level[dimension->axis];
        struct storey *storey = &each[level == LEVEL_NONE ? 0 : 1 + level];
        storey->units *= dimension->size;
        if (level != LEVEL_NONE) storey->bytes_per_s = wire_level_rate(machine, dimension->axis);
    }
    uint32_t count = 0;
    double members = 1; /* That share what a unit of the next storey has. */
    for (uint32_t i = 0; i <= LEVELS_MAX; i++) {
        if (each[i].units == 1) continue;
        ret_storey[count++] =
            (struct storey){each[i].units, each[i].bytes_per_s * (i == 0 ? 1 : members)};
        members *= each[i].units;
    }
    return count;
}

double wire_group_rate(const struct machine *machine, const struct group *group,
                       double grid_bytes_per_s)
{
    struct storey storey[1 + LEVELS_MAX];
    uint32_t const count = storeys_of(machine, group, grid_bytes_per_s, storey);
    double least = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        least = storey[i].bytes_per_s < least ? storey[i].bytes_per_s : least;
    return least;
}

double wire_group_share(const struct machine *machine, const struct group *group,
                        double grid_bytes_per_s)
{
    struct storey storey[1 + LEVELS_MAX];
    uint32_t const count = storeys_of(machine, group, grid_bytes_per_s, storey);
    double longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        double const time = (storey[i].units - 1) / storey[i].units / storey[i].bytes_per_s;
        longest = time > longest ? time : longest;
    }
    return longest * wire_group_rate(machine, group, grid_bytes_per_s);
}
