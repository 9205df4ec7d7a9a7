/* Events of several instants, of chips that are not alike (engine/windows.h). */
#include "sim/base/units.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"

/* Events whose state is fetched ahead, in a list and of the list behind it. */
enum { AHEAD = 12 };

/* Fewer chips have few events in a window, and state that stays in the cache. */
enum { CHIPS_MIN = 2048 };

/* A shorter window has few events. */
static const int64_t lookahead_least_ps = TIME_PS_PER_US / 10;

/* The least time by which what one chip does comes before what follows from it on another one: the
 * latency of a link, if messages on the grid alone lead from chip to chip; else 0. A post that a
 * link's other streams make void is known to be so before its message has left, and so as early. */
static int64_t lookahead_ps(const struct replay *replay)
{
    int64_t least_ps = INT64_MAX;
    if (replay->host != NULL || replay->p2p != NULL) return 0;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t l = 0; l < replay->lanes.plans[i].lane_count; l++)
            if (replay->lanes.plans[i].lane[l].routed != NULL) return 0;
    for (uint32_t kind = 0; kind < replay->fold->link_class_count; kind++)
        if (replay->fold->link_classes[kind].latency_ps < least_ps)
            least_ps = replay->fold->link_classes[kind].latency_ps;
    return least_ps;
}

/* What the first events of a list will touch. */
static void window_ahead(void *owner, uint64_t key, const uint32_t *chips, uint32_t count)
{
    struct replay *replay = owner;
    if (count > AHEAD) count = AHEAD;
    if (key >> KEY_PORT_SHIFT < KEY_HOST)
        transport_ahead(replay, key, chips, count);
    else
        for (uint32_t i = 0; i < count; i++) replay_ahead(replay, key, chips[i]);
}

/* Events of several chips, each at its instant; what the chips do follows one after the other. */
static void window_handle(void *owner, uint64_t key, const uint32_t *chips, const int64_t *at_ps,
                          uint32_t count)
{
    struct replay *replay = owner;
    if (key >> KEY_PORT_SHIFT < KEY_HOST) {
        transport_window(replay, key, chips, at_ps, count);
        return;
    }
    if (event_key_kind(key) == EVENT_COMPUTE_END) {
        streams_compute_window(replay, chips, at_ps, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i + AHEAD < count) replay_ahead(replay, key, chips[i + AHEAD]);
        replay_event(replay, at_ps[i], key, &chips[i], 1);
    }
}

/* Lists of a window are longer than those of an instant where chips have many speeds. Few chips
 * that differ leave the others in long lists of one instant, which go through handlers together. A
 * search for layers that recur, a timeline, further steps and a prefix fold look at the state of
 * all chips at one instant. */
enum status windows_take(struct arena *arena, struct replay *replay, struct error *reterr)
{
    int64_t const ahead_ps = lookahead_ps(replay);
    if (engine_is_reference(replay->engine) || ahead_ps < lookahead_least_ps) return STATUS_OK;
    if (!replay->options->windows && (replay->chip_count < CHIPS_MIN ||
                                      replay->fold->chip_class_count <= RECUR_CHIP_CLASSES_MAX))
        return STATUS_OK;
    if (replay->recurrence.search != NULL || replay->steps.pauses || replay->steps.max > 0)
        return STATUS_OK;
    if (replay->records.active || replay->fold->prefix != NULL) return STATUS_OK;
    if (replay->lanes.flights != NULL || replay->streams.chains != NULL) return STATUS_OK;
    return engine_take_windows(arena, replay->engine, ahead_ps, window_handle, window_ahead,
                               reterr);
}
