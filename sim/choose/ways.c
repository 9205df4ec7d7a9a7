#include "sim/choose/ways.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

/* The dimension of the item along an axis, or NULL. */
static const struct group_dimension *dimension_on(const struct plan *plan,
                                                  const struct plan_item *item, uint32_t axis,
                                                  uint32_t *ret_index)
{
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        *ret_index = d;
        if (plan->group.dimension[d].axis == axis && (item->flat || item->dimension == d))
            return &plan->group.dimension[d];
    }
    return NULL;
}

/* As fold_antipode_axis(): by the displacement along another even ring, else by the sender. */
static void antipodes_find(const struct plan_item *item, struct ways *ways)
{
    uint32_t index = 0;
    for (uint32_t axis = 0; axis < ways->machine->grid_axis_count; axis++) {
        const struct group_dimension *at = dimension_on(ways->plan, item, axis, &index);
        if (at != NULL && ways->machine->wrap[axis] && at->size % 2 == 0 &&
            at->size * at->stride == ways->machine->shape[axis])
            ways->antipodes |= (uint8_t)(1u << axis);
    }
    for (uint32_t axis = 0; axis < ways->machine->grid_axis_count; axis++) {
        uint32_t const others = ways->antipodes & ~(1u << axis);
        ways->antipode_by[axis] = (uint8_t)(others != 0 ? __builtin_ctz(others) : (int)axis);
    }
}

/* Chips along an axis after which what they do repeats. */
static uint32_t item_period(const struct ways *ways, const struct plan_item *item, uint32_t axis)
{
    const struct machine *machine = ways->machine;
    uint32_t const length = machine->shape[axis];
    uint32_t index = 0;
    bool const grid = machine->axis_level[axis] == LEVEL_NONE;
    const struct group_dimension *at = dimension_on(ways->plan, item, axis, &index);
    if (grid && machine_is_twisted(machine) && !machine->wrap[axis]) return length;
    if (at == NULL) return 1;
    uint32_t shift = plan_item_shift(ways->plan, item, index);
    if ((ways->antipodes >> axis & 1) != 0 && ways->antipode_by[axis] == axis)
        shift = units_common_multiple(shift, 2);
    return shift == 1 ? 1 : shift * at->stride;
}

/* As in the fold: units of the levels in use go to units, and do not overlap the period in part. */
static uint32_t levels_period(const struct machine *machine, uint32_t used, uint32_t axis,
                              uint32_t period)
{
    uint32_t const length = machine->shape[axis];
    for (uint32_t index = 0; index < used; index++) {
        const struct level *level = &machine->level[index];
        period = level_period_join(machine, level, level->tier_count, axis, period);
    }
    return length % period == 0 ? period : length;
}

static uint32_t levels_used(const struct ways *ways, const struct plan_item *item)
{
    uint32_t used = 0, index = 0;
    for (uint32_t axis = 0; axis < ways->machine->axis_count; axis++) {
        uint32_t const level = ways->machine->axis_level[axis];
        if (level != LEVEL_NONE && dimension_on(ways->plan, item, axis, &index) != NULL &&
            level + 1 > used)
            used = level + 1;
    }
    return used;
}

static bool is_bundle(const struct level_tier *tier, uint32_t number)
{
    return tier->policy == LEVEL_SPRAY || tier->cable_count == 1 ||
           (tier->policy == LEVEL_RAIL && number == 0);
}

static void tiers_build(struct ways *ways)
{
    for (uint32_t index = 0; index < ways->machine->level_count; index++) {
        const struct level *level = &ways->machine->level[index];
        for (uint32_t t = 0; t < level->tier_count; t++) {
            const struct level_tier *tier = &level->tier[t];
            uint32_t const units = level_unit_count(ways->machine, level, (int32_t)t - 1);
            ways->tier_first[index][t] = ways->link_count;
            ways->tier_links[index][t] = units * (is_bundle(tier, t) ? 1 : tier->cable_count);
            ways->link_count += 2 * ways->tier_links[index][t];
        }
    }
}

/* All but what depends on the number of chips that are played. */
static struct ways ways_begin(const struct machine *machine, const struct plan *plan,
                              const struct plan_item *item)
{
    struct ways ways = {.machine = machine, .plan = plan, .chip_count = 1};
    uint32_t const used = levels_used(&ways, item);
    uint32_t grid_axes = 0, index = 0;
    antipodes_find(item, &ways);
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        const struct group_dimension *at = dimension_on(plan, item, axis, &index);
        ways.stride[axis] = at == NULL ? 1 : at->stride;
        ways.period[axis] = levels_period(machine, used, axis, item_period(&ways, item, axis));
        if (machine->link_override_count > 0) ways.period[axis] = machine->shape[axis];
        if (axis >= machine->grid_axis_count || at == NULL) continue;
        ways.longest += machine->shape[axis] / (machine->wrap[axis] ? 2 : 1);
        grid_axes++;
    }
    ways.twisted = machine_is_twisted(machine) && grid_axes > 1;
    if (ways.longest < 2 * LEVEL_TIERS_MAX) ways.longest = 2 * LEVEL_TIERS_MAX;
    return ways;
}

/* Chips are those of the machine, each itself. */
static bool grid_build(struct arena *arena, struct ways *ways)
{
    const struct machine *machine = ways->machine;
    uint32_t const links = ways->chip_count * MACHINE_GRID_PORTS;
    if (machine->link_override_count == 0) return true;
    ways->grid = arena_take(arena, links, sizeof *ways->grid);
    if (ways->grid == NULL) return false;
    for (uint32_t link = 0; link < links; link++)
        ways->grid[link] =
            (struct ways_grid_link){machine->chip.ici_bytes_per_s, machine->chip.hop_latency_ps};
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *odd = &machine->links[i];
        struct ways_grid_link *link =
            &ways->grid[ways_chip(ways, odd->from) * MACHINE_GRID_PORTS +
                        machine_port_between(machine, odd->from, odd->to)];
        if (odd->bytes_per_s != 0) link->bytes_per_s = odd->bytes_per_s;
        if (odd->latency_ps != 0) link->latency_ps = odd->latency_ps;
    }
    return true;
}

bool ways_build(struct arena *arena, const struct machine *machine, const struct plan *plan,
                const struct plan_item *item, uint32_t chips_max, struct ways *ret_ways)
{
    struct ways ways = ways_begin(machine, plan, item);
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        if (ways.period[axis] > chips_max / ways.chip_count) return false;
        ways.chip_count *= ways.period[axis];
    }
    ways.at = arena_take(arena, ways.chip_count, sizeof *ways.at);
    if (ways.at == NULL) return false;
    for (uint32_t chip = 0; chip < ways.chip_count; chip++) {
        uint32_t rest = chip;
        for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0; rest /= ways.period[axis])
            ways.at[chip].axis[axis] = rest % ways.period[axis];
    }
    ways.link_count = ways.chip_count * MACHINE_GRID_PORTS;
    if (!grid_build(arena, &ways)) return false;
    tiers_build(&ways);
    *ret_ways = ways;
    return true;
}

/* Of an item on the average rank. */
static uint64_t sends_of(const struct plan *plan, const struct plan_item *item)
{
    uint64_t sends = 0;
    for (uint32_t l = 0; l < item->primitive->lane_count; l++)
        for (uint32_t at = 0; at < item->size; at++)
            sends += plan->lane[item->lane_first + l].send_count[at];
    return (sends + item->size - 1) / item->size * item->piece_count;
}

/* Of which one, the root's, takes part. */
static uint64_t boxes_of(const struct plan *plan, const struct plan_item *item)
{
    uint64_t boxes = 1;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if ((item->at_root >> d & 1) != 0) boxes *= plan->group.dimension[d].size;
    return boxes;
}

uint64_t ways_message_count(const struct machine *machine, const struct plan *plan)
{
    uint32_t period[MACHINE_AXES_MAX] = {1, 1, 1, 1};
    uint64_t sends = 0, chips = 1;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        struct ways const ways = ways_begin(machine, plan, &plan->item[i]);
        sends += sends_of(plan, &plan->item[i]) / boxes_of(plan, &plan->item[i]);
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
            period[axis] = units_common_multiple(period[axis], ways.period[axis]);
    }
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) chips *= period[axis];
    return chips * sends;
}

uint32_t ways_chip(const struct ways *ways, const uint32_t at[MACHINE_AXES_MAX])
{
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        chip = chip * ways->period[axis] + at[axis] % ways->period[axis];
    return chip;
}

/* Links found so far. */
struct way {
    struct way_link *link;
    uint32_t count;
};

static void link_add(struct way *way, uint32_t link, double bytes_per_s, int64_t latency_ps)
{
    way->link[way->count++] = (struct way_link){link, bytes_per_s, units_seconds(latency_ps)};
}

/* The way round that an axis is taken, as hops: negative towards lower coordinates. */
static int32_t hops_along(const struct ways *ways, uint32_t axis, const uint32_t *from,
                          const uint32_t *to)
{
    int32_t const length = (int32_t)ways->machine->shape[axis];
    int32_t hops = (int32_t)to[axis] - (int32_t)from[axis];
    if (!ways->machine->wrap[axis]) return hops;
    if (hops < 0) hops += length;
    if (2 * hops != length) return 2 * hops > length ? hops - length : hops;
    uint32_t const by = ways->antipode_by[axis];
    uint32_t const odd =
        by == axis ? from[axis] / ways->stride[axis] : (from[by] + to[by]) / ways->stride[by];
    bool const back = (ways->antipodes >> axis & 1) != 0 && odd % 2 != 0;
    return back ? -hops : hops;
}

static void grid_find(const struct ways *ways, const uint32_t *from, const uint32_t *to,
                      struct way *way)
{
    const struct machine *machine = ways->machine;
    uint32_t here[MACHINE_AXES_MAX], next[MACHINE_AXES_MAX];
    int32_t hops[CHIP_AXES_MAX] = {0};
    memcpy(here, from, sizeof here);
    if (ways->twisted) {
        machine_hops(machine, from, to, hops);
    } else {
        for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
            hops[axis] = hops_along(ways, axis, from, to);
    }
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++) {
        uint32_t const port = machine_port(axis, hops[axis] < 0);
        for (int32_t hop = abs(hops[axis]); hop > 0; hop--) {
            uint32_t const link = ways_chip(ways, here) * MACHINE_GRID_PORTS + port;
            struct ways_grid_link const own =
                ways->grid != NULL ? ways->grid[link]
                                   : (struct ways_grid_link){machine->chip.ici_bytes_per_s,
                                                             machine->chip.hop_latency_ps};
            link_add(way, link, (double)own.bytes_per_s, own.latency_ps);
            machine_neighbour(machine, here, port, next);
            memcpy(here, next, sizeof here);
        }
    }
}

/* The place of a chip's unit two tiers below in the unit below, by which RAIL chooses. */
static uint32_t rail_of(const struct machine *machine, const struct level *level, uint32_t t,
                        const uint32_t *at)
{
    uint32_t place = 0;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        uint32_t const length = machine->shape[axis];
        uint32_t outer = level->tier[t - 1].box[axis];
        uint32_t inner = t < 2 ? 1 : level->tier[t - 2].box[axis];
        outer = outer < length ? outer : length;
        inner = inner < length ? inner : length;
        place = place * ((outer + inner - 1) / inner) + at[axis] % outer / inner;
    }
    return place;
}

static void tier_add(const struct ways *ways, uint32_t index, uint32_t t, bool down,
                     const uint32_t *from, const uint32_t *to, struct way *way)
{
    const struct machine *machine = ways->machine;
    const struct level *level = &machine->level[index];
    const struct level_tier *tier = &level->tier[t];
    if (!level_tier_queues(level, t)) {
        way->link[way->count - 1].latency_s += units_seconds(tier->latency_ps);
        return;
    }
    uint32_t at[MACHINE_AXES_MAX], cable = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        at[axis] = (down ? to : from)[axis] % ways->period[axis];
    bool const bundle = is_bundle(tier, t);
    if (!bundle && tier->policy == LEVEL_HASH)
        cable = level_hash_cable(machine_chip_at(machine, from), machine_chip_at(machine, to), t,
                                 tier->cable_count);
    else if (!bundle && tier->policy == LEVEL_PAIR)
        cable = level_pair_cable(machine, from, to);
    else if (!bundle)
        cable = rail_of(machine, level, t, from) % tier->cable_count;
    uint32_t const unit = level_unit(machine, level, (int32_t)t - 1, at);
    uint32_t const link = ways->tier_first[index][t] + (down ? ways->tier_links[index][t] : 0) +
                          unit * (bundle ? 1 : tier->cable_count) + cable;
    link_add(way, link, (double)tier->cable_bytes_per_s * (bundle ? tier->cable_count : 1),
             tier->latency_ps);
}

uint32_t ways_find(const struct ways *ways, uint32_t from, const uint32_t to[MACHINE_AXES_MAX],
                   struct way_link *ret_link)
{
    const struct machine *machine = ways->machine;
    const uint32_t *here = ways->at[from].axis;
    struct way way = {.link = ret_link};
    bool in_grid = machine->grid_axis_count > 0;
    uint32_t network = 0;
    for (uint32_t axis = machine->grid_axis_count; axis < MACHINE_AXES_MAX; axis++)
        in_grid = in_grid && here[axis] == to[axis];
    if (in_grid) {
        grid_find(ways, here, to, &way);
    } else {
        while (level_meeting_tier(&machine->level[network], here, to) >=
               machine->level[network].tier_count)
            network++;
        uint32_t const top = level_meeting_tier(&machine->level[network], here, to);
        for (uint32_t t = 0; t <= top; t++) tier_add(ways, network, t, false, here, to, &way);
        for (uint32_t t = top + 1; t-- > 0;) tier_add(ways, network, t, true, here, to, &way);
        network++;
    }
    ret_link[0].latency_s +=
        units_seconds(machine->chip.message_overhead_ps + ways->plan->protocol.message_ps[network]);
    return way.count;
}

uint32_t ways_wire(const struct ways *ways, uint32_t link)
{
    if (link < ways->chip_count * MACHINE_GRID_PORTS) return link % MACHINE_GRID_PORTS / 2;
    uint32_t index = ways->machine->level_count - 1;
    while (ways->tier_first[index][0] > link) index--;
    return MACHINE_AXES_MAX + index;
}
