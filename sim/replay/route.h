/*
 * route.h: the route of a message between any two chips, as the links at which it may wait.
 *
 * On the grid it goes axis by axis, the shorter way round. On a twisted torus the shortest way goes
 * around an axis into another line; which of equally short ones is chosen once for each
 * displacement (route_twisted.c). Between chips that a level joins it
 * climbs to the lowest unit that holds both and comes down again; chips of one slice use the grid,
 * all others the level only. A tier whose cables never make a message wait has no queue: the
 * message passes it, its latency is added and its bytes are counted.
 *
 * All look-ups are in tables by coordinate, without a division.
 */
#ifndef SIM_REPLAY_ROUTE_H
#define SIM_REPLAY_ROUTE_H

#include "sim/replay/state.h"

enum {
    ROUTE_KINDS_MAX = FOLD_LINK_CLASSES_MAX + LEVELS_MAX * LEVEL_TIERS_MAX,
    ROUTE_STOPS_MAX = 2 * LEVEL_TIERS_MAX,
    ROUTE_HOPS_END = UINT16_MAX,
};

/* Where a chip of the machine is; by axis. */
struct place {
    uint32_t at[MACHINE_AXES_MAX];
};

/* A queue on the way through a level. */
struct route_stop {
    uint8_t tier;
    bool down;
    int64_t latency_ps; /* From its begin to the next stop, or to the end. */
};

/* The way through a level that turns at one of its tiers. */
struct route_way {
    struct route_stop stop[ROUTE_STOPS_MAX];
    uint32_t stop_count;
};

/* The cables of a tier, as replayed. */
struct tier_links {
    bool queues;
    uint8_t policy;
    uint32_t cable_count; /* Queues of a unit: 1 for a bundle. */
    uint32_t whole;       /* Chips of a unit over its replayed chips: 1 where it queues. */
    uint32_t unit_count;  /* Replayed units of the tier below. */
    uint32_t *below[MACHINE_AXES_MAX];   /* [coordinate]: its term of the unit below. */
    uint32_t *rail[MACHINE_AXES_MAX];    /* [coordinate]: its term of the place for RAIL. */
    uint32_t *unit_at[MACHINE_AXES_MAX]; /* [coordinate]: its unit's number along the axis. */
    uint32_t *first_chip;                /* [unit below]: filled for results. */
    struct link_state *links[2];         /* Up, down: [unit below · cables + cable] */
    struct link_waits *waits[2];
    uint8_t kind; /* Of message_cost. */
};

struct level_links {
    const struct level *level;
    uint32_t axes; /* Axes along which it joins chips; bits. */
    struct tier_links tier[LEVEL_TIERS_MAX];
    struct route_way way[LEVEL_TIERS_MAX]; /* [tier where the route turns] */
};

/* Hops along each axis of a way over a twisted torus, negative towards lower coordinates. */
struct route_hops {
    int16_t by[CHIP_AXES_MAX];
};

struct routes {
    struct place *places;              /* [chip]: replayed chips on the machine. */
    uint32_t *chip[MACHINE_AXES_MAX];  /* [coordinate]: its term of the replayed chip. */
    uint32_t length[MACHINE_AXES_MAX]; /* Length of an axis of the grid that closes; otherwise 0. */
    uint32_t grid_axes;
    struct route_hops *twisted; /* [displacement]; NULL: no axis twists. */
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

/* Most links of any route along these axes (bits). */
uint32_t route_links_most(const struct replay *replay, uint32_t axes);

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

/* The network of a message: a level and the tier where the route turns, or the grid. */
struct route_course {
    uint32_t level; /* LEVEL_NONE: the grid. */
    uint32_t turn;
    bool twisted; /* On the grid: by the shortest way over links around twisted axes. */
};

struct route_course route_course(const struct routes *routes, const struct place *from,
                                 const struct place *to);

/* The tier where a message turns between two places of an axis; tier_count: the level does not join
 * them. */
static inline uint32_t route_turn(const struct level_links *links, uint32_t axis, uint32_t from,
                                  uint32_t to, uint32_t turn)
{
    while (turn < links->level->tier_count &&
           links->tier[turn].unit_at[axis][from] != links->tier[turn].unit_at[axis][to])
        turn++;
    return turn;
}

/* The same where they differ in no more than an axis that is not of the grid. */
static inline struct route_course route_course_along(const struct routes *routes, uint32_t axis,
                                                     uint32_t from, uint32_t to)
{
    for (uint32_t index = 0; index < routes->level_count; index++) {
        const struct level_links *links = &routes->level[index];
        if ((links->axes >> axis & 1) == 0) continue;
        uint32_t const turn = route_turn(links, axis, from, to, 0);
        if (turn < links->level->tier_count)
            return (struct route_course){.level = index, .turn = turn};
    }
    SIM_ASSERT(false); /* routed_tables.c has checked that a level joins them. */
    return (struct route_course){.level = LEVEL_NONE};
}

/* The queue of a tier that a message takes out of, or into, the unit below that holds `owner`. */
uint32_t route_queue(const struct replay *replay, const struct tier_links *links, uint32_t tier,
                     const struct place *owner, const struct place *from, const struct place *to);

/* The `hop`-th link between two chips; `antipode` are axes on which it goes down if it goes half
 * way round, as bits. */
void route_find(struct replay *replay, struct route_course course, const struct place *from,
                const struct place *to, uint32_t hop, uint32_t antipode,
                struct route_link *ret_link);

/* A link of the grid. */
struct route_link route_grid_link(struct replay *replay, const struct place *here, uint32_t port,
                                  bool last);

/* route_twisted.c: chooses ways for all displacements on a twisted torus. */
enum status route_twisted_build(struct arena *arena, const struct machine *machine,
                                struct routes *routes, struct error *reterr);
void route_twisted_find(struct replay *replay, const struct place *from, const struct place *to,
                        uint32_t hop, struct route_link *ret_link);

/* The `hop`-th link of a route over the grid, for all messages with the same displacement on axes
 * that close. On some axes such messages are at the end, along one they move. */
struct route_leg {
    uint32_t done; /* Axes on which messages are at the end; bits. */
    uint32_t axis; /* Axis along which messages move. */
    uint32_t by;   /* Places along `axis` so far, upwards. */
    uint8_t port;
    bool last;
};

struct route_leg route_leg(const struct routes *routes, const struct place *by, uint32_t hop,
                           uint32_t antipode);

/* The link of a leg for one such message, where all links are alike. */
static inline void route_leg_find(struct replay *replay, const struct route_leg *leg,
                                  const struct place *from, const struct place *by,
                                  struct route_link *ret_link)
{
    const struct routes *routes = replay->routes;
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        uint32_t at = from->at[axis];
        if (leg->done >> axis & 1) at += by->at[axis];
        if (axis == leg->axis) at += leg->by;
        if (routes->length[axis] != 0 && at >= routes->length[axis]) at -= routes->length[axis];
        chip += routes->chip[axis][at];
    }
    int64_t const latency_ps = replay->fold->link_classes[0].latency_ps;
    uint64_t const index = (uint64_t)leg->port * replay->chip_count + chip;
    *ret_link =
        (struct route_link){.link = &replay->grid.links[index],
                            .waits = replay->grid.waits == NULL ? NULL : &replay->grid.waits[index],
                            .chip = chip,
                            .port = leg->port,
                            .latency_ps = latency_ps > 0 ? latency_ps : 1,
                            .last = leg->last};
}

#endif
