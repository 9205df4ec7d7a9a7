/* Messages on their routes: over several links they cut through, and each link is a queue. */
#include "sim/replay/message.h"

#include "sim/replay/breakdown.h"
#include "sim/replay/record_owner.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"

uint32_t route_port(const struct lane_table *lane, uint32_t hop)
{
    uint32_t leg = 0;
    while (hop >= lane->route.leg[leg].hops) hop -= lane->route.leg[leg++].hops;
    return lane->route.leg[leg].port;
}

void link_record(struct replay *replay, const struct lane_table *lane,
                 const struct record_owner *owner, const struct record_ends *ends, uint32_t chip,
                 uint32_t port, int64_t begin_ps, int64_t end_ps, uint64_t bytes)
{
    struct trace_record const record = {.begin_ps = begin_ps,
                                        .end_ps = end_ps,
                                        .bytes = bytes,
                                        .wait_ps = begin_ps - engine_now_ps(replay->engine),
                                        .chip = chip,
                                        .slot = owner->template_index,
                                        .from = ends->from,
                                        .to = ends->to,
                                        .at = ends->at,
                                        .number = ends->number,
                                        .op = owner->op,
                                        .kind = TRACE_TRANSFER,
                                        .stream = (uint8_t)lane->stream,
                                        .lane = (uint16_t)lane->number,
                                        .port = (uint16_t)port};
    record_add(&replay->records, &record);
}

void link_hop_record(struct replay *replay, const struct lane_table *lane, uint32_t hop,
                     uint32_t chip, uint32_t port, int64_t begin_ps, int64_t end_ps, uint64_t bytes)
{
    struct record_owner const owner = hop == 0 ? record_owner_running(replay, lane->stream, chip)
                                               : record_passing(replay, lane, chip, hop);
    struct record_ends const ends = record_ends_fixed(replay, lane, chip, hop);
    uint64_t const records = replay->records.count;
    link_record(replay, lane, &owner, &ends, chip, port, begin_ps, end_ps, bytes);
    if (lane->route.recorded != NULL && replay->records.count > records)
        lane->route.recorded[chip] = (uint32_t)replay->records.count;
}

/* A message at a link of its route: what comes next, and when. */
static struct port_entry entry_of(const struct replay *replay, struct lane_table *lane,
                                  uint32_t chip, uint32_t units, uint32_t hop, uint32_t slowest)
{
    uint32_t const number = lane->route.passed == NULL
                                ? 0
                                : lane->route.passed[(uint64_t)hop * replay->chip_count + chip]++;
    uint32_t const port = route_port(lane, hop);
    uint32_t const kind = link_class_of(replay, chip, port);
    const struct message_cost *cost = cost_at(lane, kind, units);
    bool const slower = hop == 0 || cost->link_ps > cost_at(lane, slowest, units)->link_ps;
    uint64_t const what = (uint64_t)lane->plan->index << KEY_PLAN_SHIFT | units |
                          (uint64_t)(slower ? kind : slowest) << KEY_CLASS_SHIFT;
    struct port_entry entry = {
        .lane = lane,
        .key = event_key_make(EVENT_ARRIVE, port, lane->stream, lane->number) | what,
        .work_ps = cost->link_ps,
        .latency_ps = replay->fold->link_classes[kind].latency_ps,
        .chip = chip,
        .last = hop + 1u == lane->route.hop_count,
        .own = hop == 0,
        .number = number,
    };
    if (hop == 0) entry.latency_ps += lane->route.overhead_ps;
    if (entry.last) {
        entry.key |= arrival_number(number);
        return entry;
    }
    entry.key |= (uint64_t)EVENT_HOP << KEY_KIND_SHIFT | (uint64_t)(hop + 1) << KEY_HOP_SHIFT;
    /* Between chips at least 1 ps passes, even over a link without latency. */
    if (entry.latency_ps == 0) entry.latency_ps = 1;
    return entry;
}

static struct port_ticket place_of(struct replay *replay, uint32_t port, uint32_t chip)
{
    return (struct port_ticket){
        .link = link_at(replay, port, chip),
        .waits = link_waits_at(replay, port, chip),
        .kind = link_class_of(replay, chip, port),
        .port = port,
        .chip = chip,
    };
}

int64_t message_share(struct replay *replay, struct lane_table *lane, uint32_t chip, uint32_t units,
                      uint32_t hop, uint32_t slowest, int64_t now_ps, int64_t tail_ps)
{
    struct port_entry entry = entry_of(replay, lane, chip, units, hop, slowest);
    struct port_ticket const place = place_of(replay, route_port(lane, hop), chip);
    uint64_t const records = replay->records.count;
    entry.tail_ps = tail_ps;
    if (replay->records.active &&
        replay->chips[chip].shown) { /* Its end is mended when it is known. */
        link_hop_record(replay, lane, hop, chip, place.port, now_ps, now_ps + entry.work_ps,
                        cost_at(lane, place.kind, units)->bytes);
        if (replay->records.count > records) entry.record = (uint32_t)replay->records.count;
    }
    return promise_share(replay, &place, &entry, cost_at(lane, place.kind, units)->bytes, now_ps);
}

int64_t message_forward(struct replay *replay, struct lane_table *lane, uint32_t chip,
                        uint32_t units, uint32_t hop, uint32_t slowest, int64_t now_ps,
                        int64_t tail_ps)
{
    uint32_t const port = route_port(lane, hop);
    uint32_t const next = replay->grid.neighbour[(uint64_t)port * replay->chip_count + chip];
    struct link_state *link = link_at(replay, port, chip);
    SIM_ASSERT(next != UINT32_MAX);
    if (promise_meets(replay, link, lane->stream, lane, now_ps))
        return message_share(replay, lane, chip, units, hop, slowest, now_ps, tail_ps);
    struct port_entry entry = entry_of(replay, lane, chip, units, hop, slowest);
    const struct message_cost *cost = cost_at(lane, link_class_of(replay, chip, port), units);
    uint64_t const records = replay->records.count;
    int64_t depart_ps = 0;
    int64_t const start_ps =
        link_take(replay, link, lane, hop, port, chip, cost, now_ps, tail_ps, &depart_ps);
    engine_post(replay->engine, (entry.last ? depart_ps : start_ps) + entry.latency_ps, entry.key,
                channel_of(replay, entry.last ? EVENT_ARRIVE : EVENT_HOP, lane->number), next);
    if (lane->route.passed != NULL) {
        entry.work_ps = depart_ps - start_ps;
        entry.end_ps = depart_ps;
        if (replay->records.count > records) entry.record = (uint32_t)replay->records.count;
        struct port_entry *kept = promise_keep(replay, link, start_ps == now_ps, now_ps);
        entry.next = kept->next;
        entry.before = kept->before;
        *kept = entry;
    }
    return depart_ps;
}

int64_t message_depart(struct replay *replay, struct lane_table *lane, uint32_t chip,
                       uint32_t units, int64_t now_ps)
{
    int64_t const work_ps = cost_at(lane, 0, units)->read_ps;
    int64_t const read_ps = dma_read_ps(&replay->servers, chip, work_ps, now_ps);
    int64_t const depart_ps = message_forward(replay, lane, chip, units, 0, 0, now_ps, read_ps);
    dma_leave(&replay->servers, &lane->route.ports[chip].reads, chip, work_ps, now_ps,
              promise_left_ps(&lane->route.ports[chip].link, depart_ps));
    return depart_ps;
}

void transport_hop(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                   int64_t now_ps)
{
    struct lane_table *lane = lane_of_key(replay, key);
    uint32_t const units = event_key_field(key, 0, KEY_UNITS_BITS);
    uint32_t const hop = event_key_field(key, KEY_HOP_SHIFT, KEY_HOP_BITS);
    uint32_t const slowest = event_key_field(key, KEY_CLASS_SHIFT, KEY_CLASS_BITS);
    /* Cut through: the tail follows its head over the slowest link so far. */
    int64_t const tail_ps = now_ps + cost_at(lane, slowest, units)->link_ps;
    for (uint32_t i = 0; i < count; i++) {
        if (promise_is_void(replay, key, chips[i], now_ps)) continue;
        (void)message_forward(replay, lane, chips[i], units, hop, slowest, now_ps, tail_ps);
    }
}
