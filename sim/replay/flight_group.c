/* Collectives of all replayed chips that fly together: how they begin, end and land. */
#include "sim/replay/flight_group.h"

#include "sim/base/arena.h"
#include "sim/replay/flight_log.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"

static struct flight *flights_of(const struct replay *replay, uint32_t stream)
{
    return &replay->lanes.flights->aloft[(uint64_t)stream * replay->chip_count];
}

static void links_mark(const struct flight_group *group, bool flown)
{
    for (uint32_t i = 0; i < group->link_count; i++)
        group->links[i].link->flown = flown && group->links[i].waits_here;
}

/* Whether no chip has begun the collective that one is about to begin, none of its messages has
 * come, and all links are free. */
static bool may_open(const struct replay *replay, const struct flight_group *group, uint32_t stream,
                     uint32_t chip, int64_t now_ps)
{
    const struct stream_state *states =
        &replay->streams.states[(uint64_t)stream * replay->chip_count];
    if (replay->lanes.flights->timer_ps[stream] != 0) return false;
    for (uint32_t other = 0; other < replay->chip_count; other++) {
        uint32_t const behind =
            (uint32_t)(states[chip].epoch - states[other].epoch) % (1u << KEY_EPOCH_BITS);
        if (behind != (other == chip ? 0 : 1) || flight_has_ahead(group->lane->plan, other))
            return false;
    }
    for (uint32_t i = 0; i < group->link_count; i++)
        if (group->links[i].waits_here &&
            (group->links[i].link->flown || group->links[i].link->free_ps > now_ps))
            return false;
    return true;
}

static void open_at(struct replay *replay, struct flight_group *group, uint32_t stream,
                    int64_t now_ps)
{
    struct flights *flights = replay->lanes.flights;
    links_mark(group, true);
    group->joined = 0;
    flights->together[stream] = group;
    flights->timer_ps[stream] = now_ps + group->window_ps - 1;
    engine_post(replay->engine, flights->timer_ps[stream],
                event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                channel_of(replay, EVENT_COLLECTIVE_END, stream), 0);
}

static void ends_post(struct replay *replay, const struct flight_group *group, uint32_t stream)
{
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        engine_post(replay->engine,
                    flights_of(replay, stream)[chip].begin_ps + group->logs[chip].length_ps,
                    event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                    channel_of(replay, EVENT_COLLECTIVE_END, stream), chip);
}

static void join(struct replay *replay, struct flight_group *group, uint32_t stream, uint32_t chip,
                 int64_t now_ps)
{
    struct flights *flights = replay->lanes.flights;
    struct flight_log *log = &group->logs[chip];
    log->arrived_count = log->message_count = 0;
    flights_of(replay, stream)[chip] = (struct flight){.log = log, .begin_ps = now_ps};
    flights->of_chip[chip] |= 1u << stream;
    group->begin_keys[chip] = flights->order.key;
    group->joined++;
    replay->tally.posted++;
    flight_serve(replay, &flights_of(replay, stream)[chip], chip, 0, log->left_at_begin);
}

bool flight_group_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    struct flights *flights = replay->lanes.flights;
    struct flight_group *group = flights->groups[*running_at(replay, stream, chip)];
    bool const joins = group != NULL && !event_key_names_epoch(flights->order.key) &&
                       flight_finds_free(replay, &group->logs[chip], stream, chip, now_ps);
    if (flights->together[stream] == NULL) {
        if (!joins || !may_open(replay, group, stream, chip, now_ps)) return false;
        open_at(replay, group, stream, now_ps);
    } else if (flights->together[stream] != group || !joins) {
        flight_group_land(replay, stream);
        return false;
    }
    join(replay, group, stream, chip, now_ps);
    if (group->joined < replay->chip_count) return true;
    if (flight_group_time(replay, group, stream)) {
        flights->timed[stream] = true;
        ends_post(replay, group, stream);
    } else {
        flight_group_land(replay, stream);
    }
    return true;
}

/* What its messages have done to links. */
static void links_close(struct replay *replay, const struct flight_group *group, uint32_t stream,
                        int64_t first_ps)
{
    const struct flight *flights = flights_of(replay, stream);
    for (uint32_t i = 0; i < group->link_count; i++) {
        const struct group_link *at = &group->links[i];
        struct link_state *link = at->link;
        link->busy_ps += at->busy_ps;
        link->bytes += at->bytes;
        if (!at->waits_here) continue;
        link_waits_add(at->waits, at->waited_ps, at->messages);
        link->free_ps =
            at->free_ps + (at->sender == UINT32_MAX ? first_ps : flights[at->sender].begin_ps);
        link->stream = group->lane->stream;
        link->lane = group->lane->number;
        link->flown = false;
        queued_note(replay, at->port, at->queued_ps);
    }
}

static int64_t first_begin_ps(const struct replay *replay, uint32_t stream)
{
    const struct flight *flights = flights_of(replay, stream);
    int64_t first_ps = INT64_MAX;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (flights[chip].log != NULL && flights[chip].begin_ps < first_ps)
            first_ps = flights[chip].begin_ps;
    return first_ps;
}

void flight_group_close(struct replay *replay, uint32_t stream)
{
    struct flights *flights = replay->lanes.flights;
    struct flight_group *group = flights->together[stream];
    links_close(replay, group, stream, first_begin_ps(replay, stream));
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) flight_close(replay, stream, chip);
    flights->together[stream] = NULL;
    flights->timed[stream] = false;
    if (group->misses > 0) group->misses--;
}

/* The chip whose begin comes next, in the order of the events in which they began. */
static uint32_t next_begun(const struct replay *replay, const struct flight_group *group,
                           uint32_t stream)
{
    const struct flight *flights = flights_of(replay, stream);
    uint32_t next = UINT32_MAX;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        if (flights[chip].log == NULL) continue;
        if (next == UINT32_MAX || flights[chip].begin_ps < flights[next].begin_ps ||
            (flights[chip].begin_ps == flights[next].begin_ps &&
             group->begin_keys[chip] < group->begin_keys[next]))
            next = chip;
    }
    return next;
}

void flight_group_land(struct replay *replay, uint32_t stream)
{
    struct flights *flights = replay->lanes.flights;
    struct flight_group *group = flights->together[stream];
    bool const timed = flights->timed[stream];
    flights->together[stream] = NULL;
    flights->timed[stream] = false;
    links_mark(group, false);
    if (++group->misses > GROUP_MISSES_MAX) flights->groups[group->lane->plan->index] = NULL;
    flight_landing_begin(replay, stream, first_begin_ps(replay, stream));
    for (uint32_t chip = next_begun(replay, group, stream); chip != UINT32_MAX;
         chip = next_begun(replay, group, stream)) {
        struct flight *flight = &flights_of(replay, stream)[chip];
        int64_t const begin_ps = flight->begin_ps;
        if (timed) flight->void_ps = begin_ps + flight->log->length_ps;
        flight_leave(replay, stream, chip);
        replay->tally.landed++;
        engine_run_before(flights->engine, begin_ps, group->begin_keys[chip]);
        transport_open(replay, stream, chip, begin_ps);
        transport_operand(replay, stream, chip, begin_ps);
    }
    flight_landing_end(replay);
}

bool flight_group_uses(const struct replay *replay, uint32_t stream, const struct link_state *link)
{
    const struct flight_group *group = replay->lanes.flights->together[stream];
    for (uint32_t i = 0; group != NULL && i < group->link_count; i++)
        if (group->links[i].link == link && group->links[i].waits_here) return true;
    return false;
}

bool flight_groups_wait(const struct replay *replay)
{
    const struct flights *flights = replay->lanes.flights;
    for (uint32_t stream = 0; flights != NULL && stream < replay->stream_count; stream++)
        if (flights->together[stream] != NULL && !flights->timed[stream]) return true;
    return false;
}

enum status flight_groups_build(struct arena *arena, const struct replay *replay, bool together,
                                struct flights *flights, struct error *reterr)
{
    uint32_t const streams = replay->stream_count;
    void *memory = NULL;
    STATUS_TRY(
        arena_try(arena, replay->lanes.plan_count, sizeof *flights->groups, &memory, reterr));
    flights->groups = memory;
    STATUS_TRY(arena_try(arena, streams, sizeof *flights->together, &memory, reterr));
    flights->together = memory;
    STATUS_TRY(arena_try(arena, streams, sizeof *flights->timed, &memory, reterr));
    flights->timed = memory;
    STATUS_TRY(arena_try(arena, streams, sizeof *flights->timer_ps, &memory, reterr));
    flights->timer_ps = memory;
    if (!together) return STATUS_OK;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *flights->aside, &memory, reterr));
    flights->aside = memory;
    return STATUS_OK;
}
