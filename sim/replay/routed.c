/* Queueing at a link: messages that name their receivers, as they leave and on their way. */
#include "sim/replay/routed.h"

#include <string.h>

#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight_log.h"
#include "sim/replay/message.h"
#include "sim/replay/record_owner.h"
#include "sim/replay/routed_way.h"
#include "sim/replay/state.h"
#include "sim/replay/tree.h"

/* Who sends it to whom, and where between them it is, on chips that lie as the real ones do. */
static struct record_ends ends_of(struct replay *replay, struct lane_table *lane, uint32_t sender,
                                  const struct routed_message *of, const struct route_link *on)
{
    struct routed_message message = *of;
    uint32_t at[MACHINE_AXES_MAX];
    routed_address(replay, lane, sender, &message);
    fold_coordinates(replay->fold, sender, at);
    struct record_ends ends = {.from = machine_chip_at(replay->machine, at),
                               .to = machine_chip_at(replay->machine, message.ends.to.at),
                               .number = message.number};
    for (uint32_t hop = 0; hop < message.hop && on->port < MACHINE_GRID_PORTS; hop++) {
        struct route_link link;
        uint32_t next[MACHINE_AXES_MAX];
        route_find(replay, message.course, &message.ends, hop, &link);
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
            chip = routed_way_at(replay, lane, sender, message, 0)->receiver;
        else if (at->last)
            chip = message->ends.receiver;
    }
    if (!replay->chips[chip].shown) return;
    struct record_owner const owner =
        record_owner_of_epoch(replay, lane->stream, sender, message->epoch);
    struct record_ends const ends = ends_of(replay, lane, sender, message, at);
    link_record(replay, lane, &owner, &ends, chip, at->port, begin_ps, end_ps,
                message->cost->bytes[at->kind]);
}

/* A message at a link, as it is kept where streams may share that. */
static inline void entry_fill(struct lane_table *lane, uint32_t sender,
                              const struct routed_message *message, const struct route_link *at,
                              uint64_t key, int64_t tail_ps, int64_t latency_ps,
                              struct port_entry *entry)
{
    enum replay_event const event = at->last ? EVENT_ARRIVE : EVENT_HOP;
    entry->lane = lane;
    entry->key = key | (uint64_t)event << KEY_KIND_SHIFT;
    entry->work_ps = message->cost->link_ps[at->kind];
    entry->tail_ps = tail_ps;
    entry->latency_ps = latency_ps;
    entry->chip = sender;
    entry->number = entry->record = 0;
    entry->last = at->last;
    entry->own = message->hop == 0;
    entry->withheld = entry->head_withheld = false;
}

/* The same where the link has messages with which it takes turns. */
static int64_t message_share_link(struct replay *replay, struct lane_table *lane, uint32_t sender,
                                  const struct routed_message *message, const struct route_link *at,
                                  uint64_t key, int64_t now_ps, int64_t tail_ps,
                                  int64_t overhead_ps)
{
    struct port_entry entry = {.end_ps = 0};
    struct port_ticket const place = port_ticket_of(at);
    entry_fill(lane, sender, message, at, key, tail_ps, at->latency_ps + overhead_ps, &entry);
    uint64_t const records = replay->records.count;
    if (replay->records.active)
        message_record(replay, lane, sender, message, at, now_ps, now_ps + entry.work_ps);
    if (replay->records.count > records) entry.record = (uint32_t)replay->records.count;
    return promise_share(replay, &place, &entry, message->cost->bytes[at->kind], now_ps);
}

/* Puts a message on its next link, first come, first served, and posts what comes after it. A link
 * is taken for the message's own time on it; the tail leaves no earlier than it has come. Returns
 * when it leaves. Inline by force: every event of a message is here, and its place need not be
 * written to memory. */
static inline __attribute__((always_inline)) int64_t
message_take(struct replay *replay, struct lane_table *lane, uint32_t sender,
             struct routed_message *message, const struct route_link *at, uint64_t key,
             int64_t now_ps, int64_t tail_ps, int64_t overhead_ps)
{
    struct link_state *link = at->link;
    flights_clear_link(replay, link);
    routed_price(replay, lane, message);
    const struct routed_cost *cost = message->cost;
    if (flight_is_recorded(replay)) flight_record_link(replay, link, at->waits, at->port, true);
    int64_t const link_ps = cost->link_ps[at->kind];
    if (promise_meets(replay, link, lane->stream, lane, now_ps))
        return message_share_link(replay, lane, sender, message, at, key, now_ps, tail_ps,
                                  overhead_ps);
    int64_t const start_ps = link->free_ps > now_ps ? link->free_ps : now_ps;
    int64_t depart_ps = start_ps + link_ps;
    if (depart_ps < tail_ps) depart_ps = tail_ps;
    if (depart_ps >= TIME_PS_END) { /* The run ends with an error; nothing may overflow before. */
        engine_post(replay->engine, TIME_PS_END, key, 0, sender);
        return link->free_ps = TIME_PS_END;
    }
    wait_count(replay, at->port, at->waits, start_ps - now_ps);
    link->free_ps = start_ps + link_ps;
    link->busy_ps += link_ps;
    link->bytes += cost->bytes[at->kind];
    link->stream = lane->stream;
    link->lane = lane->number;
    replay->tally.transfers++;
    uint64_t const records = replay->records.count;
    if (replay->records.active)
        message_record(replay, lane, sender, message, at, start_ps, depart_ps);
    int64_t const latency_ps = at->latency_ps + overhead_ps;
    enum replay_event const event = at->last ? EVENT_ARRIVE : EVENT_HOP;
    engine_post(replay->engine, (at->last ? depart_ps : start_ps) + latency_ps,
                key | (uint64_t)event << KEY_KIND_SHIFT, channel_of(replay, event, lane->number),
                sender);
    if (replay->ports != NULL) {
        struct port_entry *entry = promise_keep(replay, link, start_ps == now_ps, now_ps);
        entry_fill(lane, sender, message, at, key, tail_ps, latency_ps, entry);
        entry->end_ps = link->free_ps;
        if (replay->records.count > records) entry->record = (uint32_t)replay->records.count;
    }
    return depart_ps;
}

/* Counts a message on the cables of its way where nothing waits. */
static void passed_count(struct replay *replay, uint32_t sender,
                         const struct routed_message *message)
{
    const struct routed_way *way = message->ways == NULL ? NULL : &message->ways[sender];
    uint32_t const receiver = way == NULL ? message->ends.receiver : way->receiver;
    uint32_t const index = way == NULL ? message->course.level : way->level;
    uint32_t const top = way == NULL ? message->course.top : way->top;
    bool const recorded = flight_is_recorded(replay);
    if (index == LEVEL_NONE) return;
    const struct level_links *level = &replay->routes->level[index];
    for (const struct tier_links *tier = level->tier; tier <= &level->tier[top]; tier++) {
        if (tier->queues) continue;
        struct link_state *up = &tier->links[0][tier->unit[sender]];
        struct link_state *down = &tier->links[1][tier->unit[receiver]];
        if (recorded) {
            flight_record_link(replay, up, NULL, MACHINE_GRID_PORTS, false);
            flight_record_link(replay, down, NULL, MACHINE_GRID_PORTS, false);
        }
        up->bytes += message->cost->bytes[tier->kind];
        down->bytes += message->cost->bytes[tier->kind];
    }
}

int64_t routed_send(struct replay *replay, struct lane_table *lane, uint32_t chip, uint32_t piece,
                    uint32_t number, int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    if (routed->guide == ROUTED_BY_TREE) return tree_send(replay, lane, chip, now_ps);
    uint32_t const epoch = stream_at(replay, lane->stream, chip)->epoch;
    uint64_t key = routed_key(lane, EVENT_ARRIVE, epoch) | (uint64_t)lane->states[chip].sent
                                                               << routed->tie_bits;
    struct routed_message message;
    struct route_link scratch;
    message.epoch = epoch;
    message.hop = 0;
    message.number = lane->states[chip].sent;
    routed_step_open(replay, lane, piece, number, &message);
    const struct route_link *at = routed_find(replay, lane, chip, &message, &scratch);
    key += (UINT64_C(1) << (routed->tie_bits + routed->number_bits)) +
           (message.ways != NULL ? message.ways[chip].tie : routed_tie(routed, message.ends.from));
    passed_count(replay, chip, &message);
    uint32_t const network = route_network(at->port);
    uint32_t const way = network == 0 ? at->port : replay->grid.port_count + network - 1;
    int64_t const work_ps = message.cost->memory.read_ps;
    flights_clear_way(replay, chip, way);
    int64_t const read_ps = dma_read_ps(&replay->servers, chip, work_ps, now_ps);
    int64_t const depart_ps = message_take(replay, lane, chip, &message, at, key, now_ps, read_ps,
                                           lane->routed->overhead_ps[network]);
    dma_leave(&replay->servers, reads_at(&replay->servers, way, chip), chip, work_ps, now_ps,
              promise_left_ps(at->link, depart_ps));
    if (flight_is_recorded(replay)) flight_record_leaving(replay, chip, way);
    return depart_ps;
}

void routed_hop(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, key);
    const struct routed_lane *routed = lane->routed;
    if (routed->guide == ROUTED_BY_TREE) {
        tree_hop(replay, lane, key, chips, count, now_ps);
        return;
    }
    uint64_t const onwards = (key & ~((uint64_t)EVENT_HOP << KEY_KIND_SHIFT)) +
                             (UINT64_C(1) << (routed->tie_bits + routed->number_bits));
    struct routed_message message;
    routed_open(replay, lane, key, &message);
    for (uint32_t i = 0; i < count; i++) {
        struct route_link scratch;
        if (promise_is_void(replay, key, chips[i], now_ps)) continue;
        const struct route_link *at = routed_find(replay, lane, chips[i], &message, &scratch);
        /* Cut through: the tail follows its head over the slowest link so far. */
        int64_t const tail_ps = now_ps + routed_slowest_ps(replay, lane, chips[i], &message);
        (void)message_take(replay, lane, chips[i], &message, at, onwards, now_ps, tail_ps, 0);
    }
}
