#include "sim/machine/totals.h"

#include "sim/base/units.h"

/* Units of the tier below in one whole unit. */
static uint32_t units_below(const struct machine *machine, const struct level *level, uint32_t tier)
{
    uint32_t units = 1;
    for (uint32_t axis = 0; axis < LEVEL_AXES_MAX; axis++) {
        uint32_t const own = level_box_length(machine, level, (int32_t)tier, axis);
        uint32_t const below = level_box_length(machine, level, (int32_t)tier - 1, axis);
        units *= (uint32_t)units_ceil_divide(own, below);
    }
    return units;
}

/* As the chip has them, where cables of a tier are what joins two GPUs (network.c). */
static uint32_t links_per_cable(const struct machine *machine, uint32_t level)
{
    const struct chip_network *network = &machine->chip.network;
    bool const is_mesh =
        level == 0 && machine->chip.kind == CHIP_GPU && machine_lacks_switch(machine, 0);
    return is_mesh && network->node_chips > 1 ? network->nvlink_count / (network->node_chips - 1)
                                              : 1;
}

void totals_of_tier(const struct machine *machine, uint32_t level_index, uint32_t tier_index,
                    struct tier_totals *ret_totals)
{
    const struct level *level = &machine->level[level_index];
    const struct level_tier *tier = &level->tier[tier_index];
    uint32_t const below = units_below(machine, level, tier_index);
    uint32_t const up =
        tier_index + 1 < level->tier_count ? level->tier[tier_index + 1].cable_count : 0;
    struct tier_totals totals = {
        .unit_count = level_unit_count(machine, level, (int32_t)tier_index),
        .links_per_cable = links_per_cable(machine, level_index),
        .pair_bytes_per_s = level_pair_bytes_per_s(level, tier_index),
        .share_bytes_per_s = level_share_bytes_per_s(level_least_share(machine, level, tier_index)),
    };
    totals.switch_count = (uint64_t)totals.unit_count * tier->switch_count;
    totals.ports_used =
        (uint32_t)(below * units_ceil_divide(tier->cable_count, tier->switch_count) +
                   units_ceil_divide(up, tier->switch_count));
    totals.cable_count =
        (uint64_t)level_unit_count(machine, level, (int32_t)tier_index - 1) * tier->cable_count;
    totals.cable_bytes_per_s = totals.cable_count * tier->cable_bytes_per_s;
    totals.switch_bytes_per_s = totals.switch_count * tier->switch_ports * tier->cable_bytes_per_s;
    totals.unit_bytes_per_s = below * level_bundle_bytes_per_s(tier);
    *ret_totals = totals;
}

/* Across the middle of the axis where the fewest links are cut; a ring is cut twice. */
static uint64_t grid_bisection(const struct machine *machine)
{
    uint64_t least = 0;
    uint64_t chips = 1;
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) chips *= machine->shape[axis];
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        if (machine->shape[axis] < 2) continue;
        bool const around = machine->wrap[axis] || machine_twists(machine, axis);
        uint64_t cut = chips / machine->shape[axis] * (around ? 2 : 1);
        /* A shift by half of the axis changes sides. */
        for (uint32_t other = 0; other < machine->grid_axis_count; other++)
            if (2 * machine->twist[other][axis] == machine->shape[axis])
                cut += chips / machine->shape[other];
        if (least == 0 || cut < least) least = cut;
    }
    return least * machine->chip.ici_bytes_per_s;
}

/* Links of a chip along an axis of the grid, of those that have the most: on an open axis of two
 * nobody has a neighbour on both sides. */
static uint64_t links_along(const struct machine *machine, uint32_t axis)
{
    bool const around = machine->wrap[axis] || machine_twists(machine, axis);
    if (machine->shape[axis] < 2) return 0;
    return machine->shape[axis] == 2 && !around ? 1 : 2;
}

void totals_of_machine(const struct machine *machine, struct machine_totals *ret_totals)
{
    const struct chip_network *network = &machine->chip.network;
    bool const gpu = machine->chip.kind == CHIP_GPU;
    bool const far = machine->level_count > (gpu ? 1u : 0u);
    struct machine_totals totals = {
        .slice_bisection_bytes_per_s = gpu ? 0 : grid_bisection(machine),
    };
    if (gpu) {
        totals.chip_egress_bytes_per_s = network->nvlink_count * network->nvlink_bytes_per_s;
        totals.unit_egress_bytes_per_s = (uint64_t)machine->shape[0] / network->nic_chips *
                                         network->nic_count * network->nic_bytes_per_s;
    } else {
        for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
            totals.chip_egress_bytes_per_s +=
                links_along(machine, axis) * machine->chip.ici_bytes_per_s;
        totals.unit_egress_bytes_per_s = network->nic_bytes_per_s;
    }
    for (uint32_t level = 0; level < machine->level_count; level++)
        for (uint32_t tier = 0; tier < machine->level[level].tier_count; tier++) {
            struct tier_totals own;
            totals_of_tier(machine, level, tier, &own);
            if (machine->level[level].tier[tier].switch_ports != 0)
                totals.switch_count += own.switch_count;
        }
    totals.bisection_bytes_per_s = totals.slice_bisection_bytes_per_s;
    if (gpu || far) {
        struct tier_totals top;
        uint32_t const level = machine->level_count - 1;
        totals_of_tier(machine, level, machine->level[level].tier_count - 1, &top);
        totals.bisection_bytes_per_s = machine->chip_count / 2 * top.share_bytes_per_s;
        /* Without a switch only the links to the other half lead across. */
        if (machine->level[level].tier[0].policy == LEVEL_PAIR)
            totals.bisection_bytes_per_s = (uint64_t)(machine->chip_count / 2) *
                                           (machine->chip_count - machine->chip_count / 2) *
                                           machine->level[level].tier[0].cable_bytes_per_s;
    }
    *ret_totals = totals;
}
