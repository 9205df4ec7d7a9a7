/* Events of messages that share their links. */
#include "sim/replay/promise.h"

#include "sim/replay/message.h"
#include "sim/replay/routed.h"
#include "sim/replay/transport.h"

static const uint64_t kind_mask = ~(UINT64_C(7) << KEY_KIND_SHIFT);

/* To whom the next event goes. */
static uint32_t payload_of(const struct replay *replay, const struct port_entry *entry)
{
    if (entry->lane->routed != NULL) return entry->chip;
    uint32_t const port = event_key_port(entry->key);
    return replay->grid.neighbour[(uint64_t)port * replay->chip_count + entry->chip];
}

/* The arrival at the end of the whole way: its order, payload, name, and how long after the tail
 * has left the entry's link. */
struct arrival {
    uint64_t key;
    uint32_t payload;
    int64_t stamp;
    int64_t after_ps;
};

static struct arrival arrival_of(struct replay *replay, const struct port_entry *entry)
{
    const struct lane_table *lane = entry->lane;
    struct arrival arrival = {
        .key = entry->key, .payload = payload_of(replay, entry), .after_ps = entry->latency_ps};
    if (entry->last) {
        if (lane->routed == NULL && lane->route.hop_count == 1) {
            int64_t const depart_ps =
                entry->end_ps > entry->tail_ps ? entry->end_ps : entry->tail_ps;
            arrival.stamp = depart_ps + entry->latency_ps;
        }
        return arrival;
    }
    if (lane->routed != NULL) {
        int64_t rest_ps = 0;
        arrival.key = routed_rest(replay, entry->key, entry->chip, &rest_ps);
        arrival.after_ps += rest_ps;
        return arrival;
    }
    uint32_t const units = event_key_field(entry->key, 0, KEY_UNITS_BITS);
    uint32_t slowest = event_key_field(entry->key, KEY_CLASS_SHIFT, KEY_CLASS_BITS);
    for (uint32_t hop = event_key_field(entry->key, KEY_HOP_SHIFT, KEY_HOP_BITS);
         hop < lane->route.hop_count; hop++) {
        uint32_t const port = route_port(lane, hop);
        uint32_t const kind = link_class_of(replay, arrival.payload, port);
        int64_t const latency_ps = replay->fold->link_classes[kind].latency_ps;
        bool const last = hop + 1u == lane->route.hop_count;
        if (cost_at(lane, kind, units)->link_ps > cost_at(lane, slowest, units)->link_ps)
            slowest = kind;
        arrival.after_ps += last || latency_ps > 0 ? latency_ps : 1;
        arrival.payload =
            replay->grid.neighbour[(uint64_t)port * replay->chip_count + arrival.payload];
        arrival.key = event_key_make(EVENT_ARRIVE, port, lane->stream, lane->number) |
                      (uint64_t)lane->plan->index << KEY_PLAN_SHIFT | units |
                      (uint64_t)slowest << KEY_CLASS_SHIFT | arrival_number(entry->number);
    }
    return arrival;
}

static void port_post(struct replay *replay, const struct port_entry *entry, int64_t at_ps)
{
    engine_post(replay->engine, at_ps,
                (entry->key & kind_mask) | (uint64_t)EVENT_PORT << KEY_KIND_SHIFT,
                channel_of(replay, EVENT_PORT, entry->lane->number), entry->chip);
}

static void next_post(struct replay *replay, const struct port_entry *entry, int64_t at_ps)
{
    enum replay_event const event = entry->last ? EVENT_ARRIVE : EVENT_HOP;
    engine_post(replay->engine, at_ps, entry->key, channel_of(replay, event, entry->lane->number),
                payload_of(replay, entry));
}

/* When a message begins on its link; one without work as it ends. */
static int64_t start_ps(const struct ports *ports, const struct port_queue *queue,
                        const struct port_entry *entry, int64_t segment_ps, int64_t now_ps)
{
    uint8_t const stream = entry->lane->stream;
    int64_t const begun_ps = port_ticket_begun_ps(ports, &queue->flow[stream], entry, segment_ps);
    int64_t const at_ps =
        port_done_ps(ports, queue, stream, begun_ps, segment_ps) - (entry->work_ps > 0);
    return at_ps > now_ps ? at_ps : now_ps;
}

/* When a withheld message begins or ends. */
static int64_t milestone_ps(const struct ports *ports, const struct port_queue *queue,
                            const struct port_entry *entry, int64_t segment_ps, int64_t now_ps)
{
    uint8_t const stream = entry->lane->stream;
    if (entry->done_ps == PORT_DONE_LONG_AGO) return now_ps;
    if (entry->head_withheld) return start_ps(ports, queue, entry, segment_ps, now_ps);
    int64_t const done_ps = port_ticket_done_ps(ports, &queue->flow[stream], entry, segment_ps);
    int64_t const at_ps = port_done_ps(ports, queue, stream, done_ps, segment_ps);
    return at_ps > now_ps ? at_ps : now_ps;
}

/* A message does not leave as promised. */
static void withhold(struct replay *replay, const struct port_ticket *place,
                     struct port_queue *queue, struct port_entry *entry, int64_t now_ps)
{
    struct ports *ports = replay->ports;
    int64_t const begin_ps = entry->end_ps - entry->work_ps;
    entry->withheld = true;
    queue->flow[entry->lane->stream].promised--;
    if (!entry->last && begin_ps > now_ps) {
        entry->head_withheld = true;
        promise_void_add(replay, entry->key, payload_of(replay, entry),
                         begin_ps + entry->latency_ps);
    }
    struct arrival const arrival = arrival_of(replay, entry);
    promise_void_add(replay, arrival.key, arrival.payload, arrival.stamp);
    if (entry->own) {
        SIM_ASSERT(place->port >= MACHINE_GRID_PORTS || place->chip == entry->chip);
        entry->lane->states[entry->chip].free_ps = lane_held_ps;
    }
    port_post(replay, entry,
              milestone_ps(ports, queue, entry, ports->segment_ps[place->kind], now_ps));
}

/* Withholds all that leave at another instant than they were promised to: nearly always a later
 * one, but earlier where lanes that were promised first come, first served begin to take turns. */
static void promises_check(struct replay *replay, const struct port_ticket *place,
                           struct port_queue *queue, int64_t now_ps)
{
    struct ports *ports = replay->ports;
    int64_t const segment_ps = ports->segment_ps[place->kind];
    for (uint32_t i = 0; i < queue->count; i++) {
        uint8_t const stream = queue->turn[i];
        struct port_flow *flow = &queue->flow[stream];
        uint32_t left = flow->promised;
        for (uint32_t e = flow->list.first; e != 0 && left > 0; e = ports->entries[e].next) {
            struct port_entry *entry = &ports->entries[e];
            if (entry->withheld) continue;
            left--;
            int64_t const done_ps = port_ticket_done_ps(ports, flow, entry, segment_ps);
            if (done_ps <= flow->served_ps) continue;
            int64_t const end_ps = port_done_ps(ports, queue, stream, done_ps, segment_ps);
            if (end_ps != entry->end_ps) withhold(replay, place, queue, entry, now_ps);
        }
    }
}

/* The message that a lane of one link has on its port, if any. */
static bool lane_on_port(const struct replay *replay, struct lane_table *lane, uint32_t port,
                         uint32_t chip, int64_t now_ps, struct port_entry *ret_entry)
{
    if (lane->routed != NULL || lane->route.hop_count != 1 || lane->route.leg[0].port != port)
        return false;
    const struct lane_state *state = &lane->states[chip];
    if (state->sent == 0 || state->free_ps <= now_ps || state->free_ps == lane_held_ps)
        return false;
    uint32_t const position = position_of(lane, chip);
    uint32_t const step = (state->sent - 1) % lane->steps.send_count[position];
    uint32_t const units = lane_step(lane, position, step).units;
    uint32_t const kind = link_class_of(replay, chip, port);
    *ret_entry = (struct port_entry){
        .lane = lane,
        .key = cost_at(lane, kind, units)->arrive_key,
        .work_ps = cost_at(lane, kind, units)->link_ps,
        .end_ps = state->free_ps,
        .latency_ps = cost_at(lane, kind, units)->latency_ps,
        .chip = chip,
        .last = true,
        .own = true,
    };
    return true;
}

/* Messages of one link are not kept when they are promised: their lanes know them. */
static void lanes_keep(struct replay *replay, const struct port_ticket *place, int64_t now_ps)
{
    struct port_list *kept = &replay->ports->kept[place->link->queue];
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        uint16_t const running = *running_at(replay, stream, place->chip);
        if (running == RUNNING_NONE) continue;
        struct plan_table *plan = &replay->lanes.plans[running];
        for (uint32_t i = 0; i < plan->lane_count; i++) {
            struct port_entry entry;
            if (!lane_on_port(replay, &plan->lane[i], place->port, place->chip, now_ps, &entry))
                continue;
            if (replay->chips[place->chip].shown)
                entry.record = promise_record_find(replay, place, &entry);
            port_list_sort_in(replay->ports, kept, port_entry_add(replay, &entry));
        }
    }
}

/* What a message has left at the first turn from now on; the rest of its segment is given away. */
static int64_t rest_ps(const struct port_entry *entry, int64_t segment_ps, int64_t now_ps)
{
    int64_t const begin_ps = entry->end_ps - entry->work_ps;
    if (begin_ps >= now_ps) return entry->work_ps;
    int64_t const given_ps = (now_ps - begin_ps + segment_ps - 1) / segment_ps * segment_ps;
    return given_ps < entry->work_ps ? entry->work_ps - given_ps : 0;
}

/* A promised entry in front that is done is not needed any more. */
static void finished_drop(struct ports *ports, struct port_flow *flow, int64_t segment_ps)
{
    while (flow->list.first != 0) {
        uint32_t const first = flow->list.first;
        const struct port_entry *entry = &ports->entries[first];
        if (entry->withheld ||
            port_ticket_done_ps(ports, flow, entry, segment_ps) > flow->served_ps)
            return;
        flow->promised--;
        port_flow_remove(ports, flow, first, segment_ps);
    }
}

/* From one queue of promises to turns. */
static void share_begin(struct replay *replay, const struct port_ticket *place,
                        struct port_queue *queue, int64_t now_ps)
{
    struct ports *ports = replay->ports;
    int64_t const segment_ps = ports->segment_ps[place->kind];
    for (uint32_t s = 0; s < replay->stream_count; s++) {
        struct port_flow *flow = &queue->flow[s];
        flow->served_ps = flow->asked_ps;
        for (uint32_t e = flow->list.first; e != 0; e = ports->entries[e].next)
            ports->entries[e].done_ps = PORT_DONE_LONG_AGO;
        port_lanes_end(ports, flow);
        finished_drop(ports, flow, segment_ps);
    }
    queue->count = 0;
    queue->whole_ps = 0;
    queue->current = PORT_NO_STREAM;
    if (place->port < MACHINE_GRID_PORTS) lanes_keep(replay, place, now_ps);
    int64_t all_ps = 0;
    uint8_t first = PORT_NO_STREAM;
    for (uint32_t e = ports->kept[place->link->queue].first, next = 0; e != 0; e = next) {
        struct port_entry *entry = &ports->entries[e];
        next = entry->next;
        uint8_t const stream = entry->lane->stream;
        if (entry->end_ps <= now_ps) {
            port_entry_give(ports, e);
            continue;
        }
        bool const runs = all_ps == 0 && entry->end_ps - entry->work_ps < now_ps;
        int64_t const left_ps = runs ? rest_ps(entry, segment_ps, now_ps) : entry->work_ps;
        if (runs) first = stream;
        port_ask(ports, queue, stream, left_ps);
        struct port_flow *flow = &queue->flow[stream];
        bool certain[2];
        port_lane_ask(ports, flow, e, left_ps, segment_ps, certain);
        if (ports->lanes_lacked) port_no_room(replay);
        if (runs) flow->lane_current = entry->lane->number;
        flow->promised++;
        port_flow_append(ports, flow, e);
        all_ps += left_ps;
    }
    ports->kept[place->link->queue] = (struct port_list){0, 0};
    queue->turn_ps = place->link->free_ps - all_ps;
    place->link->stream = PORT_SHARED;
    if (first == PORT_NO_STREAM) return;
    queue->current = first;
    uint32_t at = 0; /* It has its turn: its next is behind the others'. */
    while (at < queue->count && queue->turn[at] != first) at++;
    for (; at + 1 < queue->count && ports->urgency[queue->turn[at + 1]] == ports->urgency[first];
         at++) {
        queue->turn[at] = queue->turn[at + 1];
        queue->turn[at + 1] = first;
    }
}

static struct port_queue *shared_queue(struct replay *replay, const struct port_ticket *place,
                                       int64_t now_ps)
{
    struct ports *ports = replay->ports;
    struct port_queue *queue = &ports->queues[port_queue_of(ports, place->link)];
    if (place->link->stream != PORT_SHARED) share_begin(replay, place, queue, now_ps);
    port_advance(ports, queue, ports->segment_ps[place->kind], now_ps);
    return queue;
}

/* A message waits before its turns and between them: all the time until its end but its own. If
 * others come it waits longer than is counted here, and entry_end() adds that. */
static void count(struct replay *replay, const struct port_ticket *place, uint64_t bytes,
                  int64_t work_ps, int64_t end_ps, int64_t now_ps)
{
    struct link_state *link = place->link;
    int64_t const waited_ps = end_ps - work_ps - now_ps;
    wait_count(replay, place->port, place->waits, waited_ps);
    link->free_ps += work_ps;
    link->busy_ps += work_ps;
    link->bytes += bytes;
    replay->tally.transfers++;
}

int64_t promise_share(struct replay *replay, const struct port_ticket *place,
                      const struct port_entry *message, uint64_t bytes, int64_t now_ps)
{
    struct ports *ports = replay->ports;
    int64_t const segment_ps = ports->segment_ps[place->kind];
    uint8_t const stream = message->lane->stream;
    if (place->link->free_ps >= TIME_PS_END - message->work_ps) {
        engine_post(replay->engine, TIME_PS_END, message->key, 0, message->chip);
        return place->link->free_ps = TIME_PS_END;
    }
    struct port_queue *queue = shared_queue(replay, place, now_ps);
    struct port_flow *flow = &queue->flow[stream];
    finished_drop(ports, flow, segment_ps);
    uint32_t const index = port_entry_add(replay, message);
    struct port_entry *entry = &ports->entries[index];
    if (index == 0) return lane_held_ps;
    port_ask(ports, queue, stream, message->work_ps);
    bool among_lanes[2];
    port_lane_ask(ports, flow, index, entry->work_ps, segment_ps, among_lanes);
    if (ports->lanes_lacked) port_no_room(replay);
    int64_t const begun_ps = port_ticket_begun_ps(ports, flow, entry, segment_ps);
    int64_t const done_ps = port_ticket_done_ps(ports, flow, entry, segment_ps);
    bool const head_certain =
        among_lanes[0] && port_done_certain(ports, queue, stream, begun_ps, segment_ps);
    bool const end_certain =
        among_lanes[1] && port_done_certain(ports, queue, stream, done_ps, segment_ps);
    int64_t const begin_ps = start_ps(ports, queue, entry, segment_ps, now_ps);
    int64_t const end_ps = port_done_ps(ports, queue, stream, done_ps, segment_ps);
    entry->end_ps = end_ps > now_ps ? end_ps : now_ps;
    int64_t const depart_ps = entry->end_ps > entry->tail_ps ? entry->end_ps : entry->tail_ps;
    port_flow_append(ports, flow, index);
    count(replay, place, bytes, entry->work_ps, entry->end_ps, now_ps);
    promise_record(replay, entry, now_ps);
    entry->withheld = !end_certain;
    entry->head_withheld = !entry->last && !head_certain;
    if (!entry->last && head_certain) next_post(replay, entry, begin_ps + entry->latency_ps);
    if (end_certain) {
        flow->promised++;
        if (entry->last) next_post(replay, entry, depart_ps + entry->latency_ps);
    } else {
        if (!entry->last) {
            struct arrival const arrival = arrival_of(replay, entry);
            promise_void_add(replay, arrival.key, arrival.payload, arrival.stamp);
        }
        port_post(replay, entry, milestone_ps(ports, queue, entry, segment_ps, now_ps));
    }
    promises_check(replay, place, queue, now_ps);
    promise_records_move(replay, place, queue, now_ps);
    return end_certain ? depart_ps : lane_held_ps;
}

int64_t promise_whole(struct replay *replay, const struct port_ticket *place, int64_t work_ps,
                      int64_t now_ps)
{
    struct port_queue *queue = shared_queue(replay, place, now_ps);
    int64_t const start_ps = queue->turn_ps + queue->whole_ps;
    queue->whole_ps += work_ps;
    promises_check(replay, place, queue, now_ps);
    promise_records_move(replay, place, queue, now_ps);
    return start_ps;
}

/* Where the message of an EVENT_PORT waits. */
static void place_find(struct replay *replay, uint64_t key, uint32_t chip,
                       struct port_ticket *ret_place)
{
    uint32_t const port = event_key_port(key);
    if (port == KEY_ROUTED) {
        routed_port_ticket(replay, key, chip, ret_place);
        return;
    }
    *ret_place = (struct port_ticket){.link = link_at(replay, port, chip),
                                      .waits = link_waits_at(replay, port, chip),
                                      .kind = link_class_of(replay, chip, port),
                                      .port = port,
                                      .chip = chip};
}

/* Of the entries that an EVENT_PORT names the first that is due; or else the first. */
static uint32_t entry_find(const struct replay *replay, const struct port_ticket *place,
                           const struct port_queue *queue, uint64_t key, uint32_t chip,
                           int64_t now_ps)
{
    const struct ports *ports = replay->ports;
    uint32_t found = 0;
    for (uint32_t e = hashed_first(&ports->named, port_name(key, chip)); e != 0;
         e = hashed_next(&ports->named, e)) {
        const struct port_entry *entry = &ports->entries[e];
        if (!entry->withheld || entry->chip != chip ||
            (entry->key & kind_mask) != (key & kind_mask))
            continue;
        if (milestone_ps(ports, queue, entry, ports->segment_ps[place->kind], now_ps) == now_ps)
            return e;
        if (found == 0) found = e;
    }
    return found;
}

/* All of a message has left its link. */
static void entry_end(struct replay *replay, const struct port_ticket *place,
                      struct port_queue *queue, uint32_t index, int64_t now_ps)
{
    struct ports *ports = replay->ports;
    struct port_entry const entry = ports->entries[index];
    int64_t const depart_ps = now_ps > entry.tail_ps ? now_ps : entry.tail_ps;
    if (entry.last) {
        next_post(replay, &entry, depart_ps + entry.latency_ps);
    } else {
        struct arrival const arrival = arrival_of(replay, &entry);
        engine_post(replay->engine, depart_ps + arrival.after_ps, arrival.key,
                    channel_of(replay, EVENT_ARRIVE, entry.lane->number), arrival.payload);
    }
    if (now_ps > entry.end_ps) link_waits_add(place->waits, (uint64_t)(now_ps - entry.end_ps), 0);
    struct port_flow *flow = &queue->flow[entry.lane->stream];
    promise_record_end(replay, &entry, now_ps);
    port_flow_remove(ports, flow, index, ports->segment_ps[place->kind]);
    if (!entry.own) return;
    entry.lane->states[entry.chip].free_ps = port_lane_leaves_ps(replay, &entry, depart_ps);
    transport_left(replay, entry.lane, entry.chip, now_ps);
}

void promise_port(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                  int64_t now_ps)
{
    struct ports *ports = replay->ports;
    for (uint32_t i = 0; i < count; i++) {
        struct port_ticket place;
        place_find(replay, key, chips[i], &place);
        struct port_queue *queue = &ports->queues[place.link->queue];
        int64_t const segment_ps = ports->segment_ps[place.kind];
        uint32_t const index = entry_find(replay, &place, queue, key, chips[i], now_ps);
        SIM_ASSERT(index != 0);
        struct port_entry *entry = &ports->entries[index];
        if (milestone_ps(ports, queue, entry, segment_ps, now_ps) == now_ps) {
            if (!entry->head_withheld) {
                finished_drop(ports, &queue->flow[entry->lane->stream], segment_ps);
                entry_end(replay, &place, queue, index, now_ps);
                continue;
            }
            next_post(replay, entry, now_ps + entry->latency_ps);
            entry->head_withheld = false;
        }
        port_post(replay, entry, milestone_ps(ports, queue, entry, segment_ps, now_ps));
    }
}
