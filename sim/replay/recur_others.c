/* State that is no array over chips: what waits in the engine, messages at links, and messages
 * between ranks. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/p2p.h"
#include "sim/replay/promise.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/tree.h"

static const uint64_t epoch_bits = (uint64_t)(RECUR_EPOCHS - 1) << KEY_EPOCH_SHIFT;

/* An order whose epoch is later by `epochs`. */
static uint64_t key_later(uint64_t key, uint32_t epochs)
{
    return (key & ~epoch_bits) | ((key + ((uint64_t)epochs << KEY_EPOCH_SHIFT)) & epoch_bits);
}

/* An order with an epoch as it counts from the sender's. */
static uint64_t key_relative(struct replay *replay, uint64_t key, uint32_t sender)
{
    if (!event_key_names_epoch(key)) return key;
    uint32_t const epoch = stream_at(replay, event_key_stream(key), sender)->epoch;
    return key_later(key, RECUR_EPOCHS - epoch % RECUR_EPOCHS);
}

/* --- What waits --- */

struct pending_walk {
    struct replay *replay;
    struct recur_pending sum;
    int64_t now_ps;
};

/* What is mixed of a link at one place. */
enum what {
    WHAT_END,
    WHAT_WORK,
    WHAT_LATENCY,
    WHAT_DONE,
    WHAT_BEGUN,
    WHAT_FLOW,
    WHAT_LANES,
    WHAT_LANE,
    WHAT_QUEUE,
    WHAT_TURNS,
    WHAT_TURN,
    WHAT_BITS = 4,
};

/* Members that are in no sum: `number` of an entry, as ways of several links are not named
 * (recur.c); its places in lists, which are its order; records of a timeline, which there is none
 * of. */
#define HAS_BYTES(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "a field is missing")
HAS_BYTES(port_entry, 104);
HAS_BYTES(port_lane, 32);
HAS_BYTES(port_flow, 48);
HAS_BYTES(port_queue, 56);
HAS_BYTES(port_void, 32);

static void mix(struct recur_pending *sum, int64_t ahead_ps, uint64_t key, uint64_t subject)
{
    sum->sums[0] += digest_record(ahead_ps, key, subject);
    sum->sums[1] += digest_record((int64_t)subject, (uint64_t)ahead_ps, key);
}

static void mix_at(struct pending_walk *walk, uint64_t place, enum what what, int64_t ahead_ps,
                   uint64_t value)
{
    mix(&walk->sum, ahead_ps, value, place << WHAT_BITS | what);
}

static void pending_add(void *owner, int64_t at_ps, uint64_t key, const uint32_t *chips,
                        uint32_t count)
{
    struct pending_walk *walk = owner;
    for (uint32_t i = 0; i < count; i++)
        mix(&walk->sum, at_ps - walk->now_ps, key_relative(walk->replay, key, chips[i]), chips[i]);
    walk->sum.count += count;
    if (at_ps > walk->sum.latest_ps) walk->sum.latest_ps = at_ps;
    if (at_ps < walk->sum.earliest_ps) walk->sum.earliest_ps = at_ps;
    if (at_ps == walk->now_ps && event_key_kind(key) == EVENT_PORT) walk->sum.turn_ends = true;
}

/* A message that has been promised and could still have to wait. */
static void entry_add(struct pending_walk *walk, const struct port_entry *entry, uint64_t place)
{
    int64_t const tail_ps = entry->tail_ps > walk->now_ps ? entry->tail_ps - walk->now_ps : 0;
    uint64_t const key = key_relative(walk->replay, entry->key, entry->chip);
    mix_at(walk, place, WHAT_END, entry->end_ps - walk->now_ps, key);
    mix_at(walk, place, WHAT_WORK, entry->work_ps, (uint64_t)tail_ps);
    uint64_t const flags = (uint64_t)(entry->last ? 2 : 0) + (entry->own ? 1 : 0);
    mix_at(walk, place, WHAT_LATENCY, entry->latency_ps, (uint64_t)entry->chip << 2 | flags);
    walk->sum.count++;
}

/* How far ahead of what is done a place in a stream's work lies, if it is fixed. */
static int64_t work_ahead_ps(int64_t at_ps, int64_t served_ps)
{
    return at_ps < 0 ? 0 : at_ps - served_ps;
}

/* A message that takes turns: what else decides when it begins and ends. */
static void turns_add(struct pending_walk *walk, const struct port_flow *flow,
                      const struct port_entry *entry, uint64_t place)
{
    const struct port_lane *lanes = walk->replay->ports->lanes;
    bool const by_turns = entry->done_ps == PORT_BY_TURNS;
    int64_t const lane_ps = by_turns ? entry->lane_ps - lanes[entry->turns].served_ps : 0;
    uint64_t const flags = (uint64_t)(entry->done_ps < 0 ? -entry->done_ps : 0) |
                           (uint64_t)(entry->begun_ps < 0 ? -entry->begun_ps : 0) << 2 |
                           (uint64_t)entry->withheld << 4 | (uint64_t)entry->head_withheld << 5;
    mix_at(walk, place, WHAT_DONE, work_ahead_ps(entry->done_ps, flow->served_ps), flags);
    mix_at(walk, place, WHAT_BEGUN, work_ahead_ps(entry->begun_ps, flow->served_ps),
           (uint64_t)lane_ps);
}

/* A stream at a link where streams take turns: its work, its lanes and its messages, which its
 * lanes have in the same order. */
static void flow_add(struct pending_walk *walk, const struct port_flow *flow, uint64_t place)
{
    const struct ports *ports = walk->replay->ports;
    uint64_t const turns = (uint64_t)(flow->turn_ps - flow->served_ps);
    mix_at(walk, place, WHAT_FLOW, flow->asked_ps - flow->served_ps, turns);
    mix_at(walk, place, WHAT_LANES, flow->lane_current, flow->promised);
    for (uint32_t i = flow->lane_first; i != 0; i = ports->lanes[i].next) {
        const struct port_lane *lane = &ports->lanes[i];
        uint64_t const name = (uint64_t)lane->phase << 16 | lane->number;
        mix_at(walk, place++, WHAT_LANE, lane->asked_ps - lane->served_ps, name);
    }
    for (uint32_t e = flow->list.first; e != 0; e = ports->entries[e].next) {
        entry_add(walk, &ports->entries[e], place);
        turns_add(walk, flow, &ports->entries[e], place++);
    }
}

/* Whether messages take turns at a link, or the last of them leaves now. */
static bool is_shared(const struct link_state *link, int64_t now_ps)
{
    return link->free_ps >= now_ps && link->stream == PORT_SHARED;
}

/* Messages that a link keeps, in their order, and whose turn it is. */
static void link_add(void *owner, const struct link_state *link, uint64_t number)
{
    struct pending_walk *walk = owner;
    const struct ports *ports = walk->replay->ports;
    const struct port_queue *queue = &ports->queues[link->queue];
    uint64_t place = number << 32;
    for (uint32_t e = ports->kept[link->queue].first; e != 0; e = ports->entries[e].next)
        if (ports->entries[e].end_ps > walk->now_ps) entry_add(walk, &ports->entries[e], place++);
    if (!is_shared(link, walk->now_ps)) return;
    mix_at(walk, place, WHAT_QUEUE, queue->turn_ps - walk->now_ps, (uint64_t)queue->whole_ps);
    mix_at(walk, place, WHAT_TURNS, queue->count, queue->current);
    for (uint32_t i = 0; i < queue->count; i++) mix_at(walk, place, WHAT_TURN, queue->turn[i], i);
    for (uint32_t s = 0; s < walk->replay->stream_count; s++)
        flow_add(walk, &queue->flow[s], place + ((uint64_t)(s + 1) << 24));
}

/* The links that have a queue, with numbers that are the same in each run of a program. */
static void links_each(const struct replay *replay, void *owner,
                       void (*visit)(void *owner, const struct link_state *link, uint64_t number))
{
    uint64_t number = 0;
    if (replay->ports == NULL) return;
    for (uint32_t i = 0; i < replay->grid.port_count * replay->chip_count; i++, number++)
        if (replay->grid.ports[i].link.queue != 0)
            visit(owner, &replay->grid.ports[i].link, number);
    for (uint32_t index = 0; index < replay->routes->level_count; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count; t++) {
            const struct tier_links *tier = &replay->routes->level[index].tier[t];
            for (uint32_t i = 0; i < 2 * tier->unit_count * tier->cable_count; i++, number++)
                if (tier->links[i % 2][i / 2].queue != 0)
                    visit(owner, &tier->links[i % 2][i / 2], number);
        }
}

/* An instant by which an event is known, or 0. */
static int64_t stamp_later(int64_t stamp, int64_t later_ps)
{
    return stamp == 0 ? 0 : stamp + later_ps;
}

static void voids_add(struct pending_walk *walk)
{
    const struct ports *ports = walk->replay->ports;
    if (ports == NULL || ports->void_left == 0) return;
    for (uint32_t v = 1; v <= ports->voids_used; v++) {
        const struct port_void *at = &ports->voids[v];
        if (at->count == 0) continue;
        mix(&walk->sum, stamp_later(at->stamp, -walk->now_ps),
            key_relative(walk->replay, at->key, at->chip), UINT64_MAX - at->chip);
        mix(&walk->sum, at->count, at->key & ~epoch_bits, UINT64_MAX - at->chip);
        walk->sum.count++;
    }
}

struct recur_pending recur_pending_find(struct replay *replay)
{
    struct pending_walk walk = {.replay = replay,
                                .sum = {.earliest_ps = INT64_MAX},
                                .now_ps = engine_now_ps(replay->engine)};
    engine_pending_each(replay->engine, pending_add, &walk);
    links_each(replay, &walk, link_add);
    voids_add(&walk);
    return walk.sum;
}

/* Whether nothing has come to a lane before its collective began, or out of order, and switches add
 * nothing. */
static bool inbox_is_empty(const struct replay *replay, const struct lane_table *lane)
{
    if (lane->routed->tree != NULL &&
        !tree_is_idle(lane->routed->tree, engine_now_ps(replay->engine)))
        return false;
    for (uint32_t k = 0; k < EPOCHS_AHEAD * replay->chip_count; k++)
        if (lane->routed->ahead[k] != 0) return false;
    for (uint32_t chip = 0; lane->routed->slots != NULL && chip < replay->chip_count; chip++)
        if (lane->states[chip].ahead != 0) return false;
    return true;
}

bool recur_inboxes_are_empty(const struct replay *replay)
{
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++) {
            const struct lane_table *lane = &replay->lanes.plans[i].lane[l];
            if (lane->routed != NULL && !inbox_is_empty(replay, lane)) return false;
        }
    return true;
}

/* --- Periods later --- */

struct later {
    struct replay *replay;
    int64_t now_ps; /* Later too, as the arrays are. */
    int64_t later_ps;
    uint64_t times;
};

/* An order as it is periods later. */
static uint64_t key_then(const struct later *later, uint64_t key, uint32_t sender)
{
    if (!event_key_names_epoch(key)) return key;
    const struct recur_role *role = recur_role_of(later->replay, sender);
    return key_later(key, (uint32_t)later->times * role->epochs[event_key_stream(key)]);
}

static void entry_repeat(const struct later *later, struct port_entry *entry)
{
    entry->end_ps += later->later_ps;
    entry->tail_ps += later->later_ps;
    entry->key = key_then(later, entry->key, entry->chip);
}

/* Places in the work of a stream or a lane do not move: the skipped periods do none of this work.
 * The order of entries of one name stays, which entry_find() goes by. */
static void link_repeat(void *owner, const struct link_state *link, uint64_t number)
{
    (void)number;
    const struct later *later = owner;
    struct ports *ports = later->replay->ports;
    struct port_queue *queue = &ports->queues[link->queue];
    for (uint32_t e = ports->kept[link->queue].first; e != 0; e = ports->entries[e].next)
        entry_repeat(later, &ports->entries[e]);
    if (!is_shared(link, later->now_ps)) return;
    queue->turn_ps += later->later_ps;
    for (uint32_t s = 0; s < later->replay->stream_count; s++)
        for (uint32_t e = queue->flow[s].list.first; e != 0; e = ports->entries[e].next) {
            struct port_entry *entry = &ports->entries[e];
            hashed_remove(&ports->named, port_name(entry->key, entry->chip), e);
            entry_repeat(later, entry);
            port_name_add(ports, e);
        }
}

static void voids_repeat(const struct later *later)
{
    struct ports *ports = later->replay->ports;
    if (ports == NULL || ports->void_left == 0) return;
    for (uint32_t v = 1; v <= ports->voids_used; v++) {
        struct port_void *at = &ports->voids[v];
        if (at->count == 0) continue;
        promise_void_rename(ports, v, key_then(later, at->key, at->chip),
                            stamp_later(at->stamp, later->later_ps));
    }
}

/* When messages of further periods were ready to leave. */
static void departures_repeat(struct replay *replay, int64_t period_ps, uint64_t times)
{
    struct p2p *p2p = replay->p2p;
    for (uint32_t stream = 0; p2p != NULL && stream < replay->stream_count; stream++) {
        if (replay->program->stream[stream].kind != PROGRAM_OP_SEND) continue;
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            const struct stream_state *state = stream_at(replay, stream, chip);
            uint32_t const parts = recur_role_of(replay, chip)->parts[stream];
            /* The state is periods later already: the last message that began, then and now. */
            uint64_t const end = (uint64_t)state->op_first + 1;
            int64_t *left_ps =
                &p2p->left_ps[p2p->first[(uint64_t)stream * replay->chip_count + chip]];
            for (uint64_t i = end - times * parts; i < end; i++)
                left_ps[i] = left_ps[i - parts] + period_ps;
        }
    }
}

struct recur_event {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
};

bool recur_events_reserve(struct replay *replay)
{
    struct recur *recur = replay->recurrence.search;
    uint64_t const count = engine_pending_count(replay->engine);
    struct error error;
    void *memory = NULL;
    if (!recur->routed || count <= recur->events_room) return true;
    if (arena_try_unset(recur->arena, count, sizeof *recur->events, &memory, &error) != STATUS_OK)
        return false;
    recur->events = memory;
    recur->events_room = count;
    return true;
}

static void event_take(void *owner, int64_t at_ps, uint64_t key, const uint32_t *chips,
                       uint32_t count)
{
    struct recur *recur = owner;
    for (uint32_t i = 0; i < count; i++)
        recur->events[recur->event_count++] = (struct recur_event){at_ps, key, chips[i]};
}

/* Events that name epochs have other orders later, and are posted anew. */
static void events_repeat(const struct later *later, uint64_t event_count)
{
    struct replay *replay = later->replay;
    struct recur *recur = replay->recurrence.search;
    recur->event_count = 0;
    if (recur->routed) {
        SIM_ASSERT(engine_pending_count(replay->engine) <= recur->events_room);
        engine_pending_each(replay->engine, event_take, recur);
        engine_forget(replay->engine);
    }
    engine_jump(replay->engine, later->later_ps, event_count);
    for (uint64_t i = 0; i < recur->event_count; i++) {
        const struct recur_event *event = &recur->events[i];
        uint64_t const key = key_then(later, event->key, event->chip);
        engine_post(replay->engine, event->at_ps + later->later_ps, key,
                    channel_of_key(replay, key), event->chip);
    }
}

/* What has come out of order has been counted, so its marks say nothing more; but they lie where
 * the epoch of then has its own. */
static void inboxes_clear(struct replay *replay)
{
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++) {
            const struct routed_lane *routed = replay->lanes.plans[i].lane[l].routed;
            if (routed == NULL || routed->slots == NULL) continue;
            memset(routed->slots, 0,
                   (uint64_t)replay->chip_count * EPOCHS_AHEAD * routed->words *
                       sizeof *routed->slots);
        }
}

void recur_others_repeat(struct replay *replay, int64_t period_ps, uint64_t times,
                         uint64_t event_count)
{
    int64_t const later_ps = (int64_t)times * period_ps;
    struct later later = {.replay = replay,
                          .now_ps = engine_now_ps(replay->engine) + later_ps,
                          .later_ps = later_ps,
                          .times = times};
    links_each(replay, &later, link_repeat);
    voids_repeat(&later);
    events_repeat(&later, event_count);
    departures_repeat(replay, period_ps, times);
    inboxes_clear(replay);
    recur_passes_repeat(replay, period_ps, times);
}
