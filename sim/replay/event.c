/* Events of a run: which handler each has, and what the handler will touch. */
#include "sim/replay/batch.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight.h"
#include "sim/replay/host.h"
#include "sim/replay/promise.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/stretch.h"
#include "sim/replay/transport.h"

/* Kinds of events that need a loop have functions that are not inlined, so that for all kinds the
 * way from the engine to the handler is a few jumps. */
#define APART __attribute__((noinline))

static APART void streams_begin(struct replay *replay, uint64_t key, const uint32_t *chips,
                                uint32_t count, int64_t now_ps)
{
    for (uint32_t i = 0; i < count; i++) {
        if (event_key_port(key) == KEY_LAUNCHED)
            streams_advance(replay, event_key_stream(key), chips[i], now_ps);
        else
            streams_start(replay, chips[i], now_ps);
    }
}

static APART void chips_finish(struct replay *replay, const uint32_t *chips, uint32_t count,
                               int64_t now_ps)
{
    for (uint32_t i = 0; i < count; i++) streams_finish(replay, chips[i], now_ps);
}

static inline __attribute__((always_inline)) void event_handle(struct replay *replay,
                                                               int64_t now_ps, uint64_t key,
                                                               const uint32_t *chips,
                                                               uint32_t count)
{
    uint32_t const port = event_key_port(key);
    bool const routed = port == KEY_ROUTED;
    /* Of most events: a message has arrived by a port of the grid. */
    if (key >> KEY_PORT_SHIFT < KEY_HOST) {
        transport_arrive(replay, key, chips, count, now_ps);
        return;
    }
    if (port == KEY_HOST) {
        host_event(replay, key, chips, count, now_ps);
        return;
    }
    switch (event_key_kind(key)) {
    case EVENT_ARRIVE:
        routed_arrive(replay, key, chips, count, now_ps);
        break;
    case EVENT_HOP:
        if (routed)
            routed_hop(replay, key, chips, count, now_ps);
        else
            transport_hop(replay, key, chips, count, now_ps);
        break;
    case EVENT_LANE_READY:
        if (count == 1)
            transport_lane_ready(replay, event_key_stream(key), event_key_lane(key), chips[0],
                                 now_ps);
        else
            lanes_ready(replay, event_key_stream(key), event_key_lane(key), chips, count, now_ps);
        break;
    case EVENT_COLLECTIVE_END:
        if (count == 1)
            streams_collective_end(replay, event_key_stream(key), chips[0], now_ps);
        else
            streams_collective_end_many(replay, event_key_stream(key), chips, count, now_ps);
        break;
    case EVENT_COMPUTE_END:
        if (count < BATCH_CHIPS_MIN)
            streams_compute_end(replay, chips, count, now_ps);
        else
            streams_compute_end_many(replay, chips, count, now_ps);
        break;
    case EVENT_LAND:
        if (routed)
            routed_land(replay, key, chips, count, now_ps);
        else
            transport_land(replay, key, chips, count, now_ps);
        break;
    case EVENT_START:
        streams_begin(replay, key, chips, count, now_ps);
        break;
    case EVENT_FINISH_OR_PORT:
        if (event_key_stream(key) != PROGRAM_COMPUTE)
            promise_port(replay, key, chips, count, now_ps);
        else
            chips_finish(replay, chips, count, now_ps);
        break;
    }
}

/* The same while epochs that meet are looked for (recur.h). */
static APART void event_watch(struct replay *replay, int64_t now_ps, uint64_t key,
                              const uint32_t *chips, uint32_t count)
{
    recur_event(replay, now_ps, key, chips, count);
    event_handle(replay, now_ps, key, chips, count);
}

void replay_event(struct replay *replay, int64_t now_ps, uint64_t key, const uint32_t *chips,
                  uint32_t count)
{
    if (replay->recurrence.watches)
        event_watch(replay, now_ps, key, chips, count);
    else
        event_handle(replay, now_ps, key, chips, count);
}

/* Ends of collectives, of which some may have been simulated once for all that are alike. */
static APART void ends_handle(struct replay *replay, int64_t now_ps, uint64_t key,
                              const uint32_t *chips, uint32_t count)
{
    uint32_t left[ENGINE_BATCH_MAX];
    uint32_t const left_count = flights_end(replay, key, chips, count, now_ps, left);
    if (left_count > 0) replay_event(replay, now_ps, key, left, left_count);
}

static inline void event_or_end(struct replay *replay, int64_t now_ps, uint64_t key,
                                const uint32_t *chips, uint32_t count)
{
    if (event_key_kind(key) == EVENT_COLLECTIVE_END)
        ends_handle(replay, now_ps, key, chips, count);
    else
        replay_event(replay, now_ps, key, chips, count);
}

/* An event where collectives may fly. */
static APART void flights_event(struct replay *replay, int64_t now_ps, uint64_t key,
                                const uint32_t *chips, uint32_t count)
{
    flights_order(replay->lanes.flights, now_ps, key);
    event_or_end(replay, now_ps, key, chips, count);
}

/* Whether an event is of a chip by itself: an op, or a collective, ends there. */
static bool is_own(const struct replay *replay, uint64_t key)
{
    if (event_key_kind(key) == EVENT_COMPUTE_END) return true;
    return event_key_kind(key) == EVENT_COLLECTIVE_END &&
           replay->program->stream[event_key_stream(key)].kind == PROGRAM_OP_COLLECTIVE;
}

/* Whether an event is not the end of a stretch, and its chip has none. */
static inline bool is_apart(const struct replay *replay, uint64_t key, uint32_t chip)
{
    return key != stretch_key && replay->streams.stretches->runs[chip].of == NULL &&
           !stretch_is_recorded(replay, chip);
}

/* An event where some chips have stretches. True: it was the end of one. */
static APART bool stretches_event(struct replay *replay, int64_t now_ps, uint64_t key,
                                  const uint32_t *chips, uint32_t count)
{
    bool const own = is_own(replay, key);
    for (uint32_t i = 0; key == stretch_key && i < count; i++) {
        stretch_end(replay, chips[i]);
        chains_settle(replay, now_ps);
    }
    for (uint32_t i = 0; key != stretch_key && i < count; i++)
        if (!own)
            stretch_clear(replay, chips[i]);
        else if (stretch_is_recorded(replay, chips[i]))
            stretch_note_events(replay, chips[i], 1);
    return key == stretch_key;
}

/* An event where compute ops may have events in common, too. */
static APART void chains_event(struct replay *replay, int64_t now_ps, uint64_t key,
                               const uint32_t *chips, uint32_t count)
{
    flights_order(replay->lanes.flights, now_ps, key);
    if (replay->streams.stretched != 0 && !(count == 1 && is_apart(replay, key, chips[0])) &&
        stretches_event(replay, now_ps, key, chips, count))
        return;
    if (key == chain_key) {
        for (uint32_t i = 0; i < count; i++) chain_end(replay, chips[i], now_ps);
    } else {
        for (uint32_t i = 0; i < count; i++) chain_clear(replay, chips[i]);
        event_or_end(replay, now_ps, key, chips, count);
    }
    chains_settle(replay, now_ps);
}

void replay_handle(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                   const uint32_t *chips, uint32_t count)
{
    struct replay *replay = owner;
    (void)engine;
    if (replay->streams.chains != NULL)
        chains_event(replay, now_ps, key, chips, count);
    else if (replay->lanes.flights != NULL)
        flights_event(replay, now_ps, key, chips, count);
    else if (replay->recurrence.watches && event_key_names_epoch(key))
        event_watch(replay, now_ps, key, chips, count);
    else
        event_handle(replay, now_ps, key, chips, count);
}

/* The lines that the handler of an event will touch first. */
void replay_ahead(void *owner, uint64_t key, uint32_t chip)
{
    struct replay *replay = owner;
    uint32_t const stream = event_key_stream(key);
    __builtin_prefetch(stream_at(replay, stream, chip), 1);
    __builtin_prefetch(&replay->servers.states[chip], 1);
    if (event_key_kind(key) == EVENT_COMPUTE_END) {
        __builtin_prefetch(&replay->chips[chip], 1);
        return;
    }
    uint32_t const lane = event_key_lane(key);
    uint32_t const port = event_key_port(key);
    if (port == KEY_HOST) return;
    if (port == KEY_ROUTED && event_key_kind(key) != EVENT_LANE_READY) {
        routed_ahead(replay, key, chip);
        return;
    }
    __builtin_prefetch(lane_at(replay, lane, chip), 1);
    if (port != KEY_ROUTED) __builtin_prefetch(link_at(replay, port, chip), 1);
    __builtin_prefetch(running_at(replay, stream, chip));
}
