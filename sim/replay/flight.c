/* Collectives that fly: how they begin, end and land. */
#include "sim/replay/flight.h"

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/flight_group.h"
#include "sim/replay/flight_log.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/routed.h"
#include "sim/replay/stretch.h"
#include "sim/replay/transport.h"

/* For each collective that ends. */
#define INLINED inline __attribute__((always_inline))

/* The key of a logged event, in the epoch of its collective. */
static uint64_t key_in_epoch(uint64_t key, uint32_t epoch)
{
    return event_key_names_epoch(key) ? key | (uint64_t)epoch << KEY_EPOCH_SHIFT : key;
}

/* passed_until() where some instant has passed. */
static uint32_t passed_some(const struct flight_instant *at, uint32_t first, uint32_t count,
                            int64_t now_ps, uint64_t key, uint32_t epoch)
{
    uint32_t low = first, high, step = 1;
    /* Mostly few have passed since. */
    for (; low + step <= count && at[low + step - 1].at_ps < now_ps; step *= 2) low += step;
    high = low + step - 1 < count ? low + step - 1 : count;
    while (low < high) {
        uint32_t const middle = low + (high - low) / 2;
        if (at[middle].at_ps < now_ps)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < count && at[low].at_ps == now_ps && key_in_epoch(at[low].key, epoch) < key) low++;
    return low;
}

/* The first instant from `first` on that does not lie before the order. Mostly none has passed. */
static INLINED uint32_t passed_until(const struct flight_instant *at, uint32_t first,
                                     uint32_t count, int64_t now_ps, uint64_t key, uint32_t epoch)
{
    if (first == count || at[first].at_ps > now_ps) return first;
    return passed_some(at, first, count, now_ps, key, epoch);
}

/* What arrivals cost a server, from `first` to before `end`. */
static void arrivals_serve(struct replay *replay, const struct flight *flight, uint32_t end,
                           enum server server, uint32_t chip)
{
    struct server_state *state = server_at(&replay->servers, server, chip);
    const struct flight_log *log = flight->log;
    uint32_t const first = flight->arrived;
    int64_t const edge_ps = state->edge_ps - flight->begin_ps;
    int64_t sum_ps = first == 0 ? 0 : log->arrived[first - 1].sum_ps[server];
    if (log->arrived[end - 1].sum_ps[server] == sum_ps) return; /* Gathers add nothing. */
    state->dma_ps += log->arrived[end - 1].sum_ps[server] - sum_ps;
    for (uint32_t i = first; i < end; i++) {
        if (i < log->message_count && log->arrived_at[i].at_ps - log->passage_ps >= edge_ps) {
            if (end <= log->message_count) break;
            i = log->message_count;
            sum_ps = i == 0 ? 0 : log->arrived[i - 1].sum_ps[server];
        }
        int64_t const work_ps = log->arrived[i].sum_ps[server] - sum_ps;
        sum_ps = log->arrived[i].sum_ps[server];
        if (work_ps > 0 && log->arrived[i].from_ps < edge_ps)
            server_passed(&replay->servers, server, chip, work_ps,
                          flight->begin_ps + log->arrived[i].from_ps,
                          flight->begin_ps + log->arrived_at[i].at_ps);
    }
}

/* Reads of messages that have left, from the last served to before `end`. */
static void leavings_serve(struct replay *replay, const struct flight *flight, uint32_t end,
                           uint32_t chip)
{
    const struct flight_leaving *left = flight->log->left;
    uint32_t const first = flight->left;
    uint32_t ways = flight->log->ways;
    server_at(&replay->servers, SERVER_HBM, chip)->dma_ps +=
        left[end - 1].sum_ps - (first == 0 ? 0 : left[first - 1].sum_ps);
    for (uint32_t i = end; i > first && ways != 0; i--) {
        const struct flight_leaving *last = &left[i - 1];
        if ((ways >> last->way & 1) == 0) continue;
        ways &= ~(1u << last->way);
        *reads_at(&replay->servers, last->way, chip) =
            (struct server_reads){.work_ps = last->reads.work_ps,
                                  .since_ps = flight->begin_ps + last->reads.since_ps,
                                  .until_ps = flight->begin_ps + last->reads.until_ps};
    }
}

void flight_serve(struct replay *replay, struct flight *flight, uint32_t chip, uint32_t arrived,
                  uint32_t left)
{
    if (arrived > flight->arrived) {
        arrivals_serve(replay, flight, arrived, SERVER_HBM, chip);
        arrivals_serve(replay, flight, arrived, SERVER_VPU, chip);
        flight->arrived = arrived;
    }
    if (left > flight->left) {
        leavings_serve(replay, flight, left, chip);
        flight->left = left;
    }
}

void flight_serve_until_now(struct replay *replay, uint32_t stream, uint32_t chip)
{
    struct flight_instant const *order = &replay->lanes.flights->order;
    struct flight *flight = flight_at(replay, stream, chip);
    const struct flight_log *log = flight->log;
    int64_t const now_ps = order->at_ps - flight->begin_ps;
    uint32_t const epoch = stream_at(replay, stream, chip)->epoch;
    uint32_t const arrived = passed_until(log->arrived_at, flight->arrived, log->arrived_count,
                                          now_ps, order->key, epoch);
    uint32_t const left =
        passed_until(log->left_at, flight->left, log->left_count, now_ps, order->key, epoch);
    if (arrived > flight->arrived || left > flight->left)
        flight_serve(replay, flight, chip, arrived, left);
}

void flights_serve_chip(struct replay *replay, uint32_t chip)
{
    for (uint32_t bits = replay->lanes.flights->of_chip[chip]; bits != 0; bits &= bits - 1)
        flight_serve_until_now(replay, (uint32_t)__builtin_ctz(bits), chip);
}

bool flight_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct flight_log *log = flight_log_to_fly(replay, stream, chip, now_ps);
    if (log == NULL) {
        if (replay->lanes.flights != NULL && flight_group_begin(replay, stream, chip, now_ps))
            return true;
        replay->tally.simulated++;
        return false;
    }
    struct flight *flight = flight_at(replay, stream, chip);
    *flight = (struct flight){.log = log, .begin_ps = now_ps};
    replay->lanes.flights->of_chip[chip] |= 1u << stream;
    replay->tally.posted++;
    for (uint32_t i = 0; i < log->link_count; i++)
        log->links[i].link->flown = log->links[i].waits_here;
    flight_serve(replay, flight, chip, 0, log->left_at_begin);
    engine_post(replay->engine, now_ps + log->length_ps,
                event_key_make(EVENT_COLLECTIVE_END, 0, stream, 0),
                channel_of(replay, EVENT_COLLECTIVE_END, stream), chip);
    return true;
}

void flight_leave(struct replay *replay, uint32_t stream, uint32_t chip)
{
    struct flight *flight = flight_at(replay, stream, chip);
    if (!flight->is_off)
        for (uint32_t i = 0; i < flight->log->link_count; i++)
            flight->log->links[i].link->flown = false;
    flight->log = NULL;
    replay->lanes.flights->of_chip[chip] &= ~(1u << stream);
}

static INLINED void digest_close(struct replay *replay, const struct flight_log *log,
                                 int64_t begin_ps, uint32_t epoch, uint32_t stream, uint32_t chip)
{
    if (replay->steps.max != 0) return;
    if (replay->recurrence.keeps && log->senders == NULL)
        recur_flight(replay, log, begin_ps, epoch, stream, chip);
    else if (replay->recurrence.keeps) /* The log is written anew for each collective. */
        for (uint32_t i = 0; i < log->message_count; i++)
            recur_digest_add(replay, begin_ps + log->arrived_at[i].at_ps,
                             key_in_epoch(log->arrived_at[i].key, epoch), log->senders[i]);
    if (replay->images == NULL) {
        replay->tally.digest += flight_digest(log, begin_ps, epoch, chip);
        return;
    }
    for (uint32_t i = 0; i < log->message_count; i++)
        prefix_digest_add(replay, begin_ps + log->arrived_at[i].at_ps,
                          key_in_epoch(log->arrived_at[i].key, epoch), chip);
}

static INLINED void links_close(struct replay *replay, const struct flight *flight)
{
    for (uint32_t i = 0; i < flight->log->link_count; i++) {
        const struct flight_link *at = &flight->log->links[i];
        struct link_state *link = at->link;
        link->busy_ps += at->after.busy_ps;
        link->bytes += at->after.bytes;
        link_waits_add(at->waits, at->added.waited_ps, at->added.messages);
        if (!at->waits_here) continue;
        link->free_ps = flight->begin_ps + at->after.free_ps;
        link->stream = at->after.stream;
        link->lane = at->after.lane;
        queued_note(replay, at->port, at->queued_ps);
    }
}

static INLINED void lanes_close(const struct plan_table *plan, const struct flight_log *log,
                                int64_t begin_ps, uint32_t chip)
{
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        struct lane_state *lane = &plan->lane[i].states[chip];
        int64_t const free_ps = lane->free_ps;
        *lane = log->lanes[i];
        lane->free_ps = lane->sends > 0 ? begin_ps + lane->free_ps : free_ps;
    }
}

void flight_digest_close(struct replay *replay, const struct flight_log *log, int64_t begin_ps,
                         uint32_t epoch, uint32_t stream, uint32_t chip)
{
    digest_close(replay, log, begin_ps, epoch, stream, chip);
}

void flight_links_close(struct replay *replay, const struct flight *flight)
{
    links_close(replay, flight);
}

void flight_lanes_close(const struct plan_table *plan, const struct flight_log *log,
                        int64_t begin_ps, uint32_t chip)
{
    lanes_close(plan, log, begin_ps, chip);
}

void flight_close(struct replay *replay, uint32_t stream, uint32_t chip)
{
    struct flight *flight = flight_at(replay, stream, chip);
    const struct flight_log *log = flight->log;
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    struct stream_state *state = stream_at(replay, stream, chip);
    flight_serve(replay, flight, chip, log->arrived_count, log->left_count);
    digest_close(replay, log, flight->begin_ps, state->epoch, stream, chip);
    if (!flight->is_off) links_close(replay, flight);
    lanes_close(plan, log, flight->begin_ps, chip);
    if (stretch_is_recorded(replay, chip)) {
        stretch_note_flight(replay, stream, chip, log, flight->begin_ps);
        stretch_note_events(replay, chip, (int64_t)log->event_count);
    }
    replay->tally.transfers += log->transfers;
    replay->tally.flown += log->event_count;
    engine_count(replay->engine, (int64_t)log->event_count);
    state->lanes_left = 0;
    state->phase = STREAM_ENDS;
    flight_leave(replay, stream, chip);
}

bool flight_void_take(struct replay *replay, uint64_t key, uint32_t chip, int64_t now_ps)
{
    if (replay->lanes.flights == NULL || event_key_kind(key) != EVENT_COLLECTIVE_END) return false;
    uint32_t const stream = event_key_stream(key);
    struct flight *flight = flight_at(replay, stream, chip);
    if (chip == 0 && replay->lanes.flights->timer_ps[stream] == now_ps) {
        replay->lanes.flights->timer_ps[stream] = 0;
        return true;
    }
    if (flight->void_ps != now_ps) return false;
    flight->void_ps = 0;
    return true;
}

uint32_t flights_end(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                     int64_t now_ps, uint32_t *ret_chips)
{
    struct flights *flights = replay->lanes.flights;
    uint32_t const stream = event_key_stream(key);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (flight_void_take(replay, key, chips[i], now_ps)) {
            engine_count(replay->engine, -1);
            if (stretch_is_recorded(replay, chips[i])) stretch_note_events(replay, chips[i], -1);
            if (flights->together[stream] != NULL && !flights->timed[stream])
                flight_group_land(replay, stream);
            continue;
        }
        if (flights->timed[stream])
            flight_group_close(replay, stream);
        else if (flight_at(replay, stream, chips[i])->log != NULL)
            flight_close(replay, stream, chips[i]);
        ret_chips[left++] = chips[i];
    }
    return left;
}

static void event_repost(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                         const uint32_t *chips, uint32_t count)
{
    struct replay *replay = owner;
    (void)engine;
    if (now_ps == replay->lanes.flights->order.at_ps) replay->lanes.flights->meets = true;
    for (uint32_t i = 0; i < count; i++)
        engine_post(replay->engine, now_ps, key, channel_of_key(replay, key), chips[i]);
}

void flight_landing_begin(struct replay *replay, uint32_t stream, int64_t begin_ps)
{
    struct flights *flights = replay->lanes.flights;
    if (replay->recurrence.watches) recur_land(replay, flights->order.key, stream);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        if (flight_at(replay, stream, chip)->log != NULL) {
            if (stretch_is_recorded(replay, chip)) stretch_drop(replay, chip);
            flight_serve_until_now(replay, stream, chip);
        }
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        flight_servers_save(replay, chip, &flights->aside[chip]);
    flights->landed_for = replay->engine;
    replay->engine = flights->engine;
    engine_restart(flights->engine, begin_ps);
}

void flight_landing_end(struct replay *replay)
{
    struct flights *flights = replay->lanes.flights;
    engine_run_before(flights->engine, flights->order.at_ps, flights->order.key);
    for (uint32_t chip = 0; chip < replay->chip_count; chip++)
        flight_servers_restore(replay, chip, &flights->aside[chip]);
    replay->engine = flights->landed_for;
    engine_count(replay->engine, (int64_t)engine_event_count(flights->engine));
    engine_drain(flights->engine, event_repost, replay);
}

/* Links that are written already are put aside while their messages are simulated, who find them as
 * they were at the begin. */
static void links_aside(const struct flight_log *log, int64_t begin_ps,
                        struct flight_link *ret_links)
{
    for (uint32_t i = 0; i < log->link_count; i++) {
        int64_t const held_ps = log->links[i].held_ps;
        ret_links[i].after = *log->links[i].link;
        *log->links[i].link = (struct link_state){.free_ps = held_ps > 0 ? begin_ps + held_ps : 0};
        if (log->links[i].waits != NULL) ret_links[i].added = *log->links[i].waits;
    }
}

static void links_back(const struct flight_log *log, const struct flight_link *links)
{
    for (uint32_t i = 0; i < log->link_count; i++) {
        *log->links[i].link = links[i].after;
        if (log->links[i].waits != NULL) *log->links[i].waits = links[i].added;
    }
}

/* Its handlers run up to now, as if it had never flown. What they ask of servers has been served.
 */
static void flight_land(struct replay *replay, uint32_t stream, uint32_t chip)
{
    struct flights *flights = replay->lanes.flights;
    if (flights->together[stream] != NULL) {
        flight_group_land(replay, stream);
        return;
    }
    struct flight *flight = flight_at(replay, stream, chip);
    struct flight_servers saved;
    struct flight_link links[FLIGHT_START_LINKS];
    bool const is_off = flight->is_off;
    const struct flight_log *log = flight->log;
    struct engine *engine = replay->engine;
    int64_t const begin_ps = flight->begin_ps;
    if (stretch_is_recorded(replay, chip)) stretch_drop(replay, chip);
    flight_serve_until_now(replay, stream, chip);
    flight->void_ps = begin_ps + flight->log->length_ps;
    flight_leave(replay, stream, chip);
    replay->tally.landed++;
    replay->tally.landed_off += is_off;
    flights->meets = false;
    flight_servers_save(replay, chip, &saved);
    if (is_off) links_aside(log, begin_ps, links);
    if (log->start != NULL) flight_reads_start(replay, chip, log->ways, log->start, begin_ps);
    replay->engine = flights->engine;
    engine_restart(flights->engine, begin_ps);
    transport_open(replay, stream, chip, begin_ps);
    transport_operand(replay, stream, chip, begin_ps);
    engine_run_before(flights->engine, flights->order.at_ps, flights->order.key);
    flight_servers_restore(replay, chip, &saved);
    if (is_off) links_back(log, links);
    replay->engine = engine;
    engine_count(engine, (int64_t)engine_event_count(flights->engine));
    engine_drain(flights->engine, event_repost, replay);
    /* At other instants no key decides what has been before. */
    if (replay->recurrence.watches && flights->meets)
        recur_land(replay, flights->order.key, stream);
}

void flights_land_link(struct replay *replay, const struct link_state *link)
{
    stretches_clear_link(replay, link);
    if (!link->flown) return;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++) {
        if (flight_group_uses(replay, stream, link)) {
            flight_group_land(replay, stream);
            return;
        }
        for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
            const struct flight_log *log = flight_at(replay, stream, chip)->log;
            if (log == NULL || flight_at(replay, stream, chip)->is_off) continue;
            for (uint32_t i = 0; i < log->link_count; i++)
                if (log->links[i].link == link && log->links[i].waits_here) {
                    flight_land(replay, stream, chip);
                    return;
                }
        }
    }
}

void flights_land_way(struct replay *replay, uint32_t chip, uint32_t way)
{
    for (uint32_t bits = replay->lanes.flights->of_chip[chip]; bits != 0; bits &= bits - 1) {
        uint32_t const stream = (uint32_t)__builtin_ctz(bits);
        const struct flight *flight = flight_at(replay, stream, chip);
        if ((flight->log->ways >> way & 1) != 0 && !flight->is_off)
            flight_land(replay, stream, chip);
    }
}

void flights_land_all(struct replay *replay)
{
    for (uint32_t chip = 0; replay->lanes.flights != NULL && chip < replay->chip_count; chip++)
        for (uint32_t bits = replay->lanes.flights->of_chip[chip]; bits != 0; bits &= bits - 1)
            flight_land(replay, (uint32_t)__builtin_ctz(bits), chip);
}

/* Messages of one collective that can be under way on a chip, and events of its lanes. */
static uint64_t pending_of(const struct plan_table *plan)
{
    uint64_t sum = 2;
    for (uint32_t i = 0; i < plan->lane_count; i++) sum += routed_bound(&plan->lane[i]) + 2;
    return sum;
}

/* Whether a plan's messages all name their receivers and take no turns among themselves, and nobody
 * waits for parts of it. */
static bool plan_may_fly(const struct replay *replay, const struct plan_table *plan)
{
    if (replay->program->stream[plan->stream].kind != PROGRAM_OP_COLLECTIVE) return false;
    if (plan->plan->part_count != 1 || plan->plan->counts_buckets) return false;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        if (lane->routed == NULL || lane->routed->tree != NULL || lane->posts || lane->takes_turns)
            return false;
    }
    return plan->lane_count > 0;
}

enum status flights_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    uint64_t const rows = (uint64_t)replay->stream_count * replay->chip_count;
    uint64_t const plan_rows = (uint64_t)replay->lanes.plan_count * replay->chip_count;
    uint64_t pending = 0;
    void *memory = NULL;
    if (replay->options->every_message || replay->options->record || replay->servers.may_exceed ||
        replay->prefetch.is_on || engine_is_reference(replay->engine))
        return STATUS_OK;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        if (plan_may_fly(replay, &replay->lanes.plans[i]) &&
            pending_of(&replay->lanes.plans[i]) > pending)
            pending = pending_of(&replay->lanes.plans[i]);
    if (pending == 0) return STATUS_OK;
    bool const together = replay->program->role_count == 1 && replay->chip_count > 1 &&
                          pending * replay->chip_count <= GROUP_PENDING_MAX;
    if (together) pending *= replay->chip_count;
    STATUS_TRY(arena_try(arena, 1, sizeof *replay->lanes.flights, &memory, reterr));
    struct flights *flights = memory;
    flights->arena = arena;
    STATUS_TRY(arena_try(arena, replay->lanes.plan_count, sizeof *flights->never, &memory, reterr));
    flights->never = memory;
    STATUS_TRY(arena_try(arena, plan_rows, sizeof *flights->states, &memory, reterr));
    flights->states = memory;
    STATUS_TRY(arena_try(arena, plan_rows, sizeof *flights->logs, &memory, reterr));
    flights->logs = memory;
    STATUS_TRY(arena_try(arena, rows, sizeof *flights->aloft, &memory, reterr));
    flights->aloft = memory;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof *flights->of_chip, &memory, reterr));
    flights->of_chip = memory;
    STATUS_TRY(arena_try(arena, plan_rows, sizeof *flights->variants, &memory, reterr));
    flights->variants = memory;
    STATUS_TRY(flight_groups_build(arena, replay, together, flights, reterr));
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        flights->never[i] = !plan_may_fly(replay, &replay->lanes.plans[i]);
    replay->lanes.flights = flights;
    return flight_engine_create(arena, replay, pending, &flights->engine, reterr);
}
