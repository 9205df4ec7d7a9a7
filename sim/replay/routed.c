#include "sim/replay/routed.h"
#include "sim/replay/early.h"
#include "sim/replay/label.h"

#include <string.h>

#include "sim/replay/landing.h"
#include "sim/replay/links.h"
#include "sim/replay/promise.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"
#include "sim/replay/tree.h"

/* What all messages of a batch have in common. */
static void message_open(const struct replay *replay, struct lane_table *lane, uint64_t order,
                         struct routed_message *ret_message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const what = order_field(order, 0, ORDER_WHAT_BITS);
    /* Its places are written when it is addressed. */
    ret_message->epoch = order_field(order, ORDER_EPOCH_SHIFT, ORDER_EPOCH_BITS);
    ret_message->hop = what >> (routed->tie_bits + routed->number_bits);
    ret_message->number = what >> routed->tie_bits & ((1u << routed->number_bits) - 1);
    ret_message->course = (struct path_course){.level = LEVEL_NONE, .twisted = routed->twisted};
    ret_message->ways = NULL;
    ret_message->step = NULL;
    if (routed->guide == ROUTED_BY_POSITION) return;
    uint32_t const each = lane->send_count[0];
    uint32_t const piece = ret_message->number < each ? 0 : ret_message->number / each;
    uint32_t const step = ret_message->number - piece * each;
    ret_message->step = &routed->steps[step];
    if (routed->guide == ROUTED_BY_WAY)
        ret_message->ways = &routed->ways[(uint64_t)step * routed->way_hops * replay->chip_count];
    ret_message->slot = piece * lane->arrival_count[0] + ret_message->step->slot;
    ret_message->cost =
        routed_cost_of(replay, lane, ret_message->step->units * routed_portion_size(lane, piece));
    if (routed->guide == ROUTED_BY_TURNS)
        ret_message->leg = route_leg(replay->routes, &ret_message->step->by, ret_message->hop,
                                     ret_message->step->antipode);
}

/* The same where positions differ. */
static void message_look_up(const struct replay *replay, struct lane_table *lane, uint32_t sender,
                            struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const position = position_of(lane, sender);
    uint32_t const piece = message->number / lane->send_count[position];
    uint32_t const number = message->number - piece * lane->send_count[position];
    struct primitive_step const step =
        plan_step(routed->plan, routed->item, lane->lane, position, number);
    plan_item_peer(routed->plan, routed->item, message->from.at, step.peer, message->to.at);
    uint32_t const receiver = plan_item_position(routed->plan, routed->item, message->to.at);
    message->slot = piece * lane->arrival_count[receiver] + step.slot;
    uint32_t const units =
        plan_step_units(routed->plan, routed->item, &step, message->from.at, piece);
    message->cost = routed_cost_of(replay, lane, units * routed_portion_size(lane, piece));
    message->course.antipode =
        (uint8_t)(path_antipode_of(&routed->balance, message->from.at) |
                  path_antipode_by(&routed->balance, message->from.at, message->to.at));
}

static inline void course_choose(const struct replay *replay, const struct routed_lane *routed,
                                 struct routed_message *message)
{
    if (!routed->switched) return;
    if ((routed->axes & (routed->axes - 1)) == 0) {
        uint32_t const axis = (uint32_t)__builtin_ctz(routed->axes);
        message->course = path_course_along(&replay->routes->paths, axis, message->from.at[axis],
                                            message->to.at[axis]);
        return;
    }
    uint8_t const antipode = message->course.antipode;
    message->course = path_course(&replay->routes->paths, message->from.at, message->to.at);
    message->course.twisted = routed->twisted;
    message->course.antipode = antipode;
}

/* Where a chip's message comes from and goes to. */
static inline void message_address(const struct replay *replay, struct lane_table *lane,
                                   uint32_t sender, struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    message->from = replay->routes->places[sender];
    if (routed->guide == ROUTED_BY_POSITION) {
        message_look_up(replay, lane, sender, message);
        course_choose(replay, routed, message);
        return;
    }
    const struct routed_step *step = message->step;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        uint32_t const from = message->from.at[axis];
        uint32_t to = from + step->by.at[axis];
        if (to >= routed->end[axis][from]) to -= routed->extent[axis];
        message->to.at[axis] = to;
    }
    message->course.antipode =
        (uint8_t)(step->antipode | path_antipode_of(&routed->balance, message->from.at));
    course_choose(replay, routed, message);
}

/* Looks a place on the way of a chip's message up, to be remembered. */
static void way_fill(struct replay *replay, struct lane_table *lane, uint32_t sender,
                     const struct routed_message *of, uint32_t hop, struct routed_way *way)
{
    struct routed_message message = *of;
    message_address(replay, lane, sender, &message);
    route_find(replay, message.course, &message.from, &message.to, hop, &way->at);
    way->receiver = route_chip(replay->routes, &message.to);
    way->tie = routed_tie(lane->routed, &message.from);
    if (message.course.level == LEVEL_NONE) return;
    const struct level_links *level = &replay->routes->level[message.course.level];
    for (uint32_t t = 0; t <= message.course.turn; t++)
        way->passes = way->passes || !level->tier[t].queues;
}

/* Where a chip's message is after a number of links, of a lane that remembers. */
static inline const struct routed_way *way_at(struct replay *replay, struct lane_table *lane,
                                              uint32_t sender, const struct routed_message *message,
                                              uint32_t hop)
{
    struct routed_way *way = &message->ways[(uint64_t)hop * replay->chip_count + sender];
    if (way->at.link == NULL) way_fill(replay, lane, sender, message, hop, way);
    return way;
}

/* The link that a message of a batch takes next. */
static inline const struct route_link *message_find(struct replay *replay, struct lane_table *lane,
                                                    uint32_t sender, struct routed_message *message,
                                                    struct route_link *scratch)
{
    if (message->ways != NULL) return &way_at(replay, lane, sender, message, message->hop)->at;
    if (lane->routed->guide == ROUTED_BY_TURNS) {
        message->from = replay->routes->places[sender];
        route_leg_find(replay, &message->leg, &message->from, &message->step->by, scratch);
        return scratch;
    }
    message_address(replay, lane, sender, message);
    route_find(replay, message->course, &message->from, &message->to, message->hop, scratch);
    return scratch;
}

/* The replayed chip that a message goes to. */
static inline uint32_t receiver_of(struct replay *replay, struct lane_table *lane, uint32_t sender,
                                   struct routed_message *message)
{
    if (message->ways != NULL) return way_at(replay, lane, sender, message, 0)->receiver;
    message_address(replay, lane, sender, message);
    return route_chip(replay->routes, &message->to);
}

/* Who sends it to whom, and where between them it is, on chips that lie as the real ones do. */
static struct label_ends ends_of(struct replay *replay, struct lane_table *lane, uint32_t sender,
                                 const struct routed_message *of, const struct route_link *on)
{
    struct routed_message message = *of;
    uint32_t at[MACHINE_AXES_MAX];
    message_address(replay, lane, sender, &message);
    fold_coordinates(replay->fold, sender, at);
    struct label_ends ends = {.from = machine_chip_at(replay->machine, at),
                              .to = machine_chip_at(replay->machine, message.to.at),
                              .number = message.number};
    for (uint32_t hop = 0; hop < message.hop && on->port < MACHINE_GRID_PORTS; hop++) {
        struct route_link link;
        uint32_t next[MACHINE_AXES_MAX];
        route_find(replay, message.course, &message.from, &message.to, hop, &link);
        machine_neighbour(replay->machine, at, link.port, next);
        memcpy(at, next, sizeof at);
    }
    bool const reaches = message.hop > 0 && on->port >= MACHINE_GRID_PORTS; /* Down to it. */
    ends.at = reaches ? ends.to : machine_chip_at(replay->machine, at);
    return ends;
}

/* A message on its route, for the timeline of a shown chip; it is the sender's op. */
static void message_record(struct replay *replay, struct lane_table *lane, uint32_t sender,
                           const struct routed_message *message, const struct route_link *at,
                           int64_t begin_ps, int64_t end_ps)
{
    uint32_t chip = at->chip;
    if (at->port >= MACHINE_GRID_PORTS) {
        if (message->hop != 0 && !at->last) return; /* A cable between switches is no chip's. */
        chip = sender;
        if (at->last && message->ways != NULL)
            chip = way_at(replay, lane, sender, message, 0)->receiver;
        else if (at->last)
            chip = route_chip(replay->routes, &message->to);
    }
    if (!replay->chips[chip].shown) return;
    struct label const label = label_of_epoch(replay, lane->stream, sender, message->epoch);
    struct label_ends const ends = ends_of(replay, lane, sender, message, at);
    link_record(replay, lane, &label, &ends, chip, at->port, begin_ps, end_ps,
                message->cost->memory.bytes);
}

/* A message at a link, as it is kept where streams may share that. */
static struct port_entry entry_of(struct lane_table *lane, uint32_t sender,
                                  const struct routed_message *message, const struct route_link *at,
                                  uint64_t order, int64_t tail_ps, int64_t overhead_ps)
{
    enum replay_event const event = at->last ? EVENT_ARRIVE : EVENT_HOP;
    return (struct port_entry){
        .lane = lane,
        .order = order | (uint64_t)event << ORDER_KIND_SHIFT,
        .work_ps = message->cost->link_ps[at->kind],
        .tail_ps = tail_ps,
        .latency_ps = at->latency_ps + overhead_ps,
        .chip = sender,
        .last = at->last,
        .own = message->hop == 0,
    };
}

static struct port_place place_of(const struct route_link *at)
{
    return (struct port_place){
        .link = at->link, .waits = at->waits, .kind = at->kind, .port = at->port, .chip = at->chip};
}

/* The same where the link has messages with which it takes turns. */
static int64_t message_share_link(struct replay *replay, struct lane_table *lane, uint32_t sender,
                                  const struct routed_message *message, const struct route_link *at,
                                  uint64_t order, int64_t now_ps, int64_t tail_ps,
                                  int64_t overhead_ps)
{
    struct port_entry entry = entry_of(lane, sender, message, at, order, tail_ps, overhead_ps);
    struct port_place const place = place_of(at);
    uint64_t const records = replay->records.count;
    if (replay->records.active)
        message_record(replay, lane, sender, message, at, now_ps, now_ps + entry.work_ps);
    if (replay->records.count > records) entry.record = (uint32_t)replay->records.count;
    return promise_share(replay, &place, &entry, message->cost->memory.bytes, now_ps);
}

/* Puts a message on its next link, first come, first served, and posts what comes after it. A link
 * is taken for the message's own time on it; the tail leaves no earlier than it has come. Returns
 * when it leaves. */
static int64_t message_take(struct replay *replay, struct lane_table *lane, uint32_t sender,
                            const struct routed_message *message, const struct route_link *at,
                            uint64_t order, int64_t now_ps, int64_t tail_ps, int64_t overhead_ps)
{
    struct link_state *link = at->link;
    const struct routed_cost *cost = message->cost;
    int64_t const link_ps = cost->link_ps[at->kind];
    if (promise_meets(replay, link, lane->stream, lane, now_ps))
        return message_share_link(replay, lane, sender, message, at, order, now_ps, tail_ps,
                                  overhead_ps);
    int64_t const start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    int64_t depart_ps = start_ps + link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    if (depart_ps >= TIME_PS_END) { /* The run ends with an error; nothing may overflow before. */
        engine_post(replay->engine, TIME_PS_END, order, 0, sender);
        return link->free_ps = TIME_PS_END;
    }
    if (start_ps - now_ps > replay->tally.queued_ps[at->port])
        replay->tally.queued_ps[at->port] = start_ps - now_ps;
    if (at->waits != NULL) {
        at->waits->waited_ps += (uint64_t)(start_ps - now_ps);
        at->waits->messages++;
    }
    link->free_ps = start_ps + link_ps;
    link->busy_ps += link_ps;
    link->bytes += cost->memory.bytes;
    link->stream = lane->stream;
    link->lane = lane->number;
    replay->tally.transfers++;
    uint64_t const records = replay->records.count;
    if (replay->records.active)
        message_record(replay, lane, sender, message, at, start_ps, depart_ps);
    int64_t const latency_ps = at->latency_ps + overhead_ps;
    enum replay_event const event = at->last ? EVENT_ARRIVE : EVENT_HOP;
    engine_post(replay->engine, (at->last ? depart_ps : start_ps) + latency_ps,
                order | (uint64_t)event << ORDER_KIND_SHIFT,
                channel_of(replay, event, lane->number), sender);
    if (replay->ports != NULL) {
        struct port_entry entry = entry_of(lane, sender, message, at, order, tail_ps, overhead_ps);
        struct port_place const place = place_of(at);
        entry.end_ps = link->free_ps;
        if (replay->records.count > records) entry.record = (uint32_t)replay->records.count;
        promise_keep(replay, &place, &entry, now_ps);
    }
    return depart_ps;
}

/* The longest that a link behind the `hop`-th took for the message: its tail comes so much after
 * its head. While a head waits its tail catches up, but a message without memory cannot know how
 * far: behind a queue it may leave a fast link later than it could, by that time at most. Links are
 * no longer busy for it. */
static int64_t slowest_ps(struct replay *replay, struct lane_table *lane, uint32_t sender,
                          const struct routed_message *message, uint32_t hop)
{
    int64_t slowest_ps = message->cost->link_ps[0];
    if (message->ways != NULL) {
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            const struct routed_way *way = way_at(replay, lane, sender, message, behind);
            int64_t const link_ps = message->cost->link_ps[way->at.kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    } else if (message->course.level != LEVEL_NONE) {
        const struct level_links *level = &replay->routes->level[message->course.level];
        const struct path_stop *stop = level->path->climb[message->course.turn].stop;
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            int64_t const link_ps = message->cost->link_ps[level->tier[stop[behind].tier].kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    } else if (replay->fold->link_class != NULL) {
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            struct route_link at;
            route_find(replay, message->course, &message->from, &message->to, behind, &at);
            int64_t const link_ps = message->cost->link_ps[at.kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    }
    return slowest_ps;
}

/* Counts a message on the cables of its way where nothing waits. */
static void passed_count(struct replay *replay, struct lane_table *lane, uint32_t sender,
                         struct routed_message *message)
{
    if (message->ways != NULL) {
        if (!message->ways[sender].passes) return;
        message_address(replay, lane, sender, message);
    }
    if (message->course.level == LEVEL_NONE) return;
    struct level_links *level = &replay->routes->level[message->course.level];
    for (uint32_t t = 0; t <= message->course.turn; t++) {
        struct tier_links *tier = &level->tier[t];
        if (tier->queues) continue;
        tier->links[0][route_unit_below(tier, &message->from)].bytes += message->cost->memory.bytes;
        tier->links[1][route_unit_below(tier, &message->to)].bytes += message->cost->memory.bytes;
    }
}

int64_t routed_send(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    if (routed->guide == ROUTED_BY_TREE) return tree_send(replay, lane, chip, now_ps);
    uint32_t const epoch = stream_at(replay, lane->stream, chip)->epoch;
    uint64_t order = routed_order(lane, EVENT_ARRIVE, epoch) | (uint64_t)lane->states[chip].sent
                                                                   << routed->tie_bits;
    struct routed_message message;
    struct route_link scratch;
    message_open(replay, lane, order, &message); /* Of hop 0. */
    const struct route_link *at = message_find(replay, lane, chip, &message, &scratch);
    order += (UINT64_C(1) << (routed->tie_bits + routed->number_bits)) +
             (message.ways != NULL ? message.ways[chip].tie : routed_tie(routed, &message.from));
    passed_count(replay, lane, chip, &message);
    uint32_t const network = route_network(at->port);
    int64_t const work_ps = message.cost->memory.read_ps;
    int64_t const read_ps = dma_read_ps(&replay->servers, chip, work_ps, now_ps);
    int64_t const depart_ps = message_take(replay, lane, chip, &message, at, order, now_ps, read_ps,
                                           lane->routed->overhead_ps[network]);
    uint32_t const way = network == 0 ? at->port : replay->grid.port_count + network - 1;
    dma_leave(&replay->servers, reads_at(&replay->servers, way, chip), chip, work_ps, now_ps,
              promise_left_ps(at->link, depart_ps));
    return depart_ps;
}

void routed_hop(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    const struct routed_lane *routed = lane->routed;
    if (routed->guide == ROUTED_BY_TREE) {
        tree_hop(replay, lane, order, chips, count, now_ps);
        return;
    }
    uint64_t const onwards = (order & ~((uint64_t)EVENT_HOP << ORDER_KIND_SHIFT)) +
                             (UINT64_C(1) << (routed->tie_bits + routed->number_bits));
    struct routed_message message;
    message_open(replay, lane, order, &message);
    for (uint32_t i = 0; i < count; i++) {
        struct route_link scratch;
        if (promise_is_void(replay, order, chips[i], now_ps)) continue;
        const struct route_link *at = message_find(replay, lane, chips[i], &message, &scratch);
        /* Cut through: the tail follows its head over the slowest link so far. */
        int64_t const tail_ps = now_ps + slowest_ps(replay, lane, chips[i], &message, message.hop);
        (void)message_take(replay, lane, chips[i], &message, at, onwards, now_ps, tail_ps, 0);
    }
}

/* The message of an arrival, and the chip where it is. */
static inline uint32_t message_receive(struct replay *replay, struct lane_table *lane,
                                       uint64_t order, uint32_t payload,
                                       struct routed_message *message)
{
    if (lane->routed->guide == ROUTED_BY_TREE) {
        tree_message(replay, lane, order, payload, message);
        return payload;
    }
    return receiver_of(replay, lane, payload, message);
}

/* A message's own time on its way. */
static int64_t own_ps(struct replay *replay, struct lane_table *lane, uint32_t sender,
                      const struct routed_message *message)
{
    if (lane->routed->guide == ROUTED_BY_TREE) return tree_pace_ps(lane, message->cost);
    return slowest_ps(replay, lane, sender, message, message->hop);
}

void routed_arrive(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                   int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    struct routed_message message;
    if (lane->routed->guide != ROUTED_BY_TREE) message_open(replay, lane, order, &message);
    for (uint32_t i = 0; i < count; i++) {
        if (promise_is_void(replay, order, chips[i], 0)) continue;
        uint32_t const chip = message_receive(replay, lane, order, chips[i], &message);
        digest_add(replay, now_ps, order, chips[i]);
        const struct message_cost *cost = &message.cost->memory;
        bool const looks_back =
            landing_looks_back(&replay->servers, cost, chip, message.cost->slowest_ps, now_ps);
        int64_t const link_ps = looks_back ? own_ps(replay, lane, chips[i], &message) : 0;
        int64_t const land_ps = landing_ps(&replay->servers, cost, link_ps, chip, now_ps);
        if (land_ps > now_ps)
            engine_post(replay->engine, land_ps, order | (uint64_t)EVENT_LAND << ORDER_KIND_SHIFT,
                        channel_of(replay, EVENT_LAND, lane->number), chips[i]);
        else
            routed_message_land(replay, lane, chip, &message, now_ps);
    }
}

void routed_land(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                 int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    struct routed_message message;
    if (lane->routed->guide != ROUTED_BY_TREE) message_open(replay, lane, order, &message);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = message_receive(replay, lane, order, chips[i], &message);
        routed_message_land(replay, lane, chip, &message, now_ps);
    }
}

/* The message of an event that comes behind a link, opened at that link or further on. */
static void message_open_at(struct replay *replay, struct lane_table *lane, uint64_t order,
                            uint32_t hop, struct routed_message *ret_message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const shift = routed->tie_bits + routed->number_bits;
    uint64_t const hops = (UINT64_C(1) << (ORDER_WHAT_BITS - shift)) - 1;
    message_open(replay, lane, (order & ~(hops << shift)) | (uint64_t)hop << shift, ret_message);
}

static uint32_t hop_of(const struct routed_lane *routed, uint64_t order)
{
    return order_field(order, 0, ORDER_WHAT_BITS) >> (routed->tie_bits + routed->number_bits);
}

void routed_port_place(struct replay *replay, uint64_t order, uint32_t sender,
                       struct port_place *ret_place)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    struct routed_message message;
    struct route_link scratch;
    message_open_at(replay, lane, order, hop_of(lane->routed, order) - 1, &message);
    *ret_place = place_of(message_find(replay, lane, sender, &message, &scratch));
}

uint64_t routed_rest(struct replay *replay, uint64_t order, uint32_t sender, int64_t *ret_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    const struct routed_lane *routed = lane->routed;
    *ret_ps = 0;
    for (uint32_t hop = hop_of(routed, order);; hop++) {
        struct routed_message message;
        struct route_link scratch;
        message_open_at(replay, lane, order, hop, &message);
        const struct route_link *at = message_find(replay, lane, sender, &message, &scratch);
        *ret_ps += at->latency_ps;
        if (!at->last) continue;
        uint32_t const shift = routed->tie_bits + routed->number_bits;
        uint64_t const hops = (UINT64_C(1) << (ORDER_WHAT_BITS - shift)) - 1;
        uint64_t const kind = UINT64_C(7) << ORDER_KIND_SHIFT;
        return (order & ~(hops << shift | kind)) | (uint64_t)(hop + 1) << shift;
    }
}
