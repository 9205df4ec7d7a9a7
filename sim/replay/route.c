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

/* The terms of one axis. Units that a fold maps onto each other share a number. */
static enum status axis_build(struct arena *arena, const struct replay *replay, uint32_t index,
                              uint32_t t, uint32_t axis, struct error *reterr)
{
    struct level_links *links = &replay->routes->level[index];
    struct tier_links *tier = &links->tier[t];
    const struct fold *fold = replay->fold;
    uint32_t const length = replay->machine->shape[axis];
    uint32_t const below = level_box_length(replay->machine, links->level, (int32_t)t - 1, axis);
    uint32_t const kept = replayed_below(fold, axis, below);
    uint32_t *term = NULL; /* [coordinate] */
    STATUS_TRY(table_take(arena, length, &term, reterr));
    for (uint32_t at = 0; at < length; at++)
        term[at] = fold_along(fold, axis, at) / kept * tier->unit_count;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        tier->unit[chip] += term[replay->routes->places[chip].at[axis]];
    tier->whole *= below / kept;
    tier->unit_count *= (fold->period[axis] + kept - 1) / kept;
    return STATUS_OK;
}

static enum status tier_build(struct arena *arena, struct replay *replay, uint32_t index,
                              uint32_t t, struct error *reterr)
{
    struct level_links *links = &replay->routes->level[index];
    struct tier_links *tier = &links->tier[t];
    const struct path_tier *path = &links->path->tier[t];
    tier->queues = path->queues;
    tier->cable_count = path->cable_count;
    tier->unit_count = 1;
    tier->whole = 1;
    tier->kind = (uint8_t)(replay->fold->link_class_count + index * LEVEL_TIERS_MAX + t);
    replay->routes->rate[tier->kind] = path->bytes_per_s;
    STATUS_TRY(table_take(arena, replay->chip_count, &tier->unit, reterr));
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

/* Needs the level's tiers. */
static void stops_build(struct level_links *links, uint32_t index)
{
    for (uint32_t top = 0; top < links->level->tier_count; top++) {
        const struct path_climb *climb = &links->path->climb[top];
        for (uint32_t hop = 0; hop < climb->stop_count; hop++) {
            const struct path_stop *stop = &climb->stop[hop];
            const struct tier_links *tier = &links->tier[stop->tier];
            links->stop[top][hop] = (struct route_stop){
                .unit = tier->unit,
                .links = tier->links[stop->down],
                .waits = tier->waits[stop->down],
                .latency_ps = stop->latency_ps > 0 ? stop->latency_ps : 1,
                .cable_count = tier->cable_count,
                .tier = stop->tier,
                .kind = tier->kind,
                .port = (uint8_t)machine_level_port(index, stop->tier, stop->down),
                .down = stop->down,
                .last = hop + 1 == climb->stop_count,
            };
        }
    }
}

enum status routes_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct machine *machine = replay->machine;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->routes, &memory, reterr));
    struct routes *routes = replay->routes = memory;
    STATUS_TRY(paths_build(arena, machine, &routes->paths, reterr));
    routes->level_count = machine->level_count;
    routes->kind_count = replay->fold->link_class_count + machine->level_count * LEVEL_TIERS_MAX;
    for (uint32_t kind = 0; kind < replay->fold->link_class_count; kind++)
        routes->rate[kind] = replay->fold->link_classes[kind].bytes_per_s;
    STATUS_TRY(places_build(arena, replay, routes, reterr));
    for (uint32_t index = 0; index < machine->level_count; index++) {
        struct level_links *links = &routes->level[index];
        links->level = &machine->level[index];
        links->path = &routes->paths.level[index];
        for (uint32_t t = 0; t < links->level->tier_count; t++)
            STATUS_TRY(tier_build(arena, replay, index, t, reterr));
        stops_build(links, index);
    }
    return STATUS_OK;
}

uint32_t route_queue(const struct replay *replay, const struct level_links *level, uint32_t tier,
                     uint32_t owner, const struct place *from, const struct place *to)
{
    const struct tier_links *links = &level->tier[tier];
    return links->unit[owner] * links->cable_count +
           path_cable(&replay->routes->paths, level->path, tier, from->at, to->at);
}

void route_grid_link(struct replay *replay, struct path_course course,
                     const struct route_ends *ends, uint32_t hop, struct route_link *ret_link)
{
    struct path_link path;
    path_link(&replay->routes->paths, course, ends->from->at, ends->to.at, hop, &path);
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        chip += replay->routes->chip[axis][path.at[axis]];
    const struct fold *fold = replay->fold;
    uint32_t const kind = fold->link_class == NULL
                              ? 0
                              : fold->link_class[(uint64_t)chip * MACHINE_PORTS_MAX + path.port];
    int64_t const latency_ps = fold->link_classes[kind].latency_ps;
    uint64_t const index = (uint64_t)path.port * replay->chip_count + chip;
    *ret_link =
        (struct route_link){.link = &replay->grid.ports[index].link,
                            .waits = replay->grid.waits == NULL ? NULL : &replay->grid.waits[index],
                            .chip = chip,
                            .port = path.port,
                            .kind = (uint8_t)kind,
                            .latency_ps = latency_ps > 0 ? latency_ps : 1,
                            .last = path.last};
}

struct path_leg route_leg(const struct routes *routes, const struct place *by, uint32_t hop,
                          uint8_t antipode)
{
    static const uint32_t first[MACHINE_AXES_MAX];
    struct path_course const course = {.level = LEVEL_NONE, .antipode = antipode};
    struct path_hops const hops = path_hops(&routes->paths, course, first, by->at);
    struct path_leg leg = path_leg(&hops, hop);
    if (leg.back) leg.by = routes->paths.length[leg.axis] - leg.by;
    return leg;
}
