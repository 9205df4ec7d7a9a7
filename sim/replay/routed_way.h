/*
 * routed_way.h: finding a way: the message that an event names, its receiver, its links. Inline
 * where every event asks.
 */
#ifndef SIM_REPLAY_ROUTED_WAY_H
#define SIM_REPLAY_ROUTED_WAY_H

#include "sim/replay/message.h"
#include "sim/replay/promise.h"
#include "sim/replay/routed.h"

/* What is remembered of the ways of all messages of a step. */
static inline struct routed_way *routed_row(const struct replay *replay,
                                            const struct routed_lane *routed, uint32_t step)
{
    return &routed->places.ways[(uint64_t)step * routed->places.hops * replay->chip_count];
}

/* Finds what is remembered of the way of a chip's message where positions differ. Pieces that are
 * alike share it. */
static inline void routed_place_open(const struct replay *replay, const struct lane_table *lane,
                                     uint32_t sender, struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const alike =
        lane->steps.send_count[position_of(lane, sender)] * routed->places.pieces;
    uint32_t step = message->number;
    message->pieces_before = 0;
    if (step >= alike) {
        message->pieces_before = step / alike * routed->places.pieces;
        step %= alike;
    }
    message->ways = routed_row(replay, routed, step);
}

/* What a message of a number is, the `step`-th of a piece, as far as that is the same for all
 * senders; its places are written when it is addressed. Piece and step are of no use where
 * positions differ. */
static inline void routed_step_open(const struct replay *replay, const struct lane_table *lane,
                                    uint32_t piece, uint32_t step, struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    message->course = (struct path_course){.level = LEVEL_NONE, .twisted = routed->twisted};
    message->ways = NULL;
    message->step = NULL;
    if (routed->guide == ROUTED_BY_POSITION || routed->guide == ROUTED_BY_PLACE) return;
    message->step = &routed->steps[step];
    if (routed->guide == ROUTED_BY_WAY) message->ways = routed_row(replay, routed, step);
    message->slot = piece * lane->steps.arrival_count[0] + message->step->slot;
    message->units = message->step->units * routed_portion_size(lane, piece);
    message->cost = routed_cost_of(replay, lane, message->units);
    if (routed->guide == ROUTED_TOGETHER)
        message->leg =
            route_leg(replay->routes, &message->step->by, message->hop, message->step->antipode);
}

/* What all messages of a batch have in common. */
void routed_open(const struct replay *replay, struct lane_table *lane, uint64_t key,
                 struct routed_message *ret_message);
/* Where a chip's message comes from and goes to. */
void routed_address(const struct replay *replay, struct lane_table *lane, uint32_t sender,
                    struct routed_message *message);
/* Looks a place on the way of a chip's message up, to be remembered. */
void routed_way_fill(struct replay *replay, struct lane_table *lane, uint32_t sender,
                     const struct routed_message *of, uint32_t hop, struct routed_way *way);
/* routed_slowest_ps() of a way over the grid, or of one that is remembered. */
int64_t routed_slowest_each_ps(struct replay *replay, struct lane_table *lane, uint32_t sender,
                               const struct routed_message *message);

/* The longest that a link behind the one at hand took for the message: its tail comes so much after
 * its head. While a head waits its tail catches up, but a message without memory cannot know how
 * far: behind a queue it may leave a fast link later than it could, by that time at most. Links are
 * no longer busy for it. */
static inline int64_t routed_slowest_ps(struct replay *replay, struct lane_table *lane,
                                        uint32_t sender, const struct routed_message *message)
{
    if (replay->routes->level_count == 0 && replay->fold->link_class == NULL)
        return message->cost->link_ps[0]; /* All links are alike. */
    if (message->ways != NULL || message->course.level == LEVEL_NONE)
        return routed_slowest_each_ps(replay, lane, sender, message);
    const struct route_stop *stop =
        replay->routes->level[message->course.level].stop[message->course.top];
    int64_t slowest_ps = 0;
    for (uint32_t behind = 0; behind < message->hop; behind++) {
        int64_t const link_ps = message->cost->link_ps[stop[behind].kind];
        slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
    }
    return slowest_ps;
}

/* Where a chip's message is after a number of links, of a lane that remembers. */
static inline const struct routed_way *routed_way_at(struct replay *replay, struct lane_table *lane,
                                                     uint32_t sender,
                                                     const struct routed_message *message,
                                                     uint32_t hop)
{
    struct routed_way *way = &message->ways[(uint64_t)hop * replay->chip_count + sender];
    if (way->at.link == NULL) routed_way_fill(replay, lane, sender, message, hop, way);
    return way;
}

/* Where a chip's message is after a number of links. Fills in what the message is, where that
 * depends on the sender. */
static inline const struct routed_way *routed_way_take(struct replay *replay,
                                                       struct lane_table *lane, uint32_t sender,
                                                       uint32_t hop, struct routed_message *message)
{
    const struct routed_way *way = routed_way_at(replay, lane, sender, message, hop);
    if (lane->routed->guide == ROUTED_BY_PLACE) {
        message->units = way->units;
        message->cost = routed_cost_of(replay, lane, way->units);
        message->slot = way->slot + message->pieces_before * way->arrivals;
    } else {
        routed_price(replay, lane, message);
    }
    return way;
}

/* Where a chip's message goes along the only axis of its lane. */
static inline uint32_t routed_place_along(const struct routed_lane *routed,
                                          const struct routed_step *step, uint32_t from)
{
    uint32_t const to = from + step->by.at[routed->axis];
    return to >= routed->end[routed->axis][from] ? to - routed->extent[routed->axis] : to;
}

/* routed_address() with ROUTED_BY_AXIS, but for the cost. */
static inline void routed_address_along(const struct replay *replay,
                                        const struct routed_lane *routed, uint32_t sender,
                                        struct routed_message *message)
{
    const struct routes *routes = replay->routes;
    uint32_t const axis = routed->axis;
    struct route_ends *ends = &message->ends;
    ends->from = &routes->places[sender];
    ends->to = *ends->from;
    uint32_t const from = ends->from->at[axis];
    uint32_t const to = routed_place_along(routed, message->step, from);
    ends->to.at[axis] = to;
    ends->sender = sender;
    ends->receiver = sender + routes->chip[axis][to] - routes->chip[axis][from];
    struct path_course const course = path_course_along(&routes->paths, axis, from, to);
    message->course.level = course.level;
    message->course.top = course.top;
}

/* The link that a message of a batch takes next. Inline by force, as who takes it (routed.c). */
static inline __attribute__((always_inline)) const struct route_link *
routed_find(struct replay *replay, struct lane_table *lane, uint32_t sender,
            struct routed_message *message, struct route_link *scratch)
{
    if (lane->routed->guide == ROUTED_BY_PLACE) routed_place_open(replay, lane, sender, message);
    if (message->ways != NULL)
        return &routed_way_take(replay, lane, sender, message->hop, message)->at;
    if (lane->routed->guide == ROUTED_TOGETHER) {
        routed_price(replay, lane, message);
        message->ends.from = &replay->routes->places[sender];
        route_leg_find(replay, &message->leg, message->ends.from, &message->step->by, scratch);
        return scratch;
    }
    if (lane->routed->guide == ROUTED_BY_AXIS) {
        routed_price(replay, lane, message);
        routed_address_along(replay, lane->routed, sender, message);
    } else {
        routed_address(replay, lane, sender, message);
    }
    route_find(replay, message->course, &message->ends, message->hop, scratch);
    return scratch;
}

/* The replayed chip that a message goes to; but for the cost nothing else of it need be known. */
static inline uint32_t routed_receiver(struct replay *replay, struct lane_table *lane,
                                       uint32_t sender, struct routed_message *message)
{
    if (lane->routed->guide == ROUTED_BY_PLACE) routed_place_open(replay, lane, sender, message);
    if (message->ways != NULL) return routed_way_take(replay, lane, sender, 0, message)->receiver;
    if (lane->routed->guide == ROUTED_BY_AXIS) {
        routed_price(replay, lane, message);
        const uint32_t *chip = replay->routes->chip[lane->routed->axis];
        uint32_t const from = replay->routes->places[sender].at[lane->routed->axis];
        return sender + chip[routed_place_along(lane->routed, message->step, from)] - chip[from];
    }
    routed_address(replay, lane, sender, message);
    return message->ends.receiver;
}

static inline struct port_ticket port_ticket_of(const struct route_link *at)
{
    return (struct port_ticket){
        .link = at->link, .waits = at->waits, .kind = at->kind, .port = at->port, .chip = at->chip};
}

#endif
