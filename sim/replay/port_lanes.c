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

/* One turn of the lane in front, which goes behind its like. */
static void turn_pass(struct ports *ports, struct port_flow *flow, int64_t segment_ps)
{
    uint32_t const index = flow->lane_first;
    struct port_lane *lane = &ports->lanes[index];
    int64_t const left = left_ps(lane);
    int64_t const work_ps = left < segment_ps ? left : segment_ps;
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

/* How much of the stream's work is done with so much of a lane's, which is not done yet. */
static int64_t stream_ps(const struct ports *ports, const struct port_flow *flow, uint16_t number,
                         int64_t done_ps, int64_t segment_ps, bool *ret_certain)
{
    uint32_t own = flow->lane_first;
    while (own != 0 && ports->lanes[own].number != number) own = ports->lanes[own].next;
    SIM_ASSERT(own != 0);
    int64_t const ahead_ps = done_ps - ports->lanes[own].served_ps;
    int64_t const turns = (ahead_ps + segment_ps - 1) / segment_ps;
    int64_t at_ps = flow->turn_ps + ahead_ps;
    bool before = true;
    for (uint32_t i = flow->lane_first; i != 0; i = ports->lanes[i].next) {
        if (i == own) {
            before = false;
            continue;
        }
        if (ports->lanes[i].phase > ports->lanes[own].phase) break;
        int64_t const others_ps = left_ps(&ports->lanes[i]);
        int64_t const turns_ps = segment_ps * (before ? turns : turns - 1);
        bool const earlier = ports->lanes[i].phase < ports->lanes[own].phase;
        at_ps += earlier || others_ps < turns_ps ? others_ps : turns_ps;
    }
    *ret_certain = turns == 1 && ports->lanes[own].phase == 0 && number != flow->lane_current;
    return at_ps;
}

/* A lane with work left; NULL: it has none. */
static struct port_lane *lane_find(struct ports *ports, const struct port_flow *flow,
                                   uint16_t number)
{
    for (uint32_t i = flow->lane_first; i != 0; i = ports->lanes[i].next)
        if (ports->lanes[i].number == number) return &ports->lanes[i];
    return NULL;
}

/* The lane of a message; NULL: there is no room. One that comes goes behind its like, but before
 * the lane whose turn it is. */
static struct port_lane *lane_of(struct ports *ports, struct port_flow *flow,
                                 const struct lane_table *table)
{
    struct port_lane *lane = lane_find(ports, flow, table->number);
    if (lane != NULL) return lane;
    uint32_t const index = lane_take(ports, table->number, table->phase);
    if (index == 0) return NULL;
    lane_insert(ports, flow, index, true);
    return &ports->lanes[index];
}

/* A message without work, as to an expert that got no token: it waits for what its lane has asked
 * for, or else for the turn of a lane that has begun. */
static void nothing_asked(struct ports *ports, struct port_flow *flow, struct port_entry *entry,
                          int64_t segment_ps, bool ret_certain[2])
{
    const struct port_lane *lane = lane_find(ports, flow, entry->lane->number);
    ret_certain[0] = true;
    entry->done_ps = flow->turn_ps;
    if (lane != NULL) {
        entry->lane_ps = lane->asked_ps;
        entry->done_ps =
            stream_ps(ports, flow, lane->number, entry->lane_ps, segment_ps, &ret_certain[0]);
    }
    entry->begun_ps = entry->done_ps;
    ret_certain[1] = ret_certain[0];
}

/* The turns of entries that are not done, once another lane has asked. A message that had begun
 * before turns were taken has only its rest as work of its lane. */
static void entries_move(struct ports *ports, struct port_flow *flow, int64_t segment_ps)
{
    bool certain = false;
    for (uint32_t e = flow->list.first; e != 0; e = ports->entries[e].next) {
        struct port_entry *other = &ports->entries[e];
        uint16_t const number = other->lane->number;
        bool const begun = other->begun_ps <= flow->turn_ps || other->lane_ps < other->work_ps;
        if (other->done_ps > flow->turn_ps)
            other->done_ps = stream_ps(ports, flow, number, other->lane_ps, segment_ps, &certain);
        if (!begun)
            other->begun_ps = other->work_ps == 0 ? other->done_ps
                                                  : stream_ps(ports, flow, number,
                                                              other->lane_ps - other->work_ps + 1,
                                                              segment_ps, &certain);
    }
}

void port_lane_ask(struct ports *ports, struct port_flow *flow, struct port_entry *entry,
                   int64_t work_ps, int64_t segment_ps, bool ret_certain[2])
{
    ret_certain[0] = ret_certain[1] = true;
    entry->lane_ps = 0;
    entry->begun_ps = entry->done_ps = flow->asked_ps;
    advance(ports, flow, segment_ps);
    if (work_ps == 0) {
        nothing_asked(ports, flow, entry, segment_ps, ret_certain);
        return;
    }
    struct port_lane *lane = lane_of(ports, flow, entry->lane);
    if (lane == NULL) return;
    lane->asked_ps += work_ps;
    entry->lane_ps = lane->asked_ps;
    entry->begun_ps = stream_ps(ports, flow, lane->number, entry->lane_ps - work_ps + 1, segment_ps,
                                &ret_certain[0]);
    entry->done_ps =
        stream_ps(ports, flow, lane->number, entry->lane_ps, segment_ps, &ret_certain[1]);
    /* Once lanes lack room, some entries have none, and the run is refused. */
    if (ports->lanes[flow->lane_first].next != 0 && !ports->lanes_lacked)
        entries_move(ports, flow, segment_ps);
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
        ports->lanes[index].next = 0;
        if (last == 0)
            flow->lane_first = index;
        else
            ports->lanes[last].next = index;
        last = index;
    }
}
