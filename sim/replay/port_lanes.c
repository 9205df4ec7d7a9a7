/*
 * Turns of a stream's lanes in its turns at a link.
 *
 * What instants are for streams, the stream's work is for its lanes: a lane's turn begins when so
 * much of the stream's work is done, and takes a segment of it. Lanes of the earliest phase take
 * turns, and others wait. A lane that comes goes before the lane whose turn it is, behind all
 * others of its phase; one whose work ends has no turn until it asks again.
 */
#include "sim/replay/port.h"

static int64_t left_ps(const struct port_lane *lane)
{
    return lane->asked_ps - lane->served_ps;
}

/* 0: there is no room. */
static uint32_t lane_take(struct ports *ports, uint16_t number, uint8_t phase)
{
    uint32_t index = ports->lane_free;
    if (index != 0) {
        ports->lane_free = ports->lanes[index].next;
    } else if (ports->lane_count < ports->entry_capacity) {
        index = ++ports->lane_count;
    } else {
        ports->lanes_lacked = true;
        return 0;
    }
    ports->lanes[index] = (struct port_lane){.number = number, .phase = phase};
    return index;
}

static void lane_give(struct ports *ports, uint32_t index)
{
    ports->lanes[index].next = ports->lane_free;
    ports->lane_free = index;
}

/* Behind all lanes that are as early or earlier; `current`: but before the last of them. */
static void lane_insert(struct ports *ports, struct port_flow *flow, uint32_t index, bool current)
{
    struct port_lane *lane = &ports->lanes[index];
    uint32_t before = 0, before_last = 0;
    for (uint32_t i = flow->lane_first; i != 0 && ports->lanes[i].phase <= lane->phase;
         i = ports->lanes[i].next) {
        before_last = before;
        before = i;
    }
    if (current && before != 0 && ports->lanes[before].phase == lane->phase &&
        ports->lanes[before].number == flow->lane_current)
        before = before_last;
    lane->next = before == 0 ? flow->lane_first : ports->lanes[before].next;
    if (before == 0)
        flow->lane_first = index;
    else
        ports->lanes[before].next = index;
}

/* Turns of a lane until so much of its work is done, which is not done yet. */
static int64_t turns_until(const struct port_lane *lane, int64_t done_ps, int64_t segment_ps)
{
    return (done_ps - lane->served_ps + segment_ps - 1) / segment_ps;
}

/* How much of the stream's work is done with so much of a lane's, which is not done yet. */
static int64_t stream_ps(const struct ports *ports, const struct port_flow *flow, uint32_t own,
                         int64_t done_ps, int64_t segment_ps)
{
    const struct port_lane *lane = &ports->lanes[own];
    int64_t const turns = turns_until(lane, done_ps, segment_ps);
    int64_t at_ps = flow->turn_ps + done_ps - lane->served_ps;
    bool before = true;
    for (uint32_t i = flow->lane_first; i != 0; i = ports->lanes[i].next) {
        if (i == own) {
            before = false;
            continue;
        }
        if (ports->lanes[i].phase > lane->phase) break;
        int64_t const others_ps = left_ps(&ports->lanes[i]);
        int64_t const turns_ps = segment_ps * (before ? turns : turns - 1);
        bool const earlier = ports->lanes[i].phase < lane->phase;
        at_ps += earlier || others_ps < turns_ps ? others_ps : turns_ps;
    }
    return at_ps;
}

/* Whether that stays so if another lane comes. */
static bool stream_certain(const struct ports *ports, const struct port_flow *flow, uint32_t own,
                           int64_t done_ps, int64_t segment_ps)
{
    const struct port_lane *lane = &ports->lanes[own];
    return lane->phase == 0 && lane->number != flow->lane_current &&
           turns_until(lane, done_ps, segment_ps) == 1;
}

int64_t port_ticket_done_ps(const struct ports *ports, const struct port_flow *flow,
                            const struct port_entry *entry, int64_t segment_ps)
{
    if (entry->done_ps != PORT_BY_TURNS) return entry->done_ps;
    return stream_ps(ports, flow, entry->turns, entry->lane_ps, segment_ps);
}

int64_t port_ticket_begun_ps(const struct ports *ports, const struct port_flow *flow,
                             const struct port_entry *entry, int64_t segment_ps)
{
    if (entry->begun_ps != PORT_BY_TURNS) return entry->begun_ps;
    int64_t const behind_ps = entry->work_ps > 0 ? entry->work_ps - 1 : 0;
    return stream_ps(ports, flow, entry->turns, entry->lane_ps - behind_ps, segment_ps);
}

/* Fixes the places of a lane's entries as far as they lie in so much of its work. */
static void places_fix(struct ports *ports, const struct port_flow *flow, uint32_t own,
                       int64_t until_ps, int64_t segment_ps)
{
    struct port_lane *lane = &ports->lanes[own];
    while (lane->first != 0) {
        struct port_entry *entry = &ports->entries[lane->first];
        bool const done = entry->lane_ps <= until_ps;
        if (done || entry->lane_ps - entry->work_ps < until_ps)
            entry->begun_ps = port_ticket_begun_ps(ports, flow, entry, segment_ps);
        if (!done) return;
        entry->done_ps = port_ticket_done_ps(ports, flow, entry, segment_ps);
        lane->first = entry->turns_next;
    }
}

void port_ticket_fix(struct ports *ports, const struct port_flow *flow, uint32_t index,
                     int64_t segment_ps)
{
    const struct port_entry *entry = &ports->entries[index];
    if (entry->done_ps == PORT_BY_TURNS)
        places_fix(ports, flow, entry->turns, entry->lane_ps, segment_ps);
}

/* An entry's place follows from its lane's turns. */
static void place_open(struct ports *ports, struct port_entry *entry, uint32_t index, uint32_t own)
{
    struct port_lane *lane = &ports->lanes[own];
    *(lane->first == 0 ? &lane->first : &ports->entries[lane->last].turns_next) = index;
    lane->last = index;
    entry->turns = own;
    entry->turns_next = 0;
    entry->done_ps = PORT_BY_TURNS;
}

/* One turn of the lane in front, which goes behind its like. */
static void turn_pass(struct ports *ports, struct port_flow *flow, int64_t segment_ps)
{
    uint32_t const index = flow->lane_first;
    struct port_lane *lane = &ports->lanes[index];
    int64_t const left = left_ps(lane);
    int64_t const work_ps = left < segment_ps ? left : segment_ps;
    places_fix(ports, flow, index, lane->served_ps + work_ps, segment_ps);
    lane->served_ps += work_ps;
    flow->turn_ps += work_ps;
    flow->lane_current = lane->number;
    flow->lane_first = lane->next;
    if (work_ps < left)
        lane_insert(ports, flow, index, false);
    else
        lane_give(ports, index);
}

/* Whole rounds until some lane's work ends, or so much of the stream's is done. */
static void rounds_pass(struct ports *ports, struct port_flow *flow, int64_t segment_ps,
                        int64_t done_ps)
{
    uint8_t const phase = ports->lanes[flow->lane_first].phase;
    int64_t count = 0, least = INT64_MAX;
    uint32_t last = 0;
    for (uint32_t i = flow->lane_first; i != 0 && ports->lanes[i].phase == phase;
         i = ports->lanes[i].next, count++) {
        int64_t const whole = (left_ps(&ports->lanes[i]) - 1) / segment_ps;
        if (whole < least) least = whole;
        last = i;
    }
    int64_t rounds = (done_ps - flow->turn_ps) / (segment_ps * count);
    if (rounds > least) rounds = least;
    if (rounds == 0) return;
    uint32_t own = flow->lane_first;
    for (int64_t i = 0; i < count; i++, own = ports->lanes[own].next)
        places_fix(ports, flow, own, ports->lanes[own].served_ps + rounds * segment_ps, segment_ps);
    for (uint32_t i = flow->lane_first; count > 0; count--, i = ports->lanes[i].next) {
        ports->lanes[i].served_ps += rounds * segment_ps;
        flow->turn_ps += rounds * segment_ps;
    }
    flow->lane_current = ports->lanes[last].number;
}

/* Goes on to the first turn that begins where the stream's work is done, or later. */
static void advance(struct ports *ports, struct port_flow *flow, int64_t segment_ps)
{
    while (flow->turn_ps < flow->served_ps && flow->lane_first != 0) {
        rounds_pass(ports, flow, segment_ps, flow->served_ps);
        if (flow->turn_ps < flow->served_ps) turn_pass(ports, flow, segment_ps);
    }
    if (flow->lane_first == 0) flow->lane_current = PORT_NO_LANE;
}

/* A lane with work left; 0: it has none. */
static uint32_t lane_find(const struct ports *ports, const struct port_flow *flow, uint16_t number)
{
    uint32_t index = flow->lane_first;
    while (index != 0 && ports->lanes[index].number != number) index = ports->lanes[index].next;
    return index;
}

/* The lane of a message; 0: there is no room. One that comes goes behind its like, but before the
 * lane whose turn it is. */
static uint32_t lane_of(struct ports *ports, struct port_flow *flow, const struct lane_table *table)
{
    uint32_t index = lane_find(ports, flow, table->number);
    if (index != 0) return index;
    index = lane_take(ports, table->number, table->phase);
    if (index != 0) lane_insert(ports, flow, index, true);
    return index;
}

void port_lane_ask(struct ports *ports, struct port_flow *flow, uint32_t index, int64_t work_ps,
                   int64_t segment_ps, bool ret_certain[2])
{
    struct port_entry *entry = &ports->entries[index];
    ret_certain[0] = ret_certain[1] = true;
    entry->lane_ps = 0;
    advance(ports, flow, segment_ps);
    /* A message without work, as to an expert that got no token, waits for what its lane has asked
     * for, or else for the turn of a lane that has begun. */
    uint32_t const own = work_ps == 0 ? lane_find(ports, flow, entry->lane->number)
                                      : lane_of(ports, flow, entry->lane);
    entry->begun_ps = entry->done_ps = work_ps == 0 ? flow->turn_ps : flow->asked_ps;
    if (own == 0) return;
    struct port_lane *lane = &ports->lanes[own];
    lane->asked_ps += work_ps;
    entry->lane_ps = lane->asked_ps;
    entry->begun_ps = PORT_BY_TURNS;
    place_open(ports, entry, index, own);
    int64_t const first_ps = entry->lane_ps - (work_ps > 0 ? work_ps - 1 : 0);
    ret_certain[0] = stream_certain(ports, flow, own, first_ps, segment_ps);
    ret_certain[1] = stream_certain(ports, flow, own, entry->lane_ps, segment_ps);
    /* Of a message that had begun before turns were taken its lane has only the rest. */
    if (work_ps < entry->work_ps)
        entry->begun_ps = stream_ps(ports, flow, own, first_ps, segment_ps);
}

void port_lanes_end(struct ports *ports, struct port_flow *flow)
{
    for (uint32_t i = flow->lane_first, next = 0; i != 0; i = next) {
        next = ports->lanes[i].next;
        lane_give(ports, i);
    }
    flow->lane_first = 0;
    flow->lane_current = PORT_NO_LANE;
    flow->turn_ps = flow->asked_ps;
}

void port_lanes_copy(const struct ports *from, struct ports *ports, struct port_flow *flow)
{
    uint32_t last = 0;
    uint32_t const first = flow->lane_first;
    flow->lane_first = 0;
    for (uint32_t i = first; i != 0; i = from->lanes[i].next) {
        uint32_t const index = lane_take(ports, from->lanes[i].number, from->lanes[i].phase);
        if (index == 0) return;
        ports->lanes[index] = from->lanes[i];
        ports->lanes[index].next = ports->lanes[index].first = ports->lanes[index].last = 0;
        if (last == 0)
            flow->lane_first = index;
        else
            ports->lanes[last].next = index;
        last = index;
    }
    for (uint32_t e = flow->list.first; e != 0; e = ports->entries[e].next) {
        struct port_entry *entry = &ports->entries[e];
        if (entry->done_ps == PORT_BY_TURNS)
            place_open(ports, entry, e, lane_find(ports, flow, entry->lane->number));
    }
}
