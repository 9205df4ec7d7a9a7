#include "sim/choose/item_paths.h"

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

/* Chips along an axis after which what they do repeats. */
static uint32_t item_period(const struct item_paths *paths, const struct plan_item *item,
                            uint32_t axis)
{
    const struct machine *machine = paths->machine;
    uint32_t const length = machine->shape[axis];
    uint32_t index = 0;
    bool const grid = machine->axis_level[axis] == LEVEL_NONE;
    const struct group_dimension *at = dimension_on(paths->plan, item, axis, &index);
    if (grid && machine_is_twisted(machine) && !machine->wrap[axis]) return length;
    if (at == NULL) return 1;
    uint32_t shift = plan_item_shift(paths->plan, item, index);
    if ((paths->balance.by_sender >> axis & 1) != 0) shift = units_common_multiple(shift, 2);
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

static uint32_t levels_used(const struct item_paths *paths, const struct plan_item *item)
{
    uint32_t used = 0, index = 0;
    for (uint32_t axis = 0; axis < paths->machine->axis_count; axis++) {
        uint32_t const level = paths->machine->axis_level[axis];
        if (level != LEVEL_NONE && dimension_on(paths->plan, item, axis, &index) != NULL &&
            level + 1 > used)
            used = level + 1;
    }
    return used;
}

static void tiers_build(struct item_paths *paths)
{
    for (uint32_t index = 0; index < paths->machine->level_count; index++) {
        const struct level *level = &paths->machine->level[index];
        for (uint32_t t = 0; t < level->tier_count; t++) {
            uint32_t const units = level_unit_count(paths->machine, level, (int32_t)t - 1);
            paths->tier_first[index][t] = paths->link_count;
            paths->tier_links[index][t] =
                units * paths->machine_paths.level[index].tier[t].cable_count;
            paths->link_count += 2 * paths->tier_links[index][t];
        }
    }
}

/* All but what depends on the number of chips that stand for others. */
static struct item_paths item_paths_begin(const struct machine *machine, const struct plan *plan,
                                          const struct plan_item *item)
{
    struct item_paths paths = {.machine = machine,
                               .plan = plan,
                               .balance = plan_item_balance(machine, plan, item),
                               .chip_count = 1};
    uint32_t const used = levels_used(&paths, item);
    uint32_t grid_axes = 0, index = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        const struct group_dimension *at = dimension_on(plan, item, axis, &index);
        paths.period[axis] = levels_period(machine, used, axis, item_period(&paths, item, axis));
        if (machine->link_override_count > 0) paths.period[axis] = machine->shape[axis];
        if (axis < machine->grid_axis_count && at != NULL) grid_axes |= 1u << axis;
    }
    paths.twisted = machine_is_twisted(machine) && (grid_axes & (grid_axes - 1)) != 0;
    paths.longest = path_links_most(machine, grid_axes);
    return paths;
}

bool item_paths_build(struct arena *arena, const struct machine *machine, const struct plan *plan,
                      const struct plan_item *item, uint32_t chips_max,
                      struct item_paths *ret_paths)
{
    struct error error;
    struct item_paths paths = item_paths_begin(machine, plan, item);
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        if (paths.period[axis] > chips_max / paths.chip_count) return false;
        paths.chip_count *= paths.period[axis];
    }
    paths.at = arena_take(arena, paths.chip_count, sizeof *paths.at);
    if (paths.at == NULL) return false;
    for (uint32_t chip = 0; chip < paths.chip_count; chip++) {
        uint32_t rest = chip;
        for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0; rest /= paths.period[axis])
            paths.at[chip].axis[axis] = rest % paths.period[axis];
    }
    paths.link_count = paths.chip_count * MACHINE_GRID_PORTS;
    if (paths_build(arena, machine, &paths.machine_paths, &error) != STATUS_OK ||
        paths_rates_build(arena, &paths.machine_paths, &error) != STATUS_OK)
        return false;
    tiers_build(&paths);
    *ret_paths = paths;
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

uint64_t item_paths_message_count(const struct machine *machine, const struct plan *plan)
{
    uint32_t period[MACHINE_AXES_MAX] = {1, 1, 1, 1};
    uint64_t sends = 0, chips = 1;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        struct item_paths const paths = item_paths_begin(machine, plan, &plan->item[i]);
        sends += sends_of(plan, &plan->item[i]) / boxes_of(plan, &plan->item[i]);
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
            period[axis] = units_common_multiple(period[axis], paths.period[axis]);
    }
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) chips *= period[axis];
    return chips * sends;
}

uint32_t item_paths_chip(const struct item_paths *paths, const uint32_t at[MACHINE_AXES_MAX])
{
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        chip = chip * paths->period[axis] + at[axis] % paths->period[axis];
    return chip;
}

/* The number of a link, among the links of the chips that stand for all. */
static uint32_t link_number(const struct item_paths *paths, struct path_course course,
                            const struct path_link *link)
{
    if (course.level == LEVEL_NONE)
        return item_paths_chip(paths, link->at) * MACHINE_GRID_PORTS + link->port;
    uint32_t at[MACHINE_AXES_MAX];
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        at[axis] = link->at[axis] % paths->period[axis];
    const struct path_level *level = &paths->machine_paths.level[course.level];
    uint32_t const unit = level_unit(paths->machine, level->level, (int32_t)link->tier - 1, at);
    uint32_t const first = paths->tier_first[course.level][link->tier] +
                           (link->down ? paths->tier_links[course.level][link->tier] : 0);
    return first + unit * level->tier[link->tier].cable_count + link->cable;
}

double item_paths_overhead_s(const struct item_paths *paths, const struct plan_protocol *protocol,
                             uint32_t network)
{
    return units_seconds(paths->machine->chip.launch.message_ps + protocol->message_ps[network]);
}

uint32_t item_paths_find(const struct item_paths *paths, uint32_t from,
                         const uint32_t to[MACHINE_AXES_MAX], struct item_path_link *ret_link)
{
    uint32_t network;
    uint32_t const count = item_paths_links(paths, from, to, ret_link, &network);
    ret_link[0].latency_s += item_paths_overhead_s(paths, &paths->plan->protocol, network);
    return count;
}

uint32_t item_paths_links(const struct item_paths *paths, uint32_t from,
                          const uint32_t to[MACHINE_AXES_MAX], struct item_path_link *ret_link,
                          uint32_t *ret_network)
{
    const uint32_t *here = paths->at[from].axis;
    struct path_course course = path_course(&paths->machine_paths, here, to);
    course.twisted = paths->twisted;
    course.antipode =
        path_antipode_of(&paths->balance, here) | path_antipode_by(&paths->balance, here, to);
    struct path_link link = {.last = false};
    uint32_t count = 0;
    while (!link.last) {
        path_link(&paths->machine_paths, course, here, to, count, &link);
        struct path_rate const rate = path_rate(&paths->machine_paths, course, &link, count);
        ret_link[count++] =
            (struct item_path_link){link_number(paths, course, &link), (double)rate.bytes_per_s,
                                    units_seconds(rate.latency_ps)};
    }
    *ret_network = course.level == LEVEL_NONE ? 0 : 1 + course.level;
    return count;
}

uint32_t item_paths_wire(const struct item_paths *paths, uint32_t link)
{
    if (link < paths->chip_count * MACHINE_GRID_PORTS) return link % MACHINE_GRID_PORTS / 2;
    uint32_t index = paths->machine->level_count - 1;
    while (paths->tier_first[index][0] > link) index--;
    return MACHINE_AXES_MAX + index;
}
