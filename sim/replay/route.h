/*
 * route.h: the links of machine/path.h as they are replayed: which of them a fold keeps, what waits
 * at each, and what has passed. A tier whose cables never make a message wait has no queue: the
 * message passes it, and its bytes are counted.
 */
#ifndef SIM_REPLAY_ROUTE_H
#define SIM_REPLAY_ROUTE_H

#include "sim/machine/path.h"
#include "sim/replay/state.h"

enum {
    ROUTE_KINDS_MAX = FOLD_LINK_CLASSES_MAX + LEVELS_MAX * LEVEL_TIERS_MAX,
};

/* Where a chip of the machine is; by axis. */
struct place {
    uint32_t at[MACHINE_AXES_MAX];
};

/* The cables of a tier, as replayed. */
struct tier_links {
    bool queues;          /* `queues` of the tier's struct path_tier. */
    uint32_t cable_count; /* `cable_count` of the tier's struct path_tier. */
    uint32_t whole;       /* Chips of a unit over its replayed chips: 1 where it queues. */
    uint32_t unit_count;  /* Replayed units of the tier below. */
    uint32_t *below[MACHINE_AXES_MAX]; /* [coordinate]: its term of the unit below. */
    uint32_t *first_chip;              /* [unit below]: filled for results. */
    struct link_state *links[2];       /* Up, down: [unit below · cables + cable] */
    struct link_waits *waits[2];
    uint8_t kind; /* Of message_cost. */
};

struct level_links {
    const struct level *level;
    const struct path_level *path;
    struct tier_links tier[LEVEL_TIERS_MAX];
};

struct routes {
    struct paths paths;
    struct place *places;             /* [chip]: replayed chips on the machine. */
    uint32_t *chip[MACHINE_AXES_MAX]; /* [coordinate]: its term of the replayed chip. */
    struct level_links level[LEVELS_MAX];
    uint32_t level_count;
    uint32_t kind_count;
    uint64_t rate[ROUTE_KINDS_MAX]; /* [kind]: classes of the grid's links, then tiers. */
};

/* A place on the way: the link that the message takes there. */
struct route_link {
    struct link_state *link;
    struct link_waits *waits; /* NULL: not counted. */
    uint32_t chip;            /* Grid: the chip that the link leaves. Level: number of the queue. */
    uint8_t port;
    uint8_t kind;
    int64_t latency_ps;
    bool last;
};

enum status routes_build(struct arena *arena, struct replay *replay, struct error *reterr);

static inline uint32_t route_chip(const struct routes *routes, const struct place *place)
{
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        chip += routes->chip[axis][place->at[axis]];
    return chip;
}

/* 0: a port of the grid; 1: of level 0. */
static inline uint32_t route_network(uint32_t port)
{
    return port < MACHINE_GRID_PORTS ? 0 : 1 + (port - MACHINE_GRID_PORTS) / (2 * LEVEL_TIERS_MAX);
}

/* The unit below a tier's cables that holds a chip. */
static inline uint32_t route_unit_below(const struct tier_links *links, const struct place *place)
{
    uint32_t unit = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        unit += links->below[axis][place->at[axis]];
    return unit;
}

/* The queue of a tier that a message takes out of, or into, the unit below that holds `owner`. */
uint32_t route_queue(const struct replay *replay, const struct level_links *level, uint32_t tier,
                     const struct place *owner, const struct place *from, const struct place *to);

/* The `hop`-th link between two chips. */
void route_find(struct replay *replay, struct path_course course, const struct place *from,
                const struct place *to, uint32_t hop, struct route_link *ret_link);

/* The `hop`-th link of a way over the grid, for all messages with the same displacement on axes
 * that close; its hops so far are counted upwards. */
struct path_leg route_leg(const struct routes *routes, const struct place *by, uint32_t hop,
                          uint8_t antipode);

/* The link of a leg for one such message, where all links are alike. */
static inline void route_leg_find(struct replay *replay, const struct path_leg *leg,
                                  const struct place *from, const struct place *by,
                                  struct route_link *ret_link)
{
    const struct routes *routes = replay->routes;
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        uint32_t at = from->at[axis];
        if (leg->done >> axis & 1) at += by->at[axis];
        if (axis == leg->axis) at += leg->by;
        if (routes->paths.length[axis] != 0 && at >= routes->paths.length[axis])
            at -= routes->paths.length[axis];
        chip += routes->chip[axis][at];
    }
    int64_t const latency_ps = replay->fold->link_classes[0].latency_ps;
    uint32_t const port = machine_port(leg->axis, leg->back);
    uint64_t const index = (uint64_t)port * replay->chip_count + chip;
    *ret_link =
        (struct route_link){.link = &replay->grid.links[index],
                            .waits = replay->grid.waits == NULL ? NULL : &replay->grid.waits[index],
                            .chip = chip,
                            .port = (uint8_t)port,
                            .latency_ps = latency_ps > 0 ? latency_ps : 1,
                            .last = leg->last};
}

#endif
