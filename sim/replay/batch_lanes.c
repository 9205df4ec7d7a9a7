/* Messages of alike chips: they arrive, and the next ones leave. */
#include <stddef.h>
#include <string.h>

#include "sim/replay/batch.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/lane_send.h"
#include "sim/replay/transport.h"

/* Whether two chips are at the same place of a lane, in what the lane alone says of it. */
static inline bool is_alike(const struct lane_state *state, const struct lane_state *other)
{
    return memcmp(&state->sent, &other->sent, sizeof *state - offsetof(struct lane_state, sent)) ==
           0;
}

/* Arrivals in another lane that a message waits for. */
struct before {
    const struct lane_state *states; /* [chip] */
    uint32_t wanted;
};

/* Lanes that a message may wait for, in nearly all plans. */
enum { BEFORE_MAX = 8 };

struct before_list {
    bool each; /* What the next message waits for has to be found for each chip. */
    uint32_t count;
    struct before lane[BEFORE_MAX];
};

/* The next message of the chips at one place. */
struct lane_next {
    uint32_t piece, number, chunks, units;
    uint32_t class;  /* Class of the link that it leaves by. */
    bool waits;      /* It cannot be sent before another arrival of its lane; or is under way. */
    bool is_checked; /* All have been sent: the lane may have ended. */
    bool has_before; /* It may wait for arrivals in other lanes. */
    bool is_last;
    bool all_alike; /* Each chip is known to be at that place. */
    bool goes_on;   /* The message behind it does not wait for another arrival. */
};

/* What the chips wait for in other lanes, if that is the same for all. */
static void before_find(const struct lane_table *lane, uint32_t chip, const struct lane_next *next,
                        struct before_list *list)
{
    for (uint32_t r = 0; r < lane->chain.before_count; r++) {
        const struct lane_range *range = &lane->chain.before[r];
        for (uint32_t i = range->first; i < range->first + (uint32_t)range->count; i++) {
            const struct lane_table *before = &lane->plan->lane[i];
            uint32_t const wanted =
                before_wanted(lane, range, before, chip, next->piece, next->number);
            list->each = list->each || !before->ring || list->count == BEFORE_MAX;
            if (wanted == 0 || list->each) continue;
            list->lane[list->count++] = (struct before){before->states, wanted};
        }
    }
}

static inline bool before_arrived(const struct lane_table *lane, const struct lane_next *next,
                                  const struct before_list *list, uint32_t chip)
{
    if (list->each) return transport_before_arrived(lane, chip, next->piece, next->number);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->lane[i].states[chip].counted < list->lane[i].wanted) return false;
    return true;
}

/* `state`: of a chip at that place. `list`: empty. */
static struct lane_next next_find(struct lane_table *lane, const struct lane_state *state,
                                  uint32_t chip, struct before_list *list)
{
    struct lane_next next = {.waits = true, .is_checked = state->sent == state->sends};
    if (next.is_checked || state->waiting) return next;
    uint32_t const position = position_of(lane, chip);
    const struct primitive_step *step =
        next_step(lane, position, state->sent, &next.piece, &next.number);
    if (state->counted < step_arrivals(lane, position, step, next.piece)) return next;
    next.waits = false;
    next.has_before = step_has_before(lane, state, next.number);
    next.chunks = step->chunks;
    next.units = step->units;
    next.is_last = state->sent + 1 == state->sends;
    if (next.has_before) before_find(lane, chip, &next, list);
    if (next.is_last) return next;
    uint32_t piece = 0, number = 0;
    step = next_step(lane, position, state->sent + 1, &piece, &number);
    next.goes_on = state->counted >= step_arrivals(lane, position, step, piece);
    return next;
}

/* Sends the next message of those chips that are at the place of `first`; others look for
 * themselves. */
static void next_send(struct replay *replay, struct lane_table *lane,
                      const struct lane_state *first, const struct lane_next *next,
                      const struct before_list *list, const uint32_t *chips, uint32_t count,
                      int64_t now_ps)
{
    const struct message_cost *cost = cost_at(lane, next->class, next->units);
    int64_t const depart_ps = now_ps + cost->link_ps;
    const uint8_t *classes = lane->route.classes;
    bool const asks_operand = lane->reduces && lane->chain.first;
    uint32_t const wanted = asks_operand ? operand_wanted(lane, next->piece, next->chunks) : 0;
    struct batch receivers;
    receivers.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        struct lane_state *state = &lane->states[chip];
        struct link_state *link = &lane->route.ports[chip].link;
        bool const alike = next->all_alike || is_alike(state, first);
        if (alike && next->waits) {
            if (next->is_checked) lane_check(lane, chip);
            continue;
        }
        if (!alike) {
            transport_lane_try(replay, lane, chip, now_ps);
            continue;
        }
        if (next->has_before && !before_arrived(lane, next, list, chip)) continue;
        if (asks_operand && !operand_ready(replay, lane, chip, wanted)) continue;
        if (state->free_ps > now_ps) {
            if (state->free_ps != lane_held_ps)
                transport_ready_post(replay, lane, chip, state->free_ps);
            continue;
        }
        if (link->free_ps > now_ps || (classes != NULL && first_class(lane, chip) != next->class)) {
            state->free_ps = message_send(replay, lane, chip, next->units, now_ps);
        } else {
            link_serve(link, lane, cost, depart_ps);
            message_is_read(replay, lane, chip, cost, now_ps, depart_ps);
            state->free_ps = depart_ps;
            batch_add(&receivers, lane->route.neighbours[chip]);
        }
        state->sent++;
        if (next->goes_on)
            transport_lane_try(replay, lane, chip, now_ps);
        else if (next->is_last)
            lane_check(lane, chip);
    }
    replay->tally.transfers += receivers.count;
    engine_post_many(replay->engine, depart_ps + cost->latency_ps, cost->arrive_key,
                     channel_of(replay, EVENT_ARRIVE, lane->number), receivers.chip,
                     receivers.count);
}

/* `alike`: the chips are known to be at one place of the lane. */
static void next_try(struct replay *replay, struct lane_table *lane, const uint32_t *chips,
                     uint32_t count, bool alike, int64_t now_ps)
{
    if (count == 0) return;
    struct lane_state const first = lane->states[chips[0]];
    struct before_list list; /* Its lanes are not cleared, which would cost as much as a chip. */
    list.each = false;
    list.count = 0;
    if (lane_takes_batches(replay, lane, count)) {
        struct lane_next next = next_find(lane, &first, chips[0], &list);
        next.all_alike = alike;
        next.class = first_class(lane, chips[0]);
        if (now_ps < TIME_PS_END - cost_at(lane, next.class, next.units)->link_ps) {
            next_send(replay, lane, &first, &next, &list, chips, count, now_ps);
            return;
        }
    }
    for (uint32_t i = 0; i < count; i++) transport_lane_try(replay, lane, chips[i], now_ps);
}

void lanes_try(struct replay *replay, struct lane_table *lane, const uint32_t *chips,
               uint32_t count, int64_t now_ps)
{
    next_try(replay, lane, chips, count, false, now_ps);
}

/* Tries lanes that wait for pieces of this lane. */
static void followers_try(struct replay *replay, const struct lane_table *lane,
                          const struct batch *batch, int64_t now_ps)
{
    for (uint32_t r = 0; r < lane->chain.behind_count; r++) {
        struct lane_range const range = lane->chain.behind[r];
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            struct lane_table *behind = &lane->plan->lane[i];
            if (!behind->ring)
                for (uint32_t k = 0; k < batch->count; k++)
                    lane_follow(replay, behind, batch->chip[k], now_ps);
            else if (behind->steps.send_count[0] > 0)
                lanes_try(replay, behind, batch->chip, batch->count, now_ps);
        }
    }
}

/* What follows the arrival of a message on chips that have counted it. `first`: their place then;
 * `alike`: nothing else has happened on them. */
static void arrived(struct replay *replay, struct lane_table *lane, const struct lane_state *first,
                    const struct batch *batch, bool alike, int64_t now_ps)
{
    const uint32_t *chips = batch->chip;
    next_try(replay, lane, chips, batch->count, alike, now_ps);
    if (arrival_is_followed(lane, first, chips[0], first->counted + 1))
        followers_try(replay, lane, batch, now_ps);
    if (first->counted + 1 < first->arrivals) return;
    for (uint32_t i = 0; i < batch->count; i++)
        if (lane->states[chips[i]].finished)
            transport_check_end(replay, lane->stream, chips[i], now_ps);
}

bool lanes_arrive(struct replay *replay, struct lane_table *lane, uint64_t key,
                  const uint32_t *chips, uint32_t count, int64_t now_ps)
{
    uint32_t const units = event_key_field(key, 0, KEY_UNITS_BITS);
    const struct message_cost *cost =
        cost_at(lane, event_key_field(key, KEY_CLASS_SHIFT, KEY_CLASS_BITS), units);
    const uint16_t *running = running_at(replay, lane->stream, 0);
    uint16_t const plan = (uint16_t)lane->plan->index;
    struct lane_state const first = lane->states[chips[0]];
    struct batch batch, woken;
    batch.count = woken.count = 0;
    if (running[chips[0]] != plan || first.counted == first.arrivals) return false;
    bool const may_be_void = promise_may_be_void(replay, key, now_ps);
    bool const counts = arrival_counts(lane, chips[0], first.counted + 1);
    bool const keeps = replay->recurrence.keeps, has_digest = !replay->breakdowns.digest_apart;
    uint64_t digest = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = chips[i];
        if (may_be_void && promise_void_take(replay, key, chip, now_ps)) continue;
        if (has_digest) digest += digest_record(now_ps, key, chip);
        if (keeps) recur_digest_add(replay, now_ps, key, chip);
        __builtin_prefetch(&lane->route.ports[chip], 1); /* For the next message: next_send(). */
        arrival_cost_single(&replay->servers, cost, chip, now_ps);
        if (running[chip] != plan || !is_alike(&lane->states[chip], &first)) {
            transport_message_land(replay, lane, chip, units, now_ps);
            continue;
        }
        batch_add(&batch, chip);
        lane->states[chip].counted++;
        if (!counts) continue;
        uint32_t const parts = arrival_parts(replay, lane, chip, units);
        if (parts == 0) continue;
        struct stream_state *stream = stream_at(replay, lane->stream, chip);
        stream->done += parts;
        if (stream_has_come(stream)) batch_add(&woken, chip);
    }
    replay->tally.digest += digest;
    streams_wake_many(replay, lane->stream, &woken, now_ps);
    if (batch.count > 0) arrived(replay, lane, &first, &batch, woken.count == 0, now_ps);
    return true;
}

void lanes_ready(struct replay *replay, uint32_t stream, uint32_t number, const uint32_t *chips,
                 uint32_t count, int64_t now_ps)
{
    const uint16_t *running = running_at(replay, stream, 0);
    uint16_t const index = running[chips[0]];
    const struct plan_table *plan = &replay->lanes.plans[index];
    struct lane_table *lane = &plan->lane[number - plan->lane_first];
    bool const together = lane_takes_batches(replay, lane, count);
    struct batch batch;
    batch.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!together || running[chips[i]] != index) {
            transport_lane_ready(replay, stream, number, chips[i], now_ps);
            continue;
        }
        lane->states[chips[i]].waiting = false;
        batch_add(&batch, chips[i]);
    }
    if (batch.count == 0) return;
    lanes_try(replay, lane, batch.chip, batch.count, now_ps);
    for (uint32_t i = 0; i < batch.count; i++)
        if (lane->states[batch.chip[i]].finished)
            transport_check_end(replay, stream, batch.chip[i], now_ps);
}

void lanes_operand(struct replay *replay, uint32_t stream, const uint32_t *chips, uint32_t count,
                   int64_t now_ps)
{
    const uint16_t *running = running_at(replay, stream, 0);
    struct batch batch;
    batch.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (count >= BATCH_CHIPS_MIN && running[chips[i]] == running[chips[0]])
            batch_add(&batch, chips[i]);
        else
            transport_operand(replay, stream, chips[i], now_ps);
    }
    if (batch.count == 0) return;
    const struct plan_table *plan = &replay->lanes.plans[running[chips[0]]];
    for (uint32_t i = 0; i < plan->lane_count; i++)
        lanes_try(replay, &plan->lane[i], batch.chip, batch.count, now_ps);
    for (uint32_t i = 0; i < batch.count; i++)
        transport_check_end(replay, stream, batch.chip[i], now_ps);
}
