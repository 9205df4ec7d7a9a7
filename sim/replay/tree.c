#include "sim/replay/tree.h"

#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight.h"
#include "sim/replay/message.h"
#include "sim/replay/promise.h"
#include "sim/replay/record_owner.h"
#include "sim/replay/transport.h"

/* A message in a unit. */
struct tree_message {
    uint32_t tier;
    uint32_t piece;
    uint32_t epoch;
    uint32_t displacement; /* From the payload to the receiver, or to the source. */
    const struct routed_cost *cost;
};

/* The lowest member in the unit of a tier that holds a replayed chip; tier -1: the chip itself. */
static struct place lowest(const struct tree *tree, const struct place *place, int32_t tier)
{
    struct place result = *place;
    for (uint32_t axis = 0; tier >= 0 && axis < MACHINE_AXES_MAX; axis++)
        result.at[axis] = tree->tier[tier].children[axis][place->at[axis]].at[0];
    return result;
}

static bool has_outside(const struct tree_tier *tier, const struct place *place)
{
    bool outside = false;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        outside = outside || tier->outside[axis][place->at[axis]];
    return outside;
}

static uint32_t displacement_between(const struct routed_lane *routed, const struct place *from,
                                     const struct place *to)
{
    uint32_t displacement = 0;
    const uint8_t *digit = NULL;
    uint32_t const count = plan_item_digits(routed->plan, routed->item, &digit);
    for (uint32_t i = 0; i < count; i++) {
        const struct group_dimension *dimension = &routed->plan->group.dimension[digit[i]];
        uint32_t const a = group_position(dimension, from->at[dimension->axis]);
        uint32_t const b = group_position(dimension, to->at[dimension->axis]);
        displacement = displacement * dimension->size + (b + dimension->size - a) % dimension->size;
    }
    return displacement;
}

static struct place displaced(const struct routed_lane *routed, const struct place *from,
                              uint32_t displacement)
{
    struct place to = *from;
    const uint8_t *digit = NULL;
    for (uint32_t i = plan_item_digits(routed->plan, routed->item, &digit); i-- > 0;) {
        const struct group_dimension *dimension = &routed->plan->group.dimension[digit[i]];
        uint32_t const axis = dimension->axis;
        to.at[axis] += displacement % dimension->size * dimension->stride;
        if (to.at[axis] >= routed->end[axis][from->at[axis]]) to.at[axis] -= routed->extent[axis];
        displacement /= dimension->size;
    }
    return to;
}

/* Where it is replayed. */
static struct place replayed(const struct replay *replay, const struct place *place)
{
    return replay->routes->places[route_chip(replay->routes, place)];
}

static bool same_unit(const struct tree *tree, uint32_t t, const struct place *a,
                      const struct place *b)
{
    bool same = true;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        same = same && tree->level->path->tier[t].unit_at[axis][a->at[axis]] ==
                           tree->level->path->tier[t].unit_at[axis][b->at[axis]];
    return same;
}

static void tree_post(struct replay *replay, const struct lane_table *lane,
                      const struct tree_message *message, enum tree_step step, uint32_t tier,
                      const struct place *payload, uint32_t displacement, int64_t at_ps)
{
    const struct routed_lane *routed = lane->routed;
    uint64_t const hop = tier * TREE_STEPS + (uint64_t)step;
    uint64_t const tie = (uint64_t)routed_tie(routed, payload) * lane->size + displacement;
    engine_post(replay->engine, at_ps,
                routed_key(lane, EVENT_HOP, message->epoch) |
                    hop << (routed->tie_bits + routed->number_bits) |
                    (uint64_t)message->piece << routed->tie_bits | tie,
                channel_of(replay, EVENT_HOP, lane->number), route_chip(replay->routes, payload));
}

/* The slowest cable of the way up to a tier, and down again from the highest. */
static int64_t pace_ps(const struct tree *tree, const struct tree_message *message, bool down)
{
    int64_t slowest_ps = 0;
    uint32_t const highest = down ? tree->tier_count - 1 : message->tier;
    for (uint32_t t = 0; t <= highest; t++) {
        int64_t const link_ps = message->cost->link_ps[tree->level->tier[t].kind];
        slowest_ps = link_ps > slowest_ps ? link_ps : slowest_ps;
    }
    return slowest_ps;
}

/* A message takes a cable of the unit below its tier in which `owner` lies. Returns when its head
 * is at the other end; `ret_depart_ps`: when its tail has left. */
static int64_t cable_take(struct replay *replay, const struct lane_table *lane,
                          const struct tree_message *message, bool down, const struct place *owner,
                          int64_t now_ps, int64_t tail_ps, int64_t *ret_depart_ps)
{
    const struct tree *tree = lane->routed->tree;
    struct tier_links *tier = &tree->level->tier[message->tier];
    struct place const root = lowest(tree, owner, (int32_t)message->tier - 1);
    uint32_t const queue = route_queue(replay, tree->level, message->tier,
                                       route_chip(replay->routes, &root), &root, &root);
    struct link_state *link = &tier->links[down][queue];
    flights_clear_link(replay, link);
    int64_t const link_ps = tier->queues ? message->cost->link_ps[tier->kind] : 0;
    int64_t const free_ps = link->free_ps; /* 0 where nothing queues. */
    uint32_t const port = machine_level_port(tree->level_index, message->tier, down);
    struct port_ticket const place = {
        .link = link, .waits = &tier->waits[down][queue], .kind = tier->kind, .port = port};
    bool const meets = tier->queues && promise_meets(replay, link, lane->stream, lane, now_ps);
    int64_t start_ps = free_ps > now_ps ? free_ps : now_ps;
    if (meets) start_ps = promise_whole(replay, &place, link_ps, now_ps);
    int64_t depart_ps = start_ps + link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    link->bytes += message->cost->bytes[tier->kind];
    replay->tally.transfers++;
    wait_count(replay, port, place.waits, start_ps - now_ps);
    if (tier->queues) {
        link->free_ps = (meets ? free_ps : start_ps) + link_ps;
        link->busy_ps += link_ps;
        if (!meets) link->stream = lane->stream;
    }
    if (message->tier == 0 && replay->records.active) {
        uint32_t const chip = route_chip(replay->routes, owner);
        if (replay->chips[chip].shown) {
            struct record_owner const whose =
                record_owner_of_epoch(replay, lane->stream, chip, message->epoch);
            uint32_t const at = fold_machine_chip(replay->fold, replay->machine, chip);
            struct record_ends const ends = {.from = down ? trace_no_chip : at,
                                             .to = down ? at : trace_no_chip,
                                             .at = at,
                                             .number = message->piece};
            link_record(replay, lane, &whose, &ends, chip, port, start_ps, depart_ps,
                        message->cost->bytes[tier->kind]);
        }
    }
    int64_t const latency_ps = tree->level->level->tier[message->tier].latency_ps;
    *ret_depart_ps = depart_ps;
    return start_ps + (latency_ps > 0 ? latency_ps : 1);
}

int64_t tree_send(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const sent = lane->states[chip].sent, position = position_of(lane, chip);
    uint32_t const each = lane->steps.send_count[position];
    struct primitive_step const step = lane_step(lane, position, sent % each);
    struct tree_message const message = {
        .piece = sent / each,
        .epoch = stream_at(replay, lane->stream, chip)->epoch,
        .cost = routed_cost_of(replay, lane, step.units),
    };
    struct place const from = replay->routes->places[chip];
    uint32_t displacement = 0;
    if (step.peer != primitive_any) {
        struct place to;
        plan_item_peer(routed->plan, routed->item, from.at, step.peer, to.at);
        displacement = displacement_between(routed, &from, &to);
    }
    uint32_t const way = replay->grid.port_count + routed->tree->level_index;
    int64_t const work_ps = message.cost->memory.read_ps;
    flights_clear_way(replay, chip, way);
    int64_t const read_ps = dma_read_ps(&replay->servers, chip, work_ps, now_ps);
    int64_t depart_ps = 0;
    int64_t const head_ps =
        cable_take(replay, lane, &message, false, &from, now_ps, read_ps, &depart_ps);
    tree_post(replay, lane, &message, TREE_UNIT_UP, 0, &from, displacement,
              head_ps + routed->overhead_ps[1 + routed->tree->level_index]);
    dma_leave(&replay->servers, reads_at(&replay->servers, way, chip), chip, work_ps, now_ps,
              depart_ps);
    return depart_ps;
}

/* Sends copies down to all below a unit, but not to where the source is. */
static void copies_send(struct replay *replay, const struct lane_table *lane,
                        const struct tree_message *message, const struct place *here,
                        const struct place *source, int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    const struct tree_tier *tier = &routed->tree->tier[message->tier];
    bool const all = lane->primitive->network == PRIMITIVE_NETWORK_MULTICAST;
    uint32_t index[MACHINE_AXES_MAX] = {0};
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX;) {
        struct place to;
        for (uint32_t a = 0; a < MACHINE_AXES_MAX; a++)
            to.at[a] = tier->children[a][here->at[a]].at[index[a]];
        bool const back =
            all && (message->tier == 0 ? displacement_between(routed, &to, source) == 0
                                       : same_unit(routed->tree, message->tier - 1, &to, source));
        if (!back)
            tree_post(replay, lane, message, TREE_CABLE_DOWN, message->tier, &to,
                      all ? displacement_between(routed, &to, source) : 0, now_ps);
        for (axis = 0; axis < MACHINE_AXES_MAX; axis++) {
            const struct tree_children *children = &tier->children[axis][here->at[axis]];
            if (++index[axis] < (all ? children->count : children->folded)) break;
            index[axis] = 0;
        }
    }
}

/* How many contributions a unit waits for, and how many each stands for. */
static uint32_t contributions(const struct tree_tier *tier, const struct place *here,
                              bool holds_receiver, bool reduce, uint32_t *ret_alike)
{
    uint32_t all = 1, folded = 1;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        const struct tree_children *children = &tier->children[axis][here->at[axis]];
        all *= children->count;
        folded *= children->folded;
    }
    *ret_alike = reduce ? 1 : all / folded;
    if (!reduce) return folded;
    return holds_receiver ? all - 1 + has_outside(tier, here) : all;
}

/* Adds a contribution, which stands for `alike` of them, to what a unit has; returns when the sum
 * goes on, or TIME_PS_NEVER if some has not come yet. */
static int64_t contribution_add(struct replay *replay, const struct lane_table *lane,
                                const struct tree_message *message, const struct place *here,
                                const struct place *receiver, uint32_t expected, uint32_t alike,
                                int64_t now_ps)
{
    struct tree *tree = lane->routed->tree;
    struct tree_tier *tier = &tree->tier[message->tier];
    uint64_t join = (uint64_t)route_chip(replay->routes, here) * tree->receivers;
    for (uint32_t axis = 0; receiver != NULL && axis < MACHINE_AXES_MAX; axis++) {
        uint32_t at = receiver->at[axis];
        if (tier->folds[axis]) at %= replay->fold->period[axis];
        join += (uint64_t)tree->sum_first[axis] * (at % lane->routed->extent[axis]);
    }
    struct tree_sum *sum =
        &tier->sums[join * tree->slots + message->epoch % TREE_EPOCHS * lane->piece_count +
                    message->piece];
    if (sum->joined > 0 && sum->epoch != message->epoch) {
        routed_refuse_ahead(replay, lane, route_chip(replay->routes, here));
        return TIME_PS_NEVER;
    }
    sum->epoch = message->epoch;
    if (sum->joined == 0) tree->open_count++;
    uint32_t const additions = ++sum->joined == 1 ? alike - 1 : alike;
    if (additions > 0) {
        /* Elements, not what the protocol puts on the wire for them. */
        const struct routed_lane *routed = lane->routed;
        uint64_t const bytes = message->cost->units * routed->item->unit_bytes;
        int64_t const work_ps =
            units_duration_ps(plan_elements(routed->plan, bytes), tier->reduce_flop_per_s) *
            additions;
        int64_t *adders_ps = &tier->adders_ps[join];
        *adders_ps = (*adders_ps > now_ps ? *adders_ps : now_ps) + work_ps;
        if (*adders_ps > tree->adders_latest_ps) tree->adders_latest_ps = *adders_ps;
    }
    if (sum->joined < expected) return TIME_PS_NEVER;
    sum->joined = 0;
    tree->open_count--;
    int64_t const own_ps = pace_ps(tree, message, false); /* From its head to its tail. */
    int64_t const behind_ps = tier->adders_ps[join] - own_ps;
    return behind_ps > now_ps ? behind_ps : now_ps;
}

/* A head enters a unit: joined with others, copied, or passed on. */
static void unit_enter(struct replay *replay, const struct lane_table *lane,
                       const struct tree_message *message, const struct place *from, bool up,
                       int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    const struct tree *tree = routed->tree;
    enum primitive_network const network = lane->primitive->network;
    struct place const here = lowest(tree, from, (int32_t)message->tier);
    struct place const end = displaced(routed, from, message->displacement);
    const struct tree_tier *tier = &tree->tier[message->tier];
    uint32_t const displacement = displacement_between(routed, &here, &end);
    bool const outside = has_outside(tier, &here);
    if (network == PRIMITIVE_NETWORK_MULTICAST) {
        copies_send(replay, lane, message, &here, &end, now_ps);
        if (up && outside)
            tree_post(replay, lane, message, TREE_CABLE_UP, message->tier + 1, &here, displacement,
                      now_ps);
        return;
    }
    bool const reduce = network == PRIMITIVE_NETWORK_REDUCE;
    if (!reduce && !up) {
        copies_send(replay, lane, message, &here, &here, now_ps);
        return;
    }
    bool const holds = reduce && same_unit(tree, message->tier, &here, &end);
    uint32_t alike = 1;
    uint32_t const expected = contributions(tier, &here, holds, reduce, &alike);
    int64_t const go_ps = contribution_add(replay, lane, message, &here, reduce ? &end : NULL,
                                           expected, alike, now_ps);
    if (go_ps == TIME_PS_NEVER) return;
    if (holds) { /* Down to where the receiver is. */
        struct place const inside = replayed(replay, &end);
        struct place const to = lowest(tree, &inside, (int32_t)message->tier - 1);
        tree_post(replay, lane, message, TREE_CABLE_DOWN, message->tier, &to,
                  displacement_between(routed, &to, &inside), go_ps);
    } else if (outside) {
        tree_post(replay, lane, message, TREE_CABLE_UP, message->tier + 1, &here,
                  reduce ? displacement : 0, go_ps);
    } else {
        copies_send(replay, lane, message, &here, &here, go_ps);
    }
}

static void cable_enter(struct replay *replay, const struct lane_table *lane,
                        const struct tree_message *message, const struct place *owner, bool down,
                        int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    int64_t depart_ps = 0;
    int64_t const tail_ps = now_ps + pace_ps(routed->tree, message, down);
    int64_t const head_ps =
        cable_take(replay, lane, message, down, owner, now_ps, tail_ps, &depart_ps);
    if (!down) {
        tree_post(replay, lane, message, TREE_UNIT_UP, message->tier, owner, message->displacement,
                  head_ps);
    } else if (message->tier > 0) {
        tree_post(replay, lane, message, TREE_UNIT_DOWN, message->tier - 1, owner,
                  message->displacement, head_ps);
    } else {
        int64_t const latency_ps = routed->tree->level->level->tier[0].latency_ps;
        uint64_t const tie =
            (uint64_t)routed_tie(routed, owner) * lane->size + message->displacement;
        engine_post(replay->engine, depart_ps + (latency_ps > 0 ? latency_ps : 1),
                    routed_key(lane, EVENT_ARRIVE, message->epoch) |
                        (uint64_t)message->piece << routed->tie_bits | tie,
                    channel_of(replay, EVENT_ARRIVE, lane->number),
                    route_chip(replay->routes, owner));
    }
}

/* What the order of an event says of a message. */
static void message_read(struct replay *replay, struct lane_table *lane, uint64_t key,
                         struct tree_message *ret_message, enum tree_step *ret_step)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const what = event_key_field(key, 0, KEY_WHAT_BITS);
    uint32_t const hop = what >> (routed->tie_bits + routed->number_bits);
    *ret_step = (enum tree_step)(hop % TREE_STEPS);
    *ret_message = (struct tree_message){
        .tier = hop / TREE_STEPS,
        .piece = what >> routed->tie_bits & ((1u << routed->number_bits) - 1),
        .epoch = event_key_field(key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS),
        .displacement = (what & ((1u << routed->tie_bits) - 1)) % lane->size,
        .cost = routed_cost_of(replay, lane, routed->tree_units),
    };
}

void tree_hop(struct replay *replay, struct lane_table *lane, uint64_t key, const uint32_t *chips,
              uint32_t count, int64_t now_ps)
{
    enum tree_step step = TREE_UNIT_UP;
    struct tree_message message;
    message_read(replay, lane, key, &message, &step);
    for (uint32_t i = 0; i < count; i++) {
        const struct place *place = &replay->routes->places[chips[i]];
        if (step == TREE_CABLE_UP || step == TREE_CABLE_DOWN)
            cable_enter(replay, lane, &message, place, step == TREE_CABLE_DOWN, now_ps);
        else
            unit_enter(replay, lane, &message, place, step == TREE_UNIT_UP, now_ps);
    }
}

void tree_message(struct replay *replay, struct lane_table *lane, uint64_t key, uint32_t chip,
                  struct routed_message *ret_message)
{
    struct tree_message message;
    enum tree_step step = TREE_UNIT_UP;
    message_read(replay, lane, key, &message, &step);
    /* A slot for each source, if there are several. */
    uint32_t const each = lane->steps.arrival_count[position_of(lane, chip)];
    *ret_message = (struct routed_message){
        .cost = message.cost,
        .epoch = message.epoch,
        .number = message.piece,
        .slot = message.piece * each + (each > 1 ? message.displacement - 1 : 0),
    };
}

bool tree_is_idle(const struct tree *tree, int64_t now_ps)
{
    return tree->open_count == 0 && tree->adders_latest_ps <= now_ps;
}

int64_t tree_pace_ps(const struct lane_table *lane, const struct routed_cost *cost)
{
    struct tree_message const message = {.cost = cost};
    return pace_ps(lane->routed->tree, &message, true);
}

uint64_t tree_bound(const struct lane_table *lane)
{
    return (uint64_t)lane->piece_count * lane->size * TREE_STEPS * LEVEL_TIERS_MAX;
}
