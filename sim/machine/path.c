#include "sim/machine/path.h"

#include <string.h>

#include "sim/base/arena.h"

static enum status table_take(struct arena *arena, uint32_t length, uint32_t **ret_table,
                              struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, length, sizeof(uint32_t), &memory, reterr));
    *ret_table = memory;
    return STATUS_OK;
}

/* The tables of one axis. RAIL chooses by the place of a chip's unit two tiers below in the unit
 * below: `*rails` such places so far. */
static enum status axis_build(struct arena *arena, const struct paths *paths,
                              struct path_level *level, uint32_t t, uint32_t axis, uint32_t *rails,
                              struct error *reterr)
{
    const struct machine *machine = paths->machine;
    struct path_tier *tier = &level->tier[t];
    uint32_t const length = machine->shape[axis];
    uint32_t const own = level_box_length(machine, level->level, (int32_t)t, axis);
    uint32_t const outer = level_box_length(machine, level->level, (int32_t)t - 1, axis);
    uint32_t const inner =
        t < 2 ? 1 : level_box_length(machine, level->level, (int32_t)t - 2, axis);
    STATUS_TRY(table_take(arena, length, &tier->unit_at[axis], reterr));
    STATUS_TRY(table_take(arena, length, &tier->rail[axis], reterr));
    for (uint32_t at = 0; at < length; at++) {
        tier->unit_at[axis][at] = at / own;
        tier->rail[axis][at] = at % outer / inner * *rails;
    }
    *rails *= (outer + inner - 1) / inner;
    return STATUS_OK;
}

static enum status tier_build(struct arena *arena, const struct paths *paths,
                              struct path_level *level, uint32_t t, struct error *reterr)
{
    struct path_tier *tier = &level->tier[t];
    uint32_t rails = 1;
    tier->queues = level_tier_queues(level->level, t);
    tier->cable_count = level_queue_count(level->level, t);
    tier->bytes_per_s = level_queue_bytes_per_s(level->level, t);
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;)
        STATUS_TRY(axis_build(arena, paths, level, t, axis, &rails, reterr));
    return STATUS_OK;
}

/* Up from tier to tier and down again. */
static void climb_build(const struct path_level *level, uint32_t top, struct path_climb *climb)
{
    for (uint32_t step = 0; step < 2 * (top + 1); step++) {
        bool const down = step > top;
        uint32_t const t = down ? 2 * top + 1 - step : step;
        if (level->tier[t].queues)
            climb->stop[climb->stop_count++] = (struct path_stop){.tier = (uint8_t)t, .down = down};
        climb->stop[climb->stop_count - 1].latency_ps += level->level->tier[t].latency_ps;
    }
}

enum status paths_build(struct arena *arena, const struct machine *machine, struct paths *ret_paths,
                        struct error *reterr)
{
    struct paths paths = {.machine = machine,
                          .grid_axes = machine->grid_axis_count,
                          .level_count = machine->level_count};
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
        if (machine->wrap[axis]) paths.length[axis] = machine->shape[axis];
    if (machine_is_twisted(machine)) STATUS_TRY(paths_twisted_build(arena, &paths, reterr));
    for (uint32_t index = 0; index < machine->level_count; index++) {
        struct path_level *level = &paths.level[index];
        level->level = &machine->level[index];
        for (uint32_t t = 0; t < level->level->tier_count; t++)
            STATUS_TRY(tier_build(arena, &paths, level, t, reterr));
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
            if (level->level->tier[level->level->tier_count - 1].box[axis] > 1)
                level->axes |= 1u << axis;
        for (uint32_t t = 0; t < level->level->tier_count; t++)
            climb_build(level, t, &level->climb[t]);
    }
    *ret_paths = paths;
    return STATUS_OK;
}

enum status paths_rates_build(struct arena *arena, struct paths *paths, struct error *reterr)
{
    const struct machine *machine = paths->machine;
    uint64_t const links = (uint64_t)machine->chip_count * MACHINE_GRID_PORTS;
    void *memory = NULL;
    if (machine->link_override_count == 0) return STATUS_OK;
    STATUS_TRY(arena_try(arena, links, sizeof *paths->overridden, &memory, reterr));
    paths->overridden = memory;
    for (uint64_t link = 0; link < links; link++)
        paths->overridden[link] =
            (struct path_rate){machine->chip.ici_bytes_per_s, machine->chip.hop_latency_ps};
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        uint64_t const chip = machine_chip_at(machine, link->from);
        struct path_rate *rate =
            &paths->overridden[chip * MACHINE_GRID_PORTS +
                               machine_port_between(machine, link->from, link->to)];
        machine_override_rate(machine, link, &rate->bytes_per_s, &rate->latency_ps);
    }
    return STATUS_OK;
}

uint32_t path_links_most(const struct machine *machine, uint32_t axes)
{
    uint32_t most = 0;
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
        if (axes >> axis & 1) most += machine->shape[axis] / (machine->wrap[axis] ? 2 : 1);
    return most > PATH_STOPS_MAX ? most : PATH_STOPS_MAX;
}

struct path_course path_course(const struct paths *paths, const uint32_t from[MACHINE_AXES_MAX],
                               const uint32_t to[MACHINE_AXES_MAX])
{
    uint32_t differ = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        differ |= (uint32_t)(from[axis] != to[axis]) << axis;
    if (paths->grid_axes > 0 && differ >> paths->grid_axes == 0)
        return (struct path_course){.level = LEVEL_NONE};
    for (uint32_t index = 0; index < paths->level_count; index++) {
        const struct path_level *level = &paths->level[index];
        uint32_t top = 0;
        if ((differ & ~level->axes) != 0) continue;
        for (uint32_t axes = differ; axes != 0; axes &= axes - 1) {
            uint32_t const axis = (uint32_t)__builtin_ctz(axes);
            top = path_top(level, axis, from[axis], to[axis], top);
        }
        if (top < level->level->tier_count) return (struct path_course){.level = index, .top = top};
    }
    SIM_ASSERT(false); /* Who sends has checked that a level joins them. */
    return (struct path_course){.level = LEVEL_NONE};
}

struct path_hops path_hops(const struct paths *paths, struct path_course course,
                           const uint32_t from[MACHINE_AXES_MAX],
                           const uint32_t to[MACHINE_AXES_MAX])
{
    struct path_hops hops = {{0}};
    if (course.twisted) {
        int32_t by[CHIP_AXES_MAX];
        for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
            by[axis] = (int32_t)to[axis] - (int32_t)from[axis];
        return *path_twisted_hops(paths, by);
    }
    for (uint32_t axis = 0; axis < paths->grid_axes; axis++)
        if (from[axis] != to[axis])
            hops.by[axis] = path_hops_along(paths->length[axis], from[axis], to[axis],
                                            course.antipode >> axis & 1);
    return hops;
}

/* The chip that a hop leaves, where no link goes around an axis into another line. */
static inline void leg_place(const struct paths *paths, const struct path_leg *leg,
                             const uint32_t *from, const uint32_t *to, uint32_t *ret_at)
{
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        ret_at[axis] = (leg->done >> axis & 1 ? to : from)[axis];
    uint32_t const length = paths->length[leg->axis];
    uint32_t at = from[leg->axis] + (leg->back ? 0 - leg->by : leg->by);
    if (length != 0 && at >= length) at += leg->back ? length : 0 - length;
    ret_at[leg->axis] = at;
}

static void leg_place_twisted(const struct paths *paths, const struct path_leg *leg,
                              const struct path_hops *hops, const uint32_t *from, uint32_t *ret_at)
{
    int32_t at[CHIP_AXES_MAX];
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        at[axis] = (int32_t)from[axis] + (leg->done >> axis & 1 ? hops->by[axis] : 0);
    at[leg->axis] += leg->back ? -(int32_t)leg->by : (int32_t)leg->by;
    path_twisted_reduce(paths->machine, at);
    memcpy(ret_at, from, MACHINE_AXES_MAX * sizeof *ret_at);
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) ret_at[axis] = (uint32_t)at[axis];
}

uint32_t path_cable(const struct paths *paths, const struct path_level *level, uint32_t tier,
                    const uint32_t from[MACHINE_AXES_MAX], const uint32_t to[MACHINE_AXES_MAX])
{
    const struct path_tier *own = &level->tier[tier];
    enum level_policy const policy = level->level->tier[tier].policy;
    if (own->cable_count == 1) return 0;
    if (policy == LEVEL_PAIR) return level_pair_cable(paths->machine, from, to);
    if (policy == LEVEL_HASH)
        return level_hash_cable(machine_chip_at(paths->machine, from),
                                machine_chip_at(paths->machine, to), tier, own->cable_count);
    uint32_t rail = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) rail += own->rail[axis][from[axis]];
    return rail % own->cable_count;
}

static void grid_link(const struct paths *paths, struct path_course course, const uint32_t *from,
                      const uint32_t *to, uint32_t hop, struct path_link *ret_link)
{
    struct path_hops const hops = path_hops(paths, course, from, to);
    struct path_leg const leg = path_leg(&hops, hop);
    if (course.twisted)
        leg_place_twisted(paths, &leg, &hops, from, ret_link->at);
    else
        leg_place(paths, &leg, from, to, ret_link->at);
    ret_link->port = (uint8_t)machine_port(leg.axis, leg.back);
    ret_link->last = leg.last;
}

void path_link(const struct paths *paths, struct path_course course,
               const uint32_t from[MACHINE_AXES_MAX], const uint32_t to[MACHINE_AXES_MAX],
               uint32_t hop, struct path_link *ret_link)
{
    if (course.level == LEVEL_NONE) {
        grid_link(paths, course, from, to, hop, ret_link);
        return;
    }
    const struct path_level *level = &paths->level[course.level];
    const struct path_climb *climb = &level->climb[course.top];
    const struct path_stop *stop = &climb->stop[hop];
    memcpy(ret_link->at, stop->down ? to : from, sizeof ret_link->at);
    ret_link->cable = path_cable(paths, level, stop->tier, from, to);
    ret_link->port = (uint8_t)machine_level_port(course.level, stop->tier, stop->down);
    ret_link->tier = stop->tier;
    ret_link->down = stop->down;
    ret_link->last = hop + 1 == climb->stop_count;
}

struct path_rate path_rate(const struct paths *paths, struct path_course course,
                           const struct path_link *link, uint32_t hop)
{
    if (course.level != LEVEL_NONE) {
        const struct path_level *level = &paths->level[course.level];
        return (struct path_rate){level->tier[link->tier].bytes_per_s,
                                  level->climb[course.top].stop[hop].latency_ps};
    }
    const struct machine *machine = paths->machine;
    if (paths->overridden == NULL) {
        SIM_ASSERT(machine->link_override_count == 0); /* Else paths_rates_build() has run. */
        return (struct path_rate){machine->chip.ici_bytes_per_s, machine->chip.hop_latency_ps};
    }
    uint64_t const chip = machine_chip_at(machine, link->at);
    return paths->overridden[chip * MACHINE_GRID_PORTS + link->port];
}
