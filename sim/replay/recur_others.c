/* State that is no array over chips: what waits in the engine, messages at links, and messages
 * between ranks. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/p2p.h"
#include "sim/replay/port.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

static const uint64_t epoch_bits = (uint64_t)(RECUR_EPOCHS - 1) << KEY_EPOCH_SHIFT;

/* An order whose epoch is so many later. */
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

static void mix(struct recur_pending *sum, int64_t ahead_ps, uint64_t key, uint64_t subject)
{
    sum->sums[0] += digest_record(ahead_ps, key, subject);
    sum->sums[1] += digest_record((int64_t)subject, (uint64_t)ahead_ps, key);
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
}

/* A message that has been promised and could still have to wait. */
static void entry_add(struct pending_walk *walk, const struct port_entry *entry, uint64_t place)
{
    int64_t const tail_ps = entry->tail_ps > walk->now_ps ? entry->tail_ps - walk->now_ps : 0;
    uint64_t const key = key_relative(walk->replay, entry->key, entry->chip);
    mix(&walk->sum, entry->end_ps - walk->now_ps, key, place);
    mix(&walk->sum, entry->work_ps, (uint64_t)tail_ps, place);
    uint64_t const flags = (uint64_t)(entry->last ? 2 : 0) + (entry->own ? 1 : 0);
    mix(&walk->sum, entry->latency_ps, (uint64_t)entry->chip << 2 | flags, place);
    walk->sum.count++;
}

/* Messages that links keep, in their order. No link is shared, so turns have nothing more. */
static void entries_add(struct pending_walk *walk)
{
    const struct ports *ports = walk->replay->ports;
    for (uint32_t queue = 1; ports != NULL && queue <= ports->queue_count; queue++) {
        uint64_t place = (uint64_t)queue << 32;
        for (uint32_t e = ports->kept[queue].first; e != 0; e = ports->entries[e].next)
            if (ports->entries[e].end_ps > walk->now_ps)
                entry_add(walk, &ports->entries[e], place++);
    }
}

struct recur_pending recur_pending_find(struct replay *replay)
{
    struct pending_walk walk = {.replay = replay,
                                .sum = {.earliest_ps = INT64_MAX},
                                .now_ps = engine_now_ps(replay->engine)};
    engine_pending_each(replay->engine, pending_add, &walk);
    entries_add(&walk);
    return walk.sum;
}

/* --- Periods later --- */

static void entries_repeat(struct replay *replay, int64_t later_ps, uint64_t times)
{
    struct ports *ports = replay->ports;
    for (uint32_t queue = 1; ports != NULL && queue <= ports->queue_count; queue++)
        for (uint32_t e = ports->kept[queue].first; e != 0; e = ports->entries[e].next) {
            struct port_entry *entry = &ports->entries[e];
            entry->end_ps += later_ps;
            entry->tail_ps += later_ps;
            if (!event_key_names_epoch(entry->key)) continue;
            const struct recur_role *role = recur_role_of(replay, entry->chip);
            entry->key = key_later(entry->key, (uint32_t)times * role->epochs[entry->lane->stream]);
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
static void events_repeat(struct replay *replay, int64_t later_ps, uint64_t times,
                          uint64_t event_count)
{
    struct recur *recur = replay->recurrence.search;
    recur->event_count = 0;
    if (recur->routed) {
        SIM_ASSERT(engine_pending_count(replay->engine) <= recur->events_room);
        engine_pending_each(replay->engine, event_take, recur);
        engine_forget(replay->engine);
    }
    engine_jump(replay->engine, later_ps, event_count);
    for (uint64_t i = 0; i < recur->event_count; i++) {
        const struct recur_event *event = &recur->events[i];
        uint64_t key = event->key;
        if (event_key_names_epoch(key)) {
            const struct recur_role *role = recur_role_of(replay, event->chip);
            key = key_later(key, (uint32_t)times * role->epochs[event_key_stream(key)]);
        }
        engine_post(replay->engine, event->at_ps + later_ps, key, channel_of_key(replay, key),
                    event->chip);
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
    events_repeat(replay, later_ps, times, event_count);
    entries_repeat(replay, later_ps, times);
    departures_repeat(replay, period_ps, times);
    inboxes_clear(replay);
    recur_passes_repeat(replay, period_ps, times);
}
