#include "sim/replay/route.h"

#include "sim/base/arena.h"

static enum status table_take(struct arena *arena, uint32_t length, uint32_t **ret_table,
                              struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, length, sizeof(uint32_t), &memory, reterr));
    *ret_table = memory;
    return STATUS_OK;
}

static enum status places_build(struct arena *arena, const struct replay *replay,
                                struct routes *routes, struct error *reterr)
{
    const struct fold *fold = replay->fold;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *routes->places, &memory, reterr));
    routes->places = memory;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        fold_coordinates(fold, chip, routes->places[chip].at);
    uint32_t stride = 1;
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;) {
        uint32_t const length = replay->machine->shape[axis];
        STATUS_TRY(table_take(arena, length, &routes->chip[axis], reterr));
        for (uint32_t at = 0; at < length; at++)
            routes->chip[axis][at] = fold_along(fold, axis, at) * stride;
        stride *= fold->period[axis];
        if (axis < routes->grid_axes && replay->machine->wrap[axis]) routes->length[axis] = length;
    }
    return STATUS_OK;
}

/* How many coordinates of a unit below a tier are replayed: what is kept of those up to its length.
 */
static uint32_t replayed_below(const struct fold *fold, uint32_t axis, uint32_t below)
{
    uint32_t kept = 1;
    for (uint32_t i = 0; i < fold->run_count[axis]; i++) {
        const struct fold_run *run = &fold->run[axis][i];
        if (run->stride >= below) continue;
        kept *= run->stride * run->size > below ? below / run->stride : run->size;
    }
    return kept;
}

/* The tables of one axis. Units that a fold maps onto each other share a number. */
static enum status axis_build(struct arena *arena, const struct replay *replay, uint32_t index,
                              uint32_t t, uint32_t axis, struct error *reterr)
{
    struct level_links *links = &replay->routes->level[index];
    struct tier_links *tier = &links->tier[t];
    const struct level *level = links->level;
    const struct fold *fold = replay->fold;
    uint32_t const length = replay->machine->shape[axis];
    uint32_t const below = level_box_length(replay->machine, level, (int32_t)t - 1, axis);
    uint32_t const own = level_box_length(replay->machine, level, (int32_t)t, axis);
    uint32_t const outer = below;
    uint32_t const inner =
        t < 2 ? 1 : level_box_length(replay->machine, level, (int32_t)t - 2, axis);
    uint32_t const kept = replayed_below(fold, axis, below);
    uint32_t rails = 1;
    for (uint32_t later = axis + 1; later < MACHINE_AXES_MAX; later++) {
        uint32_t const around = level_box_length(replay->machine, level, (int32_t)t - 1, later);
        uint32_t const within =
            t < 2 ? 1 : level_box_length(replay->machine, level, (int32_t)t - 2, later);
        rails *= (around + within - 1) / within;
    }
    STATUS_TRY(table_take(arena, length, &tier->below[axis], reterr));
    STATUS_TRY(table_take(arena, length, &tier->rail[axis], reterr));
    STATUS_TRY(table_take(arena, length, &tier->unit_at[axis], reterr));
    for (uint32_t at = 0; at < length; at++) {
        tier->below[axis][at] = fold_along(fold, axis, at) / kept * tier->unit_count;
        tier->rail[axis][at] = at % outer / inner * rails;
        tier->unit_at[axis][at] = at / own;
    }
    tier->whole *= below / kept;
    tier->unit_count *= (fold->period[axis] + kept - 1) / kept;
    return STATUS_OK;
}

static enum status tier_build(struct arena *arena, struct replay *replay, uint32_t index,
                              uint32_t t, struct error *reterr)
{
    struct level_links *links = &replay->routes->level[index];
    struct tier_links *tier = &links->tier[t];
    const struct level_tier *own = &links->level->tier[t];
    /* A chip has no place below it to choose a rail by: its own cables are a bundle. */
    bool const bundled = own->policy == LEVEL_SPRAY || own->cable_count == 1 ||
                         (own->policy == LEVEL_RAIL && t == 0);
    tier->queues = level_tier_queues(links->level, t);
    tier->policy = (uint8_t)own->policy;
    tier->cable_count = bundled ? 1 : own->cable_count;
    tier->unit_count = 1;
    tier->whole = 1;
    tier->kind = (uint8_t)(replay->fold->link_class_count + index * LEVEL_TIERS_MAX + t);
    replay->routes->rate[tier->kind] = own->cable_bytes_per_s * (bundled ? own->cable_count : 1);
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;)
        STATUS_TRY(axis_build(arena, replay, index, t, axis, reterr));
    uint64_t const count = (uint64_t)tier->unit_count * tier->cable_count;
    STATUS_TRY(table_take(arena, tier->unit_count, &tier->first_chip, reterr));
    for (uint32_t down = 0; down < 2; down++) {
        void *memory = NULL;
        STATUS_TRY(arena_try(arena, count, sizeof *tier->links[down], &memory, reterr));
        tier->links[down] = memory;
        STATUS_TRY(arena_try(arena, count, sizeof *tier->waits[down], &memory, reterr));
        tier->waits[down] = memory;
    }
    return STATUS_OK;
}

/* Up from tier to tier and down again. Between chips at least 1 ps passes. */
static void way_build(const struct level_links *links, uint32_t turn, struct route_way *way)
{
    for (uint32_t step = 0; step < 2 * (turn + 1); step++) {
        bool const down = step > turn;
        uint32_t const t = down ? 2 * turn + 1 - step : step;
        if (links->tier[t].queues)
            way->stop[way->stop_count++] = (struct route_stop){.tier = (uint8_t)t, .down = down};
        way->stop[way->stop_count - 1].latency_ps += links->level->tier[t].latency_ps;
    }
    for (uint32_t stop = 0; stop < way->stop_count; stop++)
        if (way->stop[stop].latency_ps < 1) way->stop[stop].latency_ps = 1;
}

enum status routes_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct machine *machine = replay->machine;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->routes, &memory, reterr));
    struct routes *routes = replay->routes = memory;
    routes->grid_axes = machine->grid_axis_count;
    routes->level_count = machine->level_count;
    routes->kind_count = replay->fold->link_class_count + machine->level_count * LEVEL_TIERS_MAX;
    for (uint32_t kind = 0; kind < replay->fold->link_class_count; kind++)
        routes->rate[kind] = replay->fold->link_classes[kind].bytes_per_s;
    STATUS_TRY(places_build(arena, replay, routes, reterr));
    if (machine_is_twisted(machine))
        STATUS_TRY(route_twisted_build(arena, machine, routes, reterr));
    for (uint32_t index = 0; index < machine->level_count; index++) {
        struct level_links *links = &routes->level[index];
        links->level = &machine->level[index];
        for (uint32_t t = 0; t < links->level->tier_count; t++)
            STATUS_TRY(tier_build(arena, replay, index, t, reterr));
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
            if (links->level->tier[links->level->tier_count - 1].box[axis] > 1)
                links->axes |= 1u << axis;
        for (uint32_t t = 0; t < links->level->tier_count; t++) way_build(links, t, &links->way[t]);
    }
    return STATUS_OK;
}

uint32_t route_links_most(const struct replay *replay, uint32_t axes)
{
    uint32_t most = 0;
    for (uint32_t axis = 0; axis < replay->machine->grid_axis_count; axis++)
        if (axes >> axis & 1)
            most += replay->machine->shape[axis] / (replay->machine->wrap[axis] ? 2 : 1);
    return most > ROUTE_STOPS_MAX ? most : ROUTE_STOPS_MAX;
}

struct route_course route_course(const struct routes *routes, const struct place *from,
                                 const struct place *to)
{
    uint32_t differ = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        differ |= (uint32_t)(from->at[axis] != to->at[axis]) << axis;
    if (routes->grid_axes > 0 && differ >> routes->grid_axes == 0)
        return (struct route_course){.level = LEVEL_NONE};
    for (uint32_t index = 0; index < routes->level_count; index++) {
        const struct level_links *links = &routes->level[index];
        uint32_t turn = 0;
        if ((differ & ~links->axes) != 0) continue;
        for (uint32_t axes = differ; axes != 0; axes &= axes - 1) {
            uint32_t const axis = (uint32_t)__builtin_ctz(axes);
            turn = route_turn(links, axis, from->at[axis], to->at[axis], turn);
        }
        if (turn < links->level->tier_count)
            return (struct route_course){.level = index, .turn = turn};
    }
    SIM_ASSERT(false); /* routed_tables.c has checked that a level joins them. */
    return (struct route_course){.level = LEVEL_NONE};
}

static uint32_t cable_of(const struct replay *replay, const struct tier_links *links, uint32_t tier,
                         const struct place *from, const struct place *to)
{
    if (links->cable_count == 1) return 0;
    if (links->policy == LEVEL_PAIR) return level_pair_cable(replay->machine, from->at, to->at);
    if (links->policy == LEVEL_HASH)
        return level_hash_cable(machine_chip_at(replay->machine, from->at),
                                machine_chip_at(replay->machine, to->at), tier, links->cable_count);
    uint32_t rail = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        rail += links->rail[axis][from->at[axis]];
    return rail % links->cable_count;
}

uint32_t route_queue(const struct replay *replay, const struct tier_links *links, uint32_t tier,
                     const struct place *owner, const struct place *from, const struct place *to)
{
    return route_unit_below(links, owner) * links->cable_count +
           cable_of(replay, links, tier, from, to);
}

static void level_find(struct replay *replay, struct route_course course, const struct place *from,
                       const struct place *to, uint32_t hop, struct route_link *ret_link)
{
    struct level_links *level = &replay->routes->level[course.level];
    const struct route_way *way = &level->way[course.turn];
    const struct route_stop *stop = &way->stop[hop];
    struct tier_links *links = &level->tier[stop->tier];
    const struct place *owner = stop->down ? to : from;
    uint32_t const queue = route_queue(replay, links, stop->tier, owner, from, to);
    *ret_link = (struct route_link){
        .link = &links->links[stop->down][queue],
        .waits = &links->waits[stop->down][queue],
        .chip = queue,
        .port = (uint8_t)machine_level_port(course.level, stop->tier, stop->down),
        .kind = links->kind,
        .latency_ps = stop->latency_ps,
        .last = hop + 1 == way->stop_count,
    };
}

/* Hops along an axis, and whether they go to lower coordinates. */
static uint32_t grid_hops(const struct routes *routes, uint32_t axis, uint32_t from, uint32_t to,
                          bool antipode_back, bool *ret_back)
{
    uint32_t const up = to - from, length = routes->length[axis];
    if (length == 0) {
        *ret_back = to < from;
        return to < from ? from - to : up;
    }
    uint32_t const forward = to < from ? up + length : up;
    *ret_back = 2 * forward > length || (2 * forward == length && antipode_back);
    return *ret_back ? length - forward : forward;
}

struct route_link route_grid_link(struct replay *replay, const struct place *here, uint32_t port,
                                  bool last)
{
    uint32_t const chip = route_chip(replay->routes, here);
    uint32_t const kind = replay->fold->link_class == NULL
                              ? 0
                              : replay->fold->link_class[(uint64_t)chip * MACHINE_PORTS_MAX + port];
    int64_t const latency_ps = replay->fold->link_classes[kind].latency_ps;
    uint64_t const index = (uint64_t)port * replay->chip_count + chip;
    return (struct route_link){.link = &replay->grid.links[index],
                               .waits =
                                   replay->grid.waits == NULL ? NULL : &replay->grid.waits[index],
                               .chip = chip,
                               .port = (uint8_t)port,
                               .kind = (uint8_t)kind,
                               .latency_ps = latency_ps > 0 ? latency_ps : 1,
                               .last = last};
}

static void grid_find(struct replay *replay, const struct place *from, const struct place *to,
                      uint32_t hop, uint32_t antipode, struct route_link *ret_link)
{
    const struct routes *routes = replay->routes;
    struct place here = *from;
    uint32_t port = 0;
    bool found = false, last = true;
    for (uint32_t axis = 0; axis < routes->grid_axes; axis++) {
        if (from->at[axis] == to->at[axis]) continue;
        if (found) {
            last = false;
            break;
        }
        bool back = false;
        uint32_t const hops =
            grid_hops(routes, axis, from->at[axis], to->at[axis], antipode >> axis & 1, &back);
        if (hop >= hops) {
            hop -= hops;
            here.at[axis] = to->at[axis];
            continue;
        }
        uint32_t at = from->at[axis] + (back ? 0 - hop : hop);
        if (routes->length[axis] != 0 && at >= routes->length[axis])
            at += back ? routes->length[axis] : 0 - routes->length[axis];
        here.at[axis] = at;
        port = machine_port(axis, back);
        last = hop + 1 == hops;
        found = true;
    }
    *ret_link = route_grid_link(replay, &here, port, last);
}

void route_find(struct replay *replay, struct route_course course, const struct place *from,
                const struct place *to, uint32_t hop, uint32_t antipode,
                struct route_link *ret_link)
{
    if (course.level == LEVEL_NONE && course.twisted)
        route_twisted_find(replay, from, to, hop, ret_link);
    else if (course.level == LEVEL_NONE)
        grid_find(replay, from, to, hop, antipode, ret_link);
    else
        level_find(replay, course, from, to, hop, ret_link);
}

struct route_leg route_leg(const struct routes *routes, const struct place *by, uint32_t hop,
                           uint32_t antipode)
{
    struct route_leg leg = {.last = true};
    bool found = false;
    for (uint32_t axis = 0; axis < routes->grid_axes; axis++) {
        if (by->at[axis] == 0) continue;
        if (found) {
            leg.last = false;
            break;
        }
        bool back = false;
        uint32_t const hops = grid_hops(routes, axis, 0, by->at[axis], antipode >> axis & 1, &back);
        if (hop >= hops) {
            hop -= hops;
            leg.done |= 1u << axis;
            continue;
        }
        leg.axis = axis;
        leg.by = back ? routes->length[axis] - hop : hop;
        leg.port = (uint8_t)machine_port(axis, back);
        leg.last = hop + 1 == hops;
        found = true;
    }
    return leg;
}
