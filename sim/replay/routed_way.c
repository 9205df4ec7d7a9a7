/* Finding a way: everything about a message but its order and its sender is computed anew. */
#include "sim/replay/routed_way.h"

#include "sim/replay/message.h"
#include "sim/replay/state.h"

void routed_open(const struct replay *replay, struct lane_table *lane, uint64_t key,
                 struct routed_message *ret_message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const what = event_key_field(key, 0, KEY_WHAT_BITS);
    uint32_t const number = what >> routed->tie_bits & ((1u << routed->number_bits) - 1);
    bool const differ = routed->guide == ROUTED_BY_POSITION || routed->guide == ROUTED_BY_PLACE;
    uint32_t const each = differ ? 0 : lane->steps.send_count[0];
    uint32_t const piece = differ || number < each ? 0 : number / each;
    ret_message->epoch = event_key_field(key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS);
    ret_message->hop = what >> (routed->tie_bits + routed->number_bits);
    ret_message->number = number;
    routed_step_open(replay, lane, piece, number - piece * each, ret_message);
}

/* The same where positions differ. */
static void message_look_up(const struct replay *replay, struct lane_table *lane, uint32_t sender,
                            struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    const uint32_t *from = message->ends.from->at;
    uint32_t *to = message->ends.to.at;
    uint32_t const position = position_of(lane, sender);
    uint32_t const piece = message->number / lane->steps.send_count[position];
    uint32_t const number = message->number - piece * lane->steps.send_count[position];
    struct primitive_step const step = lane_step(lane, position, number);
    plan_item_peer(routed->plan, routed->item, from, step.peer, to);
    message->ends.receiver = route_chip(replay->routes, &message->ends.to);
    uint32_t const receiver = plan_item_position(routed->plan, routed->item, to);
    message->slot = piece * lane->steps.arrival_count[receiver] + step.slot;
    message->units = plan_step_units(routed->plan, routed->item, &step, from, piece) *
                     routed_portion_size(lane, piece);
    message->cost = routed_cost_of(replay, lane, message->units);
    message->course.antipode = (uint8_t)(path_antipode_of(&routed->balance, from) |
                                         path_antipode_by(&routed->balance, from, to));
}

static inline void course_choose(const struct replay *replay, const struct routed_lane *routed,
                                 struct routed_message *message)
{
    const uint32_t *from = message->ends.from->at, *to = message->ends.to.at;
    if (!routed->switched) return;
    if ((routed->axes & (routed->axes - 1)) == 0) {
        uint32_t const axis = (uint32_t)__builtin_ctz(routed->axes);
        message->course = path_course_along(&replay->routes->paths, axis, from[axis], to[axis]);
        return;
    }
    uint8_t const antipode = message->course.antipode;
    message->course = path_course(&replay->routes->paths, from, to);
    message->course.twisted = routed->twisted;
    message->course.antipode = antipode;
}

void routed_address(const struct replay *replay, struct lane_table *lane, uint32_t sender,
                    struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    const struct routes *routes = replay->routes;
    struct route_ends *ends = &message->ends;
    if (routed->guide == ROUTED_BY_AXIS) {
        routed_price(replay, lane, message);
        routed_address_along(replay, routed, sender, message);
        return;
    }
    ends->from = &routes->places[sender];
    ends->sender = sender;
    if (routed->guide == ROUTED_BY_POSITION || routed->guide == ROUTED_BY_PLACE) {
        message_look_up(replay, lane, sender, message);
        course_choose(replay, routed, message);
        return;
    }
    routed_price(replay, lane, message);
    const struct routed_step *step = message->step;
    ends->to = *ends->from;
    ends->receiver = sender;
    for (uint32_t axes = routed->axes; axes != 0; axes &= axes - 1) {
        uint32_t const axis = (uint32_t)__builtin_ctz(axes);
        uint32_t const from = ends->from->at[axis];
        uint32_t to = from + step->by.at[axis];
        if (to >= routed->end[axis][from]) to -= routed->extent[axis];
        ends->to.at[axis] = to;
        ends->receiver += routes->chip[axis][to] - routes->chip[axis][from];
    }
    message->course.antipode =
        (uint8_t)(step->antipode | path_antipode_of(&routed->balance, ends->from->at));
    course_choose(replay, routed, message);
}

void routed_way_fill(struct replay *replay, struct lane_table *lane, uint32_t sender,
                     const struct routed_message *of, uint32_t hop, struct routed_way *way)
{
    struct routed_message message = *of;
    const struct routed_lane *routed = lane->routed;
    bool const by_place = routed->guide == ROUTED_BY_PLACE;
    if (by_place)
        message.number -= of->pieces_before * lane->steps.send_count[position_of(lane, sender)];
    routed_address(replay, lane, sender, &message);
    route_find(replay, message.course, &message.ends, hop, &way->at);
    way->receiver = message.ends.receiver;
    way->tie = routed_tie(routed, message.ends.from);
    way->units = message.units;
    way->slot = message.slot;
    if (by_place)
        way->arrivals =
            lane->steps
                .arrival_count[plan_item_position(routed->plan, routed->item, message.ends.to.at)];
    way->level = (uint8_t)message.course.level;
    way->top = (uint8_t)message.course.top;
}

int64_t routed_slowest_each_ps(struct replay *replay, struct lane_table *lane, uint32_t sender,
                               const struct routed_message *message)
{
    uint32_t const hop = message->hop;
    int64_t slowest_ps = message->cost->link_ps[0];
    if (message->ways != NULL) {
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            const struct routed_way *way = routed_way_at(replay, lane, sender, message, behind);
            int64_t const link_ps = message->cost->link_ps[way->at.kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    } else if (replay->fold->link_class != NULL) {
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            struct route_link at;
            route_find(replay, message->course, &message->ends, behind, &at);
            int64_t const link_ps = message->cost->link_ps[at.kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    }
    return slowest_ps;
}

/* The message of an event that comes behind a link, opened at that link or further on. */
static void message_open_at(struct replay *replay, struct lane_table *lane, uint64_t key,
                            uint32_t hop, struct routed_message *ret_message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const shift = routed->tie_bits + routed->number_bits;
    uint64_t const hops = (UINT64_C(1) << (KEY_WHAT_BITS - shift)) - 1;
    routed_open(replay, lane, (key & ~(hops << shift)) | (uint64_t)hop << shift, ret_message);
}

static uint32_t hop_of(const struct routed_lane *routed, uint64_t key)
{
    return event_key_field(key, 0, KEY_WHAT_BITS) >> (routed->tie_bits + routed->number_bits);
}

void routed_port_ticket(struct replay *replay, uint64_t key, uint32_t sender,
                        struct port_ticket *ret_place)
{
    struct lane_table *lane = routed_lane_of(replay, key);
    struct routed_message message;
    struct route_link scratch;
    message_open_at(replay, lane, key, hop_of(lane->routed, key) - 1, &message);
    *ret_place = port_ticket_of(routed_find(replay, lane, sender, &message, &scratch));
}

uint64_t routed_rest(struct replay *replay, uint64_t key, uint32_t sender, int64_t *ret_ps)
{
    struct lane_table *lane = routed_lane_of(replay, key);
    const struct routed_lane *routed = lane->routed;
    *ret_ps = 0;
    for (uint32_t hop = hop_of(routed, key);; hop++) {
        struct routed_message message;
        struct route_link scratch;
        message_open_at(replay, lane, key, hop, &message);
        const struct route_link *at = routed_find(replay, lane, sender, &message, &scratch);
        *ret_ps += at->latency_ps;
        if (!at->last) continue;
        uint32_t const shift = routed->tie_bits + routed->number_bits;
        uint64_t const hops = (UINT64_C(1) << (KEY_WHAT_BITS - shift)) - 1;
        uint64_t const kind = UINT64_C(7) << KEY_KIND_SHIFT;
        return (key & ~(hops << shift | kind)) | (uint64_t)(hop + 1) << shift;
    }
}
