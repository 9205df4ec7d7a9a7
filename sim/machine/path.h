/*
 * path.h: the way of a message between two chips: the links that it passes, in order, and the rate
 * of each.
 *
 * Chips of one slice use its grid. A way there is a number of hops along each axis, taken axis by
 * axis: the shorter way round a ring, and on a twisted torus the shortest way over links around
 * twisted axes, chosen once for each displacement (path_twisted.c). All other chips use the nearest
 * level that joins them: a message climbs to the lowest unit that holds both and comes down again.
 * A tier whose cables never make a message wait has no queue: its latency is added to the stop
 * before it.
 *
 * The replay, the estimates of collectives and the collisions of hashed flows ask here; each
 * numbers the links by its own table. All look-ups are in tables by coordinate, without a division.
 */
#ifndef SIM_MACHINE_PATH_H
#define SIM_MACHINE_PATH_H

#include "sim/base/status.h"
#include "sim/machine/machine.h"

struct arena;

enum { PATH_STOPS_MAX = 2 * LEVEL_TIERS_MAX };

/* Hops along each axis of the grid, negative towards lower coordinates. */
struct path_hops {
    int32_t by[CHIP_AXES_MAX];
};

/* A queue on the way through a level. */
struct path_stop {
    uint8_t tier;
    bool down;
    int64_t latency_ps; /* From its begin to the next stop, or to the end. */
};

/* The way through a level, up to one of its tiers and down again. */
struct path_climb {
    struct path_stop stop[PATH_STOPS_MAX];
    uint32_t stop_count;
};

/* The cables of a tier. */
struct path_tier {
    bool queues;                         /* A message may have to wait for a cable. */
    uint32_t cable_count;                /* Queues of a unit below: 1 for a bundle. */
    uint64_t bytes_per_s;                /* The rate of one queue. */
    uint32_t *unit_at[MACHINE_AXES_MAX]; /* [coordinate]: its unit's number along the axis. */
    uint32_t *rail[MACHINE_AXES_MAX];    /* [coordinate]: its term of the place for RAIL. */
};

struct path_level {
    const struct level *level;
    uint32_t axes; /* Axes along which it joins chips; bits. */
    struct path_tier tier[LEVEL_TIERS_MAX];
    struct path_climb climb[LEVEL_TIERS_MAX]; /* [highest tier of the way] */
};

struct path_rate {
    uint64_t bytes_per_s;
    int64_t latency_ps; /* To the next link, or to the end. */
};

/* All ways of a machine. */
struct paths {
    const struct machine *machine;
    uint32_t grid_axes;
    uint32_t length[MACHINE_AXES_MAX]; /* Length of an axis of the grid that closes; otherwise 0. */
    struct path_hops *twisted;         /* [displacement]; NULL: no axis twists. */
    struct path_rate
        *overridden; /* [chip · MACHINE_GRID_PORTS + port]; NULL: none, or not asked. */
    struct path_level level[LEVELS_MAX];
    uint32_t level_count;
};

enum status paths_build(struct arena *arena, const struct machine *machine, struct paths *ret_paths,
                        struct error *reterr);

/* Fills `overridden` where the machine has overridden links, for path_rate(). */
enum status paths_rates_build(struct arena *arena, struct paths *paths, struct error *reterr);

/* path_twisted.c: chooses ways for all displacements on a twisted torus. */
enum status paths_twisted_build(struct arena *arena, struct paths *paths, struct error *reterr);
/* The way of a displacement, which is reduced to that of a chip from the first. */
const struct path_hops *path_twisted_hops(const struct paths *paths, int32_t by[CHIP_AXES_MAX]);
/* Brings a place to the coordinates of a chip, around all axes. */
void path_twisted_reduce(const struct machine *machine, int32_t at[CHIP_AXES_MAX]);

/* Most links of any way along these axes (bits). */
uint32_t path_links_most(const struct machine *machine, uint32_t axes);

/* The network of a message: a level and the highest tier of its way, or the grid. */
struct path_course {
    uint32_t level;   /* LEVEL_NONE: the grid. */
    uint32_t top;     /* Of a level: the highest tier of the way. */
    bool twisted;     /* On the grid: the shortest way over links around twisted axes. */
    uint8_t antipode; /* On the grid: axes on which it goes down if it goes half way round; bits. */
};

/* The grid or level that joins two chips; `twisted` and `antipode` are not set. */
struct path_course path_course(const struct paths *paths, const uint32_t from[MACHINE_AXES_MAX],
                               const uint32_t to[MACHINE_AXES_MAX]);

/* The highest tier of the way between two places of an axis, from `top` on; tier_count: the level
 * does not join them. */
static inline uint32_t path_top(const struct path_level *level, uint32_t axis, uint32_t from,
                                uint32_t to, uint32_t top)
{
    while (top < level->level->tier_count &&
           level->tier[top].unit_at[axis][from] != level->tier[top].unit_at[axis][to])
        top++;
    return top;
}

/* path_course() of chips that differ in no more than an axis that is not of the grid. */
static inline struct path_course path_course_along(const struct paths *paths, uint32_t axis,
                                                   uint32_t from, uint32_t to)
{
    for (uint32_t index = 0; index < paths->level_count; index++) {
        const struct path_level *level = &paths->level[index];
        if ((level->axes >> axis & 1) == 0) continue;
        uint32_t const top = path_top(level, axis, from, to, 0);
        if (top < level->level->tier_count) return (struct path_course){.level = index, .top = top};
    }
    SIM_ASSERT(false); /* Who sends has checked that a level joins them. */
    return (struct path_course){.level = LEVEL_NONE};
}

/* Hops along an axis whose length is 0 unless it closes. `back`: half way round it goes down. */
static inline int32_t path_hops_along(uint32_t length, uint32_t from, uint32_t to, bool back)
{
    int32_t const up = (int32_t)(to - from), whole = (int32_t)length;
    if (whole == 0) return up;
    int32_t const forward = up < 0 ? up + whole : up;
    return 2 * forward > whole || (2 * forward == whole && back) ? forward - whole : forward;
}

/* Hops between two chips of a grid. */
struct path_hops path_hops(const struct paths *paths, struct path_course course,
                           const uint32_t from[MACHINE_AXES_MAX],
                           const uint32_t to[MACHINE_AXES_MAX]);

/* Where the `hop`-th hop of a way is: on some axes the message is at the end, along one it moves.
 */
struct path_leg {
    uint32_t done; /* Axes on which the message is at the end; bits. */
    uint32_t axis; /* The axis along which the message moves. */
    uint32_t by;   /* Hops along `axis` so far. */
    bool back;     /* The message moves towards lower coordinates. */
    bool last;
};

static inline struct path_leg path_leg(const struct path_hops *hops, uint32_t hop)
{
    struct path_leg leg = {.last = true};
    bool found = false;
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        int32_t const signed_count = hops->by[axis];
        uint32_t const count = (uint32_t)(signed_count < 0 ? -signed_count : signed_count);
        if (count == 0) continue;
        if (found) {
            leg.last = false;
            break;
        }
        if (hop >= count) {
            hop -= count;
            leg.done |= 1u << axis;
            continue;
        }
        leg.axis = axis;
        leg.by = hop;
        leg.back = signed_count < 0;
        leg.last = hop + 1 == count;
        found = true;
    }
    return leg;
}

/* A link on the way. */
struct path_link {
    /* Grid: the chip that it leaves. Level: a chip of the unit below its tier whose cable it is. */
    uint32_t at[MACHINE_AXES_MAX];
    uint8_t port; /* The port of the grid, or of a tier: machine_port(), machine_level_port(). */
    bool last;
    /* Of a level alone. */
    uint8_t tier;
    bool down;
    uint32_t cable; /* Which queue of that unit. */
};

/* The `hop`-th link between two chips. */
void path_link(const struct paths *paths, struct path_course course,
               const uint32_t from[MACHINE_AXES_MAX], const uint32_t to[MACHINE_AXES_MAX],
               uint32_t hop, struct path_link *ret_link);

/* The `hop`-th link's own rate and latency, after paths_rates_build(). */
struct path_rate path_rate(const struct paths *paths, struct path_course course,
                           const struct path_link *link, uint32_t hop);

/* The queue of a tier, among those of a unit below it, that a message between two chips takes. */
uint32_t path_cable(const struct paths *paths, const struct path_level *level, uint32_t tier,
                    const uint32_t from[MACHINE_AXES_MAX], const uint32_t to[MACHINE_AXES_MAX]);

/* Which way round messages go that lie exactly half way round an axis, so that both ways carry the
 * same bytes: another such axis decides by whether the message goes an odd way along it; without
 * one, whether its sender stands at an odd place on the axis itself. */
struct path_balance {
    uint8_t by_sender;                 /* Axes decided by the sender's place; bits. */
    uint8_t by_other;                  /* Axes decided by the displacement along another; bits. */
    uint8_t other[CHIP_AXES_MAX];      /* Of an axis in `by_other`: which. */
    uint32_t stride[MACHINE_AXES_MAX]; /* Of a group's members: places are counted in these. */
};

/* Axes, as bits, on which messages half way round go down: axes that the sender's place decides. */
static inline uint8_t path_antipode_of(const struct path_balance *balance,
                                       const uint32_t from[MACHINE_AXES_MAX])
{
    uint32_t axes = 0;
    for (uint32_t bits = balance->by_sender; bits != 0; bits &= bits - 1) {
        uint32_t const axis = (uint32_t)__builtin_ctz(bits);
        axes |= from[axis] / balance->stride[axis] % 2 << axis;
    }
    return (uint8_t)axes;
}

/* Axes, as bits, on which messages half way round go down: axes that a displacement decides. */
static inline uint8_t path_antipode_by(const struct path_balance *balance,
                                       const uint32_t from[MACHINE_AXES_MAX],
                                       const uint32_t to[MACHINE_AXES_MAX])
{
    uint32_t axes = 0;
    for (uint32_t bits = balance->by_other; bits != 0; bits &= bits - 1) {
        uint32_t const axis = (uint32_t)__builtin_ctz(bits), by = balance->other[axis];
        uint32_t const places = from[by] / balance->stride[by] + to[by] / balance->stride[by];
        axes |= places % 2 << axis;
    }
    return (uint8_t)axes;
}

#endif
