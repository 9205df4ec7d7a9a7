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
    bool queues;                 /* `queues` of the tier's struct path_tier. */
    uint32_t cable_count;        /* `cable_count` of the tier's struct path_tier. */
    uint32_t whole;              /* Chips of a unit over its replayed chips: 1 where it queues. */
    uint32_t unit_count;         /* Replayed units of the tier below. */
    uint32_t *unit;              /* [replayed chip]: the unit below that holds it. */
    uint32_t *first_chip;        /* [unit below]: filled for results. */
    struct link_state *links[2]; /* Up, down: [unit below · cables + cable] */
    struct link_waits *waits[2];
    uint8_t kind; /* The kind of link, in message_cost. */
};

/* A stop of a climb (machine/path.h), as replayed: what is known of its link before its unit is. */
struct route_stop {
    const uint32_t *unit;     /* [replayed chip]: `unit` of the tier. */
    struct link_state *links; /* `links` of the tier, up or down. */
    struct link_waits *waits;
    int64_t latency_ps; /* At least 1 ps. */
    uint32_t cable_count;
    uint8_t tier;
    uint8_t kind;
    uint8_t port;
    bool down;
    bool last;
};

struct level_links {
    const struct level *level;
    const struct path_level *path;
    struct tier_links tier[LEVEL_TIERS_MAX];
    struct route_stop stop[LEVEL_TIERS_MAX][PATH_STOPS_MAX]; /* [highest tier of the way][hop] */
};

/* The ends of a way: on the machine, and the chips that are replayed for them. */
struct route_ends {
    const struct place *from;
    struct place to;
    uint32_t sender, receiver;
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

/* The queue of a tier that a message takes out of, or into, the unit below that holds `owner`. */
uint32_t route_queue(const struct replay *replay, const struct level_links *level, uint32_t tier,
                     uint32_t owner, const struct place *from, const struct place *to);

/* The `hop`-th link between two chips of the grid. */
void route_grid_link(struct replay *replay, struct path_course course,
                     const struct route_ends *ends, uint32_t hop, struct route_link *ret_link);

/* The `hop`-th link between two chips. */
static inline void route_find(struct replay *replay, struct path_course course,
                              const struct route_ends *ends, uint32_t hop,
                              struct route_link *ret_link)
{
    if (course.level == LEVEL_NONE) {
        route_grid_link(replay, course, ends, hop, ret_link);
        return;
    }
    const struct level_links *level = &replay->routes->level[course.level];
    const struct route_stop *stop = &level->stop[course.top][hop];
    uint32_t const owner = stop->down ? ends->receiver : ends->sender;
    uint32_t const queue = stop->cable_count == 1 ? stop->unit[owner]
                                                  : route_queue(replay, level, stop->tier, owner,
                                                                ends->from, &ends->to);
    *ret_link = (struct route_link){
        .link = &stop->links[queue],
        .waits = &stop->waits[queue],
        .chip = queue,
        .port = stop->port,
        .kind = stop->kind,
        .latency_ps = stop->latency_ps,
        .last = stop->last,
    };
}

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
        (struct route_link){.link = &replay->grid.ports[index].link,
                            .waits = replay->grid.waits == NULL ? NULL : &replay->grid.waits[index],
                            .chip = chip,
                            .port = (uint8_t)port,
                            .latency_ps = latency_ps > 0 ? latency_ps : 1,
                            .last = leg->last};
}

#endif
