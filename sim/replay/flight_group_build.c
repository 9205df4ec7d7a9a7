/* What does not change from one collective of a plan to the next: messages, links, costs. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/flight_group.h"
#include "sim/replay/lane_send.h"
#include "sim/replay/message.h"
#include "sim/replay/routed_way.h"
#include "sim/replay/state.h"

enum { TABLE_SLOTS = 4 * GROUP_LINKS_MAX, NONE = -1 };

/* A head of a message at a link, in the order of messages and of their ways. */
struct raw_hop {
    uint32_t message, link, cost;
    uint32_t links; /* From this one to the last. */
};

struct builder {
    struct replay *replay;
    struct flight_group *group;
    struct lane_table *lane;
    struct group_link *links;
    int16_t *table; /* Of links, by their states. */
    struct raw_hop *hops;
    uint32_t hop_count, hop_room;
    struct flight_instant *left_at; /* [leaving]: of the chip at hand. */
    struct flight_leaving *left;
    bool fails;
};

static bool lane_may_fly(const struct replay *replay, const struct lane_table *lane)
{
    if (lane->routed == NULL || lane->routed->tree != NULL || lane->waits || lane->abreast ||
        lane->posts || lane->takes_turns || lane->chain.before_count > 0 ||
        lane->chain.behind_count > 0 || lane->plan->plan->script != NULL ||
        collective_is_rooted(lane->plan->plan->kind))
        return false;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t const position = position_of(lane, chip);
        if (position >= lane->size || lane->steps.send_count[position] == 0 ||
            lane->steps.arrival_count[position] == 0)
            return false;
    }
    return true;
}

static uint64_t arrivals_of(const struct lane_table *lane, uint32_t chip)
{
    return (uint64_t)lane->steps.arrival_count[position_of(lane, chip)] * lane->piece_count;
}

static uint64_t sends_of(const struct lane_table *lane, uint32_t chip)
{
    return (uint64_t)lane->steps.send_count[position_of(lane, chip)] * lane->piece_count;
}

static uint32_t link_of(struct builder *builder, struct link_state *link)
{
    struct flight_group *group = builder->group;
    uint32_t slot = (uint32_t)((uintptr_t)link / sizeof *link * 2654435769u) % TABLE_SLOTS;
    for (; builder->table[slot] != NONE; slot = (slot + 1) % TABLE_SLOTS)
        if (builder->links[builder->table[slot]].link == link)
            return (uint32_t)builder->table[slot];
    if (group->link_count == GROUP_LINKS_MAX) {
        builder->fails = true;
        return 0;
    }
    builder->table[slot] = (int16_t)group->link_count;
    builder->links[group->link_count] = (struct group_link){.link = link, .sender = UINT32_MAX};
    return group->link_count++;
}

static uint32_t cost_of(struct builder *builder, const struct group_cost *cost)
{
    struct flight_group *group = builder->group;
    for (uint32_t i = 0; i < group->cost_count; i++)
        if (memcmp(&group->costs[i], cost, sizeof *cost) == 0) return i;
    if (group->cost_count == GROUP_COSTS_MAX) {
        builder->fails = true;
        return 0;
    }
    group->costs[group->cost_count] = *cost;
    return group->cost_count++;
}

static void hop_add(struct builder *builder, struct raw_hop hop)
{
    if (builder->hop_count == builder->hop_room) {
        uint32_t const room = builder->hop_room == 0 ? 1024 : 2 * builder->hop_room;
        void *hops = realloc(builder->hops, room * sizeof hop);
        if (hops == NULL) {
            builder->fails = true;
            return;
        }
        builder->hops = hops;
        builder->hop_room = room;
    }
    builder->hops[builder->hop_count++] = hop;
}

/* A message on the cables of its way where nothing waits. */
static void passed_add(struct builder *builder, uint32_t sender, uint32_t receiver,
                       const struct routed_message *message)
{
    const struct routed_way *way = message->ways == NULL ? NULL : &message->ways[sender];
    uint32_t const index = way == NULL ? message->course.level : way->level;
    uint32_t const top = way == NULL ? message->course.top : way->top;
    if (index == LEVEL_NONE) return;
    const struct level_links *level = &builder->replay->routes->level[index];
    for (const struct tier_links *tier = level->tier; tier <= &level->tier[top]; tier++) {
        if (tier->queues) continue;
        uint64_t const bytes = message->cost->memory.bytes;
        builder->links[link_of(builder, &tier->links[0][tier->unit[sender]])].bytes += bytes;
        builder->links[link_of(builder, &tier->links[1][tier->unit[receiver]])].bytes += bytes;
    }
}

/* A message at a link of its way. */
static uint32_t link_add(struct builder *builder, const struct route_link *at,
                         const struct routed_message *message)
{
    uint32_t const index = link_of(builder, at->link);
    struct group_link *link = &builder->links[index];
    /* Links of the grid are also wanted by messages that do not look whether they are flown. */
    if (at->port < MACHINE_GRID_PORTS) builder->fails = true;
    link->waits = at->waits;
    link->port = at->port;
    link->waits_here = true;
    link->busy_ps += message->cost->link_ps[at->kind];
    link->bytes += message->cost->memory.bytes;
    link->messages++;
    return index;
}

/* Work at a chip's own rate. */
static int64_t work_at(const struct builder *builder, enum server server, uint32_t chip,
                       int64_t work_ps)
{
    const struct fold_chip_class *kind = chip_class_of(&builder->replay->servers, chip);
    if (!builder->replay->servers.differs[server]) return work_ps;
    return scaled_ps(work_ps, server == SERVER_HBM ? kind->hbm_ppm : kind->math_ppm);
}

/* The chip's message leaves by its own link, as soon as the one before has left. */
static void leaving_add(struct builder *builder, uint32_t chip, const struct route_link *at,
                        const struct routed_message *message, int64_t left_ps)
{
    struct replay *replay = builder->replay;
    const struct lane_table *lane = builder->lane;
    struct flight_log *log = &builder->group->logs[chip];
    struct flight_instant *left_at = &builder->left_at[log->left_count];
    struct flight_leaving *left = &builder->left[log->left_count];
    int64_t const read_ps = work_at(builder, SERVER_HBM, chip, message->cost->memory.read_ps);
    uint32_t const network = route_network(at->port);
    int64_t const link_ps = message->cost->link_ps[at->kind];
    *left_at =
        (struct flight_instant){left_ps, event_key_make(EVENT_LANE_READY, lane->route.leg[0].port,
                                                        lane->stream, lane->number)};
    left->sum_ps = read_ps + (log->left_count == 0 ? 0 : left[-1].sum_ps);
    left->reads = (struct server_reads){read_ps, left_ps, left_ps + link_ps};
    left->way = network == 0 ? at->port : replay->grid.port_count + network - 1;
    log->ways |= 1u << left->way;
    log->left_count++;
    if (link_ps <= 0) builder->fails = true;
}

/* A message on its way, as if it waited nowhere. Instants count from the sender's begin. */
struct walk {
    uint32_t chip, hop, link;
    struct group_message *to;
    struct group_cost cost;
    struct routed_message message;
    struct route_link at;
    int64_t head_ps; /* Comes to the link. */
};

static void walk_find(struct builder *builder, uint32_t sent, struct walk *walk)
{
    struct lane_table *lane = builder->lane;
    struct route_link scratch;
    uint32_t piece = 0, number = 0;
    (void)next_step(lane, position_of(lane, walk->chip), sent, &piece, &number);
    walk->message = (struct routed_message){.hop = walk->hop, .number = sent};
    routed_step_open(builder->replay, lane, piece, number, &walk->message);
    walk->at = *routed_find(builder->replay, lane, walk->chip, &walk->message, &scratch);
    memset(&walk->cost, 0, sizeof walk->cost); /* Costs are compared byte by byte. */
    walk->cost.link_ps = walk->message.cost->link_ps[walk->at.kind];
    walk->cost.latency_ps = walk->at.latency_ps;
    walk->cost.last = walk->at.last;
}

/* The first link is the chip's own, and free. Returns when the tail has left. */
static int64_t first_pass(struct builder *builder, uint32_t sent, struct walk *walk)
{
    const struct lane_table *lane = builder->lane;
    const struct routed_lane *routed = lane->routed;
    struct group_link *link = &builder->links[walk->link];
    int64_t const tail_ps = walk->head_ps + walk->cost.link_ps;
    walk->cost.latency_ps += routed->overhead_ps[route_network(walk->at.port)];
    walk->to->sender = (uint16_t)walk->chip;
    walk->to->key = routed_key(lane, EVENT_ARRIVE, 0) | (uint64_t)sent << routed->tie_bits;
    walk->to->key += walk->message.ways != NULL ? walk->message.ways[walk->chip].tie
                                                : routed_tie(routed, walk->message.ends.from);
    walk->to->first_ps = (uint32_t)walk->cost.latency_ps;
    leaving_add(builder, walk->chip, &walk->at, &walk->message, walk->head_ps);
    if (walk->at.last || walk->cost.latency_ps > UINT32_MAX ||
        (link->sender != UINT32_MAX && link->sender != walk->chip))
        builder->fails = true;
    link->sender = walk->chip;
    link->free_ps = tail_ps;
    return tail_ps;
}

/* The last link leads to the receiver. */
static void last_pass(struct builder *builder, struct walk *walk)
{
    struct flight_group *group = builder->group;
    struct routed_message *message = &walk->message;
    int64_t const pass_ps =
        walk->cost.link_ps > walk->cost.slowest_ps ? walk->cost.link_ps : walk->cost.slowest_ps;
    int64_t const arrive_ps = walk->head_ps + pass_ps + walk->cost.latency_ps;
    message->hop = walk->hop + 1;
    walk->cost.own_ps = routed_slowest_ps(builder->replay, builder->lane, walk->chip, message);
    uint32_t const receiver = routed_receiver(builder->replay, builder->lane, walk->chip, message);
    walk->to->receiver = (uint16_t)receiver;
    const struct message_cost *memory = &message->cost->memory;
    walk->cost.work_ps[SERVER_HBM] = work_at(builder, SERVER_HBM, receiver, memory->write_ps);
    walk->cost.work_ps[SERVER_VPU] = work_at(builder, SERVER_VPU, receiver, memory->vector_ps);
    passed_add(builder, walk->chip, receiver, message);
    struct flight_log *log = &group->logs[receiver];
    log->message_count++;
    if (walk->cost.own_ps > log->passage_ps) log->passage_ps = walk->cost.own_ps;
    if (arrive_ps < group->window_ps) group->window_ps = arrive_ps;
}

/* The `sent`-th message of a chip, from the instant at which it leaves. Returns when its tail has
 * left. */
static int64_t message_add(struct builder *builder, uint32_t chip, uint32_t sent, int64_t left_ps)
{
    struct flight_group *group = builder->group;
    uint32_t const index = group->message_count++;
    struct walk walk = {.chip = chip, .to = &group->messages[index], .head_ps = left_ps};
    int64_t tail_ps = 0;
    for (; !builder->fails; walk.hop++) {
        walk_find(builder, sent, &walk);
        walk.link = link_add(builder, &walk.at, &walk.message);
        if (walk.hop == 0)
            tail_ps = first_pass(builder, sent, &walk);
        else
            walk.cost.slowest_ps =
                routed_slowest_ps(builder->replay, builder->lane, chip, &walk.message);
        if (walk.at.last) last_pass(builder, &walk);
        if (walk.hop > 0)
            hop_add(builder, (struct raw_hop){.message = index,
                                              .link = walk.link,
                                              .cost = cost_of(builder, &walk.cost)});
        walk.to->key += group->hop_key;
        walk.head_ps += walk.cost.latency_ps;
        group->logs[chip].transfers++;
        group->logs[chip].event_count++;
        if (walk.at.last) break;
    }
    for (uint32_t i = builder->hop_count, links = 1; i-- > 0 && builder->hops[i].message == index;)
        builder->hops[i].links = links++;
    if (walk.hop > UINT8_MAX) builder->fails = true; /* `links` of a head does not count so far. */
    return tail_ps;
}

/* HBM time of the shard that a ReduceScatter leaves. */
static int64_t shard_ps(const struct builder *builder, uint32_t chip)
{
    const struct lane_table *lane = builder->lane;
    return work_at(builder, SERVER_HBM, chip,
                   lane->costs.shard_ps * lane->piece_count / lane->portions);
}

/* Keeps what leaves a chip. Chips that are alike send alike: then all have the same. */
static void leaving_keep(struct builder *builder, uint32_t chip)
{
    struct arena *arena = builder->replay->lanes.flights->arena;
    struct flight_log *log = &builder->group->logs[chip];
    const struct flight_log *before = chip == 0 ? NULL : &log[-1];
    size_t const at_bytes = log->left_count * sizeof *log->left_at;
    size_t const bytes = log->left_count * sizeof *log->left;
    if (before != NULL && before->left_count == log->left_count &&
        memcmp(before->left_at, builder->left_at, at_bytes) == 0 &&
        memcmp(before->left, builder->left, bytes) == 0) {
        log->left_at = before->left_at;
        log->left = before->left;
        return;
    }
    struct flight_instant *left_at = arena_take(arena, log->left_count, sizeof *left_at);
    struct flight_leaving *left = arena_take(arena, log->left_count, sizeof *left);
    if (left_at == NULL || left == NULL) {
        builder->fails = true;
        return;
    }
    log->left_at = memcpy(left_at, builder->left_at, at_bytes);
    log->left = memcpy(left, builder->left, bytes);
}

/* All messages of a chip, one behind another. */
static void chip_add(struct builder *builder, uint32_t chip)
{
    struct lane_table *lane = builder->lane;
    struct flight_log *log = &builder->group->logs[chip];
    int64_t const begin_ps = lane->plan->plan->protocol.begin_ps;
    uint32_t const sends = (uint32_t)sends_of(lane, chip);
    int64_t left_ps = begin_ps;
    for (uint32_t sent = 0; sent < sends && !builder->fails; sent++)
        left_ps = message_add(builder, chip, sent, left_ps);
    if (!builder->fails) leaving_keep(builder, chip);
    builder->group->shard_ps[chip] = shard_ps(builder, chip);
    log->left_at_begin = begin_ps == 0 ? 1 : 0;
    log->event_count += sends - log->left_at_begin; /* Instants at which the lane goes on. */
    *(struct lane_state *)log->lanes =
        (struct lane_state){.free_ps = left_ps,
                            .sent = sends,
                            .sends = sends,
                            .counted = (uint32_t)arrivals_of(lane, chip),
                            .arrivals = (uint32_t)arrivals_of(lane, chip),
                            .finished = true};
}

/* Each link lies behind all links from which heads come to it. False: some way comes back to a
 * link.
 */
static bool ranks_find(const struct builder *builder)
{
    bool moves = true;
    for (uint32_t turn = 0; moves && turn <= 4 * LEVEL_TIERS_MAX; turn++) {
        moves = false;
        for (uint32_t i = 0; i < builder->hop_count; i++) {
            const struct raw_hop *hop = &builder->hops[i];
            bool const first = i == 0 || hop[-1].message != hop->message;
            uint32_t const least = first ? 1 : builder->links[hop[-1].link].rank + 1;
            if (builder->links[hop->link].rank >= least) continue;
            builder->links[hop->link].rank = least;
            moves = true;
        }
    }
    return !moves;
}

/* Whether links that chips leave by have no other messages: their instants are known. */
static bool first_links_are_own(const struct builder *builder)
{
    for (uint32_t i = 0; i < builder->hop_count; i++)
        if (builder->links[builder->hops[i].link].sender != UINT32_MAX) return false;
    return true;
}

/* Links in the order of their ranks, each with its heads. */
static bool links_pack(const struct builder *builder)
{
    struct replay *replay = builder->replay;
    struct flight_group *group = builder->group;
    uint32_t const count = group->link_count;
    struct group_link *links =
        arena_take(replay->lanes.flights->arena, count + 1ull, sizeof *group->links);
    struct group_hop *hops =
        arena_take(replay->lanes.flights->arena, builder->hop_count + 1ull, sizeof *hops);
    uint32_t packed = 0, hop_first = 0;
    if (links == NULL || hops == NULL) return false;
    for (uint32_t i = 0; i < builder->hop_count; i++)
        builder->links[builder->hops[i].link].hop_count++;
    for (uint32_t rank = 0; packed < count; rank++)
        for (uint32_t i = 0; i < count; i++) {
            struct group_link *link = &builder->links[i];
            if (link->rank != rank) continue;
            link->hops = hops + hop_first;
            hop_first += link->hop_count;
            link->hop_count = 0;
            links[packed++] = *link;
            link->packed = packed - 1;
        }
    for (uint32_t i = 0; i < builder->hop_count; i++) {
        const struct raw_hop *hop = &builder->hops[i];
        struct group_link *link = &links[builder->links[hop->link].packed];
        link->hops[link->hop_count++] = (struct group_hop){.message = (uint16_t)hop->message,
                                                           .cost = (uint8_t)hop->cost,
                                                           .links = (uint8_t)hop->links};
    }
    group->links = links;
    return true;
}

/* Memory of what a chip does. */
static bool chip_reserve(struct flights *flights, struct flight_group *group, uint32_t chip)
{
    struct flight_log *log = &group->logs[chip];
    uint64_t const arrivals = arrivals_of(group->lane, chip) + 1; /* And a shard. */
    log->lanes = arena_take(flights->arena, 1, sizeof *log->lanes);
    log->arrived_at = group->arrived_at[chip] =
        arena_take(flights->arena, arrivals, sizeof *log->arrived_at);
    log->arrived = group->arrived[chip] =
        arena_take(flights->arena, arrivals, sizeof *log->arrived);
    log->senders = group->senders[chip] =
        arena_take(flights->arena, arrivals, sizeof *log->senders);
    group->cost_of[chip] = arena_take(flights->arena, arrivals, sizeof **group->cost_of);
    group->moves.arrived_by[chip] =
        arena_take(flights->arena, arrivals, sizeof **group->moves.arrived_by);
    return log->lanes != NULL && log->arrived_at != NULL && log->arrived != NULL &&
           log->senders != NULL && group->cost_of[chip] != NULL &&
           group->moves.arrived_by[chip] != NULL;
}

static struct flight_group *group_reserve(const struct replay *replay, struct lane_table *lane,
                                          uint64_t messages)
{
    struct flights *flights = replay->lanes.flights;
    uint64_t const chips = replay->chip_count;
    struct flight_group *group = arena_take(flights->arena, 1, sizeof *group);
    if (group == NULL) return NULL;
    group->lane = lane;
    group->window_ps = INT64_MAX;
    group->hop_key = UINT64_C(1) << (lane->routed->tie_bits + lane->routed->number_bits);
    group->messages = arena_take(flights->arena, messages, sizeof *group->messages);
    group->moves.head_by = arena_take(flights->arena, messages, sizeof *group->moves.head_by);
    group->logs = arena_take(flights->arena, chips, sizeof *group->logs);
    group->arrived_at = arena_take(flights->arena, chips, sizeof *group->arrived_at);
    group->arrived = arena_take(flights->arena, chips, sizeof *group->arrived);
    group->senders = arena_take(flights->arena, chips, sizeof *group->senders);
    group->cost_of = arena_take(flights->arena, chips, sizeof *group->cost_of);
    group->moves.arrived_by = arena_take(flights->arena, chips, sizeof *group->moves.arrived_by);
    group->moves.is_late = arena_take(flights->arena, chips, sizeof *group->moves.is_late);
    group->shard_ps = arena_take(flights->arena, chips, sizeof *group->shard_ps);
    group->later_ps = arena_take(flights->arena, chips, sizeof *group->later_ps);
    group->begin_keys = arena_take(flights->arena, chips, sizeof *group->begin_keys);
    if (group->messages == NULL || group->logs == NULL || group->moves.head_by == NULL ||
        group->arrived_at == NULL || group->arrived == NULL || group->senders == NULL ||
        group->cost_of == NULL || group->moves.arrived_by == NULL || group->moves.is_late == NULL ||
        group->shard_ps == NULL || group->later_ps == NULL || group->begin_keys == NULL)
        return NULL;
    for (uint32_t chip = 0; chip < chips; chip++)
        if (!chip_reserve(flights, group, chip)) return NULL;
    return group;
}

/* Whether as many messages come to each chip as it waits for. */
static bool all_are_awaited(const struct builder *builder)
{
    for (uint32_t chip = 0; chip < builder->replay->chip_count; chip++)
        if (builder->group->logs[chip].message_count != arrivals_of(builder->lane, chip))
            return false;
    return true;
}

static bool group_fill(struct builder *builder)
{
    for (uint32_t chip = 0; chip < builder->replay->chip_count && !builder->fails; chip++)
        chip_add(builder, chip);
    return !builder->fails && builder->group->window_ps > 1 && all_are_awaited(builder) &&
           first_links_are_own(builder) && ranks_find(builder) && links_pack(builder);
}

struct flight_group *flight_group_build(struct replay *replay, uint32_t plan)
{
    struct flights *flights = replay->lanes.flights;
    struct lane_table *lane = replay->lanes.plans[plan].lane;
    struct builder builder = {.replay = replay, .lane = lane};
    uint64_t messages = 0, sends_most = 0;
    bool done = false;
    if (replay->program->role_count != 1 || replay->images != NULL ||
        replay->lanes.plans[plan].lane_count != 1 || !lane_may_fly(replay, lane))
        return NULL;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint64_t const sends = sends_of(lane, chip);
        messages += sends;
        if (sends > sends_most) sends_most = sends;
    }
    if (messages > GROUP_MESSAGES_MAX ||
        flights->log_bytes + messages * GROUP_MESSAGE_BYTES > FLIGHT_LOG_BYTES)
        return NULL;
    builder.links = calloc(GROUP_LINKS_MAX, sizeof *builder.links);
    builder.table = malloc(TABLE_SLOTS * sizeof *builder.table);
    builder.left_at = calloc(sends_most, sizeof *builder.left_at);
    builder.left = calloc(sends_most, sizeof *builder.left);
    builder.group = group_reserve(replay, lane, messages);
    if (builder.links != NULL && builder.table != NULL && builder.left_at != NULL &&
        builder.left != NULL && builder.group != NULL) {
        for (uint32_t i = 0; i < TABLE_SLOTS; i++) builder.table[i] = NONE;
        done = group_fill(&builder);
        flights->log_bytes += messages * GROUP_MESSAGE_BYTES;
    }
    free(builder.hops);
    free(builder.links);
    free(builder.table);
    free(builder.left_at);
    free(builder.left);
    return done ? builder.group : NULL;
}
