#include "sim/replay/routed.h"

#include <string.h>

#include "sim/replay/landing.h"
#include "sim/replay/links.h"
#include "sim/replay/mail.h"
#include "sim/replay/tree.h"

const struct routed_cost *routed_cost_of(const struct replay *replay, const struct lane_table *lane,
                                         uint32_t units)
{
    struct routed_lane *routed = lane->routed;
    struct routed_cost *cost = &routed->costs[units / 2 % ROUTED_COSTS];
    if (cost->units == units) return cost;
    cost->units = units;
    cost->memory =
        tables_cost(replay, routed->plan, lane->primitive, units * routed->item->unit_bytes);
    for (uint32_t kind = 0; kind < replay->routes->kind_count; kind++)
        cost->link_ps[kind] =
            replay->routes->rate[kind] == 0
                ? 0
                : units_duration_ps(cost->memory.bytes, replay->routes->rate[kind]);
    return cost;
}

/* How many times its step's units a message is long. */
static inline uint32_t portion_size(const struct lane_table *lane, uint32_t piece)
{
    if (lane->portions == 1) return 1;
    return plan_item_portion_size(lane->item, piece % lane->portions);
}

/* What all messages of a batch have in common. */
static void message_open(const struct replay *replay, struct lane_table *lane, uint64_t order,
                         struct routed_message *ret_message)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const what = order_field(order, 0, ORDER_WHAT_BITS);
    *ret_message = (struct routed_message){
        .epoch = order_field(order, ORDER_EPOCH_SHIFT, ORDER_EPOCH_BITS),
        .hop = what >> (routed->tie_bits + routed->number_bits),
        .number = what >> routed->tie_bits & ((1u << routed->number_bits) - 1),
        .course = {.level = LEVEL_NONE, .twisted = routed->twisted},
    };
    if (routed->steps == NULL) return;
    uint32_t const each = lane->send_count[0];
    uint32_t const piece = ret_message->number < each ? 0 : ret_message->number / each;
    ret_message->step = &routed->steps[ret_message->number - piece * each];
    ret_message->slot = piece * lane->arrival_count[0] + ret_message->step->slot;
    ret_message->cost =
        routed_cost_of(replay, lane, ret_message->step->units * portion_size(lane, piece));
    if (routed->together)
        ret_message->leg = route_leg(replay->routes, &ret_message->step->by, ret_message->hop,
                                     ret_message->step->antipode);
}

/* Axes on which the sender has its antipodal messages go down. */
static uint32_t parity_of(const struct routed_lane *routed, const struct place *from)
{
    uint32_t axes = 0;
    for (uint32_t bits = routed->parity; bits != 0; bits &= bits - 1) {
        uint32_t const axis = (uint32_t)__builtin_ctz(bits);
        axes |= from->at[axis] / routed->stride[axis] % 2 << axis;
    }
    return axes;
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
    message->cost = routed_cost_of(replay, lane, units * portion_size(lane, piece));
    message->antipode = parity_of(routed, &message->from);
    for (uint32_t axis = 0; axis < replay->routes->grid_axes; axis++) {
        uint32_t const by = routed->parity_by[axis];
        if (by == UINT8_MAX) continue;
        uint32_t const odd =
            message->from.at[by] / routed->stride[by] + message->to.at[by] / routed->stride[by];
        message->antipode |= odd % 2 << axis;
    }
}

static inline void course_choose(const struct replay *replay, const struct routed_lane *routed,
                                 struct routed_message *message)
{
    if (!routed->switched) return;
    if ((routed->axes & (routed->axes - 1)) == 0) {
        uint32_t const axis = (uint32_t)__builtin_ctz(routed->axes);
        message->course =
            route_course_along(replay->routes, axis, message->from.at[axis], message->to.at[axis]);
        return;
    }
    message->course = route_course(replay->routes, &message->from, &message->to);
    message->course.twisted = routed->twisted;
}

/* Where a chip's message comes from and goes to. */
static inline void message_address(const struct replay *replay, struct lane_table *lane,
                                   uint32_t sender, struct routed_message *message)
{
    const struct routed_lane *routed = lane->routed;
    message->from = replay->routes->places[sender];
    if (routed->steps == NULL) {
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
    message->antipode = step->antipode | parity_of(routed, &message->from);
    course_choose(replay, routed, message);
}

/* The link that a message of a batch takes next. */
static inline void message_find(struct replay *replay, struct lane_table *lane, uint32_t sender,
                                struct routed_message *message, struct route_link *ret_link)
{
    if (lane->routed->together) {
        message->from = replay->routes->places[sender];
        route_leg_find(replay, &message->leg, &message->from, &message->step->by, ret_link);
        return;
    }
    message_address(replay, lane, sender, message);
    route_find(replay, message->course, &message->from, &message->to, message->hop,
               message->antipode, ret_link);
}

/* A message on its route, for the timeline of a shown chip; it is the sender's op. */
static void message_record(struct replay *replay, const struct lane_table *lane, uint32_t sender,
                           const struct routed_message *message, const struct route_link *at,
                           int64_t begin_ps, int64_t end_ps)
{
    uint32_t chip = at->chip;
    if (at->port >= MACHINE_GRID_PORTS) {
        if (message->hop != 0 && !at->last) return; /* A cable between switches is no chip's. */
        chip = at->last ? route_chip(replay->routes, &message->to) : sender;
    }
    if (replay->chips[chip].shown)
        link_record(replay, lane, chip, at->port, begin_ps, end_ps, message->cost->memory.bytes);
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
    int64_t const start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    int64_t depart_ps = start_ps + link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    if (depart_ps >= TIME_PS_END) { /* The run ends with an error; nothing may overflow before. */
        engine_post(replay->engine, TIME_PS_END, order, 0, sender);
        return link->free_ps = TIME_PS_END;
    }
    if (start_ps - now_ps > replay->queued_ps[at->port])
        replay->queued_ps[at->port] = start_ps - now_ps;
    if (at->waits != NULL) {
        at->waits->waited_ps += (uint64_t)(start_ps - now_ps);
        at->waits->messages++;
    }
    link->free_ps = start_ps + link_ps;
    link->busy_ps += link_ps;
    link->bytes += cost->memory.bytes;
    replay->transfers++;
    if (replay->recording) message_record(replay, lane, sender, message, at, start_ps, depart_ps);
    int64_t const latency_ps = at->latency_ps + overhead_ps;
    enum replay_event const event = at->last ? EVENT_ARRIVE : EVENT_HOP;
    engine_post(replay->engine, (at->last ? depart_ps : start_ps) + latency_ps,
                order | (uint64_t)event << ORDER_KIND_SHIFT,
                channel_of(replay, event, lane->number), sender);
    return depart_ps;
}

/* The longest that a link behind the `hop`-th took for the message: its tail comes so much after
 * its head. While a head waits its tail catches up, but a message without memory cannot know how
 * far: behind a queue it may leave a fast link later than it could, by that time at most. Links are
 * no longer busy for it. */
static int64_t slowest_ps(struct replay *replay, const struct routed_message *message, uint32_t hop)
{
    int64_t slowest_ps = message->cost->link_ps[0];
    if (message->course.level != LEVEL_NONE) {
        const struct level_links *level = &replay->routes->level[message->course.level];
        const struct route_stop *stop = level->way[message->course.turn].stop;
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            int64_t const link_ps = message->cost->link_ps[level->tier[stop[behind].tier].kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    } else if (replay->fold->link_class != NULL) {
        slowest_ps = 0;
        for (uint32_t behind = 0; behind < hop; behind++) {
            struct route_link at;
            route_find(replay, message->course, &message->from, &message->to, behind,
                       message->antipode, &at);
            int64_t const link_ps = message->cost->link_ps[at.kind];
            slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
        }
    }
    return slowest_ps;
}

/* Counts a message on the cables of its way where nothing waits. */
static void passed_count(struct replay *replay, const struct routed_message *message)
{
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
    if (routed->tree != NULL) return tree_send(replay, lane, chip, now_ps);
    uint32_t const epoch = stream_at(replay, lane->stream, chip)->epoch;
    uint64_t order = routed_order(lane, EVENT_ARRIVE, epoch) | (uint64_t)lane->states[chip].sent
                                                                   << routed->tie_bits;
    struct routed_message message;
    struct route_link at;
    message_open(replay, lane, order, &message); /* Of hop 0. */
    message_find(replay, lane, chip, &message, &at);
    order += (UINT64_C(1) << (routed->tie_bits + routed->number_bits)) +
             routed_tie(routed, &message.from);
    passed_count(replay, &message);
    int64_t const read_ps = dma_charge(replay, chip, now_ps, message.cost->memory.read_ps);
    return message_take(replay, lane, chip, &message, &at, order, now_ps, read_ps,
                        lane->routed->overhead_ps[route_network(at.port)]);
}

void routed_hop(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    const struct routed_lane *routed = lane->routed;
    if (routed->tree != NULL) {
        tree_hop(replay, lane, order, chips, count, now_ps);
        return;
    }
    uint64_t const onwards = (order & ~((uint64_t)EVENT_HOP << ORDER_KIND_SHIFT)) +
                             (UINT64_C(1) << (routed->tie_bits + routed->number_bits));
    struct routed_message message;
    message_open(replay, lane, order, &message);
    for (uint32_t i = 0; i < count; i++) {
        struct route_link at;
        message_find(replay, lane, chips[i], &message, &at);
        /* Cut through: the tail follows its head over the slowest link so far. */
        int64_t const tail_ps = now_ps + slowest_ps(replay, &message, message.hop);
        (void)message_take(replay, lane, chips[i], &message, &at, onwards, now_ps, tail_ps, 0);
    }
}

/* The slots of the collective of an epoch at a receiver. */
static uint64_t *slots_of(const struct routed_lane *routed, uint32_t chip, uint32_t epoch)
{
    return &routed->slots[((uint64_t)chip * EPOCHS_AHEAD + epoch % EPOCHS_AHEAD) * routed->words];
}

/* Notes an arrival that is early, or not the next in the order of slots. */
static void slot_put(const struct lane_table *lane, uint32_t chip,
                     const struct routed_message *message)
{
    uint64_t *word = &slots_of(lane->routed, chip, message->epoch)[message->slot / 64];
    uint64_t const bit = UINT64_C(1) << message->slot % 64;
    SIM_ASSERT((*word & bit) == 0);
    *word |= bit;
}

/* Counts the arrivals in slots of which all before have been counted. */
static void slots_count(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    struct lane_state *state = &lane->states[chip];
    if (state->early == 0) return;
    const uint64_t *slots =
        slots_of(lane->routed, chip, stream_at(replay, lane->stream, chip)->epoch);
    while (state->early > 0 && slots[state->counted / 64] >> state->counted % 64 & 1) {
        state->early--;
        state->counted++;
    }
}

/* Parts of a collective that runs on which others may now count. */
static uint32_t parts_new(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                          uint32_t units)
{
    const struct plan *plan = lane->routed->plan;
    if (plan->counts_units) return units;
    if (plan->part_count == 1 || !lane->last) return 0;
    return transport_parts_new(replay, lane, chip);
}

/* Takes an arrival into the books of a collective that runs. Most come in the order of their slots
 * and need none. */
static void absorb(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                   const struct routed_message *message)
{
    struct lane_state *state = &lane->states[chip];
    if (!lane->routed->prefix) {
        state->counted++;
    } else if (message->slot == state->counted) {
        state->counted++;
        slots_count(replay, lane, chip);
    } else {
        SIM_ASSERT(message->slot > state->counted);
        slot_put(lane, chip, message);
        state->early++;
    }
}

void routed_refuse_ahead(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    if (replay->refusal.status != STATUS_OK) return;
    (void)error_set(&replay->refusal, STATUS_LIMIT, "/run",
                    "chip %u is more than %d collectives of stream %s behind a chip that sends to "
                    "it; a run keeps messages for no more",
                    fold_machine_chip(replay->fold, replay->machine, chip), EPOCHS_AHEAD - 1,
                    replay->program->stream[lane->stream].name);
}

/* Whether a lane behind may go on when arrivals are counted up to `after`. */
static inline bool is_awaited(const struct lane_table *lane, uint32_t before, uint32_t after)
{
    if (lane->behind_count == 0) return false;
    if (lane->awaited == NULL) return true;
    while (before < after && !lane->awaited[before + 1]) before++;
    return before < after;
}

static void message_land(struct replay *replay, struct lane_table *lane, uint32_t chip,
                         const struct routed_message *message, int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    const struct stream_state *stream = stream_at(replay, lane->stream, chip);
    if (lane->posts) {
        mail_arrive(replay, lane->stream, chip, now_ps);
        return;
    }
    uint32_t const ahead = (message->epoch - stream->epoch) & ((1u << ORDER_EPOCH_BITS) - 1);
    if (ahead >= EPOCHS_AHEAD) {
        routed_refuse_ahead(replay, lane, chip);
        return;
    }
    if (ahead > 0) {
        if (routed->prefix) slot_put(lane, chip, message);
        uint64_t const row = (uint64_t)chip * EPOCHS_AHEAD + message->epoch % EPOCHS_AHEAD;
        routed->early[row]++;
        routed->early_units[row] += message->cost->units;
        return;
    }
    SIM_ASSERT(*running_at(replay, lane->stream, chip) == lane->plan->index);
    uint32_t const before = lane->states[chip].counted;
    absorb(replay, lane, chip, message);
    uint32_t const parts = parts_new(replay, lane, chip, message->cost->units);
    if (parts > 0) streams_progress(replay, lane->stream, chip, parts, now_ps);
    if (lane->states[chip].counted == before) return;
    if (lane->waits) {
        const struct plan_item *item = lane->item;
        for (uint32_t i = 0; i < lane->primitive->lane_count; i++)
            transport_lane_try(replay, &lane->plan->lane[item->lane_first + i], chip, now_ps);
    } else {
        transport_lane_check(replay, lane, chip);
    }
    if (is_awaited(lane, before, lane->states[chip].counted))
        transport_followers_try(replay, lane, chip, now_ps);
    if (lane->states[chip].finished) transport_check_end(replay, lane->stream, chip, now_ps);
}

/* The message of an arrival, and the chip where it is. */
static inline uint32_t message_receive(struct replay *replay, struct lane_table *lane,
                                       uint64_t order, uint32_t payload,
                                       struct routed_message *message)
{
    if (lane->routed->tree != NULL) {
        tree_message(replay, lane, order, payload, message);
        return payload;
    }
    message_address(replay, lane, payload, message);
    return route_chip(replay->routes, &message->to);
}

/* A message's own time on its way. */
static int64_t own_ps(struct replay *replay, const struct lane_table *lane,
                      const struct routed_message *message)
{
    if (lane->routed->tree != NULL) return tree_pace_ps(lane, message->cost);
    return slowest_ps(replay, message, message->hop);
}

void routed_arrive(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                   int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    struct routed_message message;
    if (lane->routed->tree == NULL) message_open(replay, lane, order, &message);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = message_receive(replay, lane, order, chips[i], &message);
        replay->digest += digest_record(now_ps, order, chips[i]);
        int64_t const link_ps = replay->dma_may_exceed ? own_ps(replay, lane, &message) : 0;
        int64_t const land_ps = landing_ps(replay, &message.cost->memory, link_ps, chip, now_ps);
        if (land_ps > now_ps)
            engine_post(replay->engine, land_ps, order | (uint64_t)EVENT_LAND << ORDER_KIND_SHIFT,
                        channel_of(replay, EVENT_LAND, lane->number), chips[i]);
        else
            message_land(replay, lane, chip, &message, now_ps);
    }
}

void routed_land(struct replay *replay, uint64_t order, const uint32_t *chips, uint32_t count,
                 int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, order);
    struct routed_message message;
    if (lane->routed->tree == NULL) message_open(replay, lane, order, &message);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = message_receive(replay, lane, order, chips[i], &message);
        message_land(replay, lane, chip, &message, now_ps);
    }
}

uint32_t routed_begin(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    const struct routed_lane *routed = lane->routed;
    uint64_t const row =
        (uint64_t)chip * EPOCHS_AHEAD + stream_at(replay, lane->stream, chip)->epoch % EPOCHS_AHEAD;
    uint32_t const count = routed->early[row], units = routed->early_units[row];
    routed->early[row] = 0;
    routed->early_units[row] = 0;
    if (count == 0) return 0;
    if (routed->prefix)
        lane->states[chip].early = count;
    else
        lane->states[chip].counted = count;
    slots_count(replay, lane, chip);
    return parts_new(replay, lane, chip, units);
}

void routed_end(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    const struct routed_lane *routed = lane->routed;
    if (!routed->prefix) return;
    uint32_t const row = stream_at(replay, lane->stream, chip)->epoch % EPOCHS_AHEAD;
    memset(&routed->slots[((uint64_t)chip * EPOCHS_AHEAD + row) * routed->words], 0,
           routed->words * sizeof *routed->slots);
}

void routed_ahead(struct replay *replay, uint64_t order, uint32_t chip)
{
    (void)order;
    __builtin_prefetch(&replay->routes->places[chip]);
}
