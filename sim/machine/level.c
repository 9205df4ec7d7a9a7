#include "sim/machine/level.h"

#include <stddef.h>

#include "sim/base/digest.h"
#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"

_Static_assert((int)LEVEL_AXES_MAX == (int)MACHINE_AXES_MAX, "a box has a length for each axis");

const char *const level_policy_names[] = {
#define X(name, text, help) text,
    LEVEL_POLICY_TABLE(X)
#undef X
        NULL};

const char *level_policy_name(enum level_policy policy)
{
    if (policy == LEVEL_PAIR) return "pair";
    SIM_ASSERT(policy < LEVEL_POLICY_COUNT);
    return level_policy_names[policy];
}

/* The box of a unit; below the first tier a unit is a chip. */
static uint32_t box_length(const struct level *level, int32_t tier, uint32_t axis)
{
    return tier < 0 ? 1 : level->tier[tier].box[axis];
}

static uint32_t box_count(const struct machine *machine, const struct level *level, int32_t tier,
                          uint32_t axis)
{
    uint32_t const length = box_length(level, tier, axis);
    return (machine->shape[axis] + length - 1) / length;
}

uint32_t level_box_length(const struct machine *machine, const struct level *level, int32_t tier,
                          uint32_t axis)
{
    uint32_t const length = box_length(level, tier, axis);
    return length < machine->shape[axis] ? length : machine->shape[axis];
}

uint32_t level_box_chips(const struct machine *machine, const struct level *level, int32_t tier)
{
    uint32_t chips = 1;
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++)
        chips *= level_box_length(machine, level, tier, axis);
    return chips;
}

uint32_t level_queue_count(const struct level *level, uint32_t tier)
{
    const struct level_tier *own = &level->tier[tier];
    /* A chip has no place below it to choose a rail by. */
    bool const bundled = own->policy == LEVEL_SPRAY || (own->policy == LEVEL_RAIL && tier == 0);
    return bundled ? 1 : own->cable_count;
}

uint64_t level_queue_bytes_per_s(const struct level *level, uint32_t tier)
{
    return level_bundle_bytes_per_s(&level->tier[tier]) / level_queue_count(level, tier);
}

struct level_share level_tier_share(const struct machine *machine, const struct level *level,
                                    uint32_t tier)
{
    return (struct level_share){level_bundle_bytes_per_s(&level->tier[tier]),
                                level_box_chips(machine, level, (int32_t)tier - 1)};
}

static bool is_less(struct level_share a, struct level_share b)
{
    return (units_wide)a.bytes_per_s * b.chips < (units_wide)b.bytes_per_s * a.chips;
}

struct level_share level_least_share(const struct machine *machine, const struct level *level,
                                     uint32_t tier)
{
    struct level_share least = level_tier_share(machine, level, 0);
    for (uint32_t i = 1; i <= tier; i++) {
        struct level_share const share = level_tier_share(machine, level, i);
        if (is_less(share, least)) least = share;
    }
    return least;
}

uint64_t level_pair_bytes_per_s(const struct level *level, uint32_t tier)
{
    uint64_t least = level_queue_bytes_per_s(level, 0);
    for (uint32_t i = 1; i <= tier; i++) {
        uint64_t const alone = level_queue_bytes_per_s(level, i);
        least = alone < least ? alone : least;
    }
    return least;
}

int64_t level_way_ps(const struct level *level, uint32_t tier)
{
    int64_t way_ps = 0;
    SIM_ASSERT(tier < level->tier_count);
    for (uint32_t i = 0; i <= tier; i++) way_ps += 2 * level->tier[i].latency_ps;
    return way_ps;
}

uint32_t level_unit_count(const struct machine *machine, const struct level *level, int32_t tier)
{
    uint32_t count = 1;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        count *= box_count(machine, level, tier, axis);
    return count;
}

uint32_t level_unit(const struct machine *machine, const struct level *level, int32_t tier,
                    const uint32_t at[LEVEL_AXES_MAX])
{
    uint32_t unit = 0;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        unit =
            unit * box_count(machine, level, tier, axis) + at[axis] / box_length(level, tier, axis);
    return unit;
}

uint32_t level_meeting_tier(const struct level *level, const uint32_t a[LEVEL_AXES_MAX],
                            const uint32_t b[LEVEL_AXES_MAX])
{
    uint32_t tier = 0;
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++)
        while (tier < level->tier_count &&
               a[axis] / level->tier[tier].box[axis] != b[axis] / level->tier[tier].box[axis])
            tier++;
    return tier;
}

static uint32_t tier_along(const struct level *level, uint32_t axis, uint32_t links)
{
    uint32_t const from[LEVEL_AXES_MAX] = {0};
    uint32_t to[LEVEL_AXES_MAX] = {0};
    to[axis] = links;
    uint32_t const tier = level_meeting_tier(level, from, to);
    SIM_ASSERT(tier < level->tier_count);
    return tier;
}

const struct level *level_of_axis(const struct machine *machine, uint32_t axis)
{
    uint8_t const level = machine->axis_level[axis];
    return level == LEVEL_NONE ? NULL : &machine->level[level];
}

struct level_along level_along(const struct machine *machine, uint32_t axis, uint32_t links)
{
    const struct level *level = level_of_axis(machine, axis);
    SIM_ASSERT(level != NULL);
    uint32_t const top = tier_along(level, axis, links);
    return (struct level_along){
        .share = level_least_share(machine, level, top),
        .pair_bytes_per_s = level_pair_bytes_per_s(level, top),
        .way_ps = level_way_ps(level, top),
    };
}

bool level_tier_queues(const struct level *level, uint32_t tier)
{
    SIM_ASSERT(tier < level->tier_count);
    const struct level_tier *own = &level->tier[tier];
    if (tier == 0 || own->policy != LEVEL_SPRAY) return true;
    const struct level_tier *below = &level->tier[tier - 1];
    units_wide feeders = 1;
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++)
        feeders *= below->box[axis] / box_length(level, (int32_t)tier - 2, axis);
    return (units_wide)level_bundle_bytes_per_s(own) < feeders * level_bundle_bytes_per_s(below);
}

/* The finaliser of splitmix64, as in digest.h. */
uint32_t level_hash_cable(uint64_t source, uint64_t target, uint32_t tier, uint32_t cable_count)
{
    uint64_t const mixed = digest_record((int64_t)tier + 1, source, target);
    return (uint32_t)((mixed >> 32) * cable_count >> 32);
}

uint32_t level_pair_cable(const struct machine *machine, const uint32_t from[LEVEL_AXES_MAX],
                          const uint32_t to[LEVEL_AXES_MAX])
{
    uint32_t axis = 0;
    while (axis + 1 < machine->axis_count && from[axis] == to[axis]) axis++;
    SIM_ASSERT(from[axis] != to[axis]);
    return (to[axis] + machine->shape[axis] - from[axis]) % machine->shape[axis] - 1;
}

/* Whether a chip's cable depends on where it stands in such a way that a shift does not keep it. */
static bool scatters(const struct level_tier *tier, uint32_t length)
{
    if (tier->cable_count == 1) return false;
    if (tier->policy == LEVEL_HASH) return true;
    return tier->policy == LEVEL_RAIL && length > tier->cable_count &&
           length % tier->cable_count != 0;
}

uint32_t level_shift(uint32_t period, uint32_t box, uint32_t length)
{
    if (box >= length) return length;
    uint32_t const shift = units_common_multiple(period, box);
    return shift < length && length % shift == 0 ? shift : length;
}

uint32_t level_tier_period(const struct machine *machine, const struct level *level, uint32_t tier,
                           uint32_t axis)
{
    uint32_t const length = machine->shape[axis];
    if (scatters(&level->tier[tier], length)) return length;
    /* Its cables belong to the units below. Where these are several along the axis, it also decides
     * how far a message has to climb. */
    uint32_t const below = box_length(level, (int32_t)tier - 1, axis);
    bool const tells_apart = below < length && level->tier[tier].box[axis] > below;
    if (below > 1 && (tells_apart || level_tier_queues(level, tier)))
        return level_shift(1, below, length);
    return 1;
}

uint32_t level_period(const struct machine *machine, const struct level *level, uint32_t tier_count,
                      uint32_t axis)
{
    uint32_t period = 1;
    for (uint32_t tier = 0; tier < tier_count; tier++)
        period = level_shift(period, level_tier_period(machine, level, tier, axis),
                             machine->shape[axis]);
    return period;
}

uint32_t level_period_join(const struct machine *machine, const struct level *level,
                           uint32_t tier_count, uint32_t axis, uint32_t period)
{
    period = units_common_multiple(period, level_period(machine, level, tier_count, axis));
    for (uint32_t tier = 0; tier < level->tier_count; tier++) {
        uint32_t const box = level->tier[tier].box[axis];
        if (box < machine->shape[axis] && period % box != 0 && box % period != 0)
            period = units_common_multiple(period, box);
    }
    return period;
}
