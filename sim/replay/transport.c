/*
 * Collectives as they travel: lanes, links, and HBM's share of them.
 *
 * A lane sends its messages one at a time: the next when what it forwards has arrived, when the
 * data it starts from are there, and when its last message has left; where a link leads to each
 * other chip, it sends without waiting for that. Arrivals are counted, so a
 * neighbour that is ahead needs no mailbox: its messages are absorbed when the op they belong to
 * begins here.
 *
 * Most of a run is spent here. What a batch of chips has in common is looked up once.
 */
#include "sim/replay/transport.h"
#include "sim/collective/msccl.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/batch.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/lane_send.h"
#include "sim/replay/message.h"
#include "sim/replay/p2p.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

bool transport_before_arrived(const struct lane_table *lane, uint32_t chip, uint32_t portion,
                              uint32_t number)
{
    for (uint32_t r = 0; r < lane->chain.before_count; r++) {
        const struct lane_range *range = &lane->chain.before[r];
        for (uint32_t i = range->first; i < range->first + (uint32_t)range->count; i++) {
            const struct lane_table *before = &lane->plan->lane[i];
            uint32_t const wanted = before_wanted(lane, range, before, chip, portion, number);
            /* The state of a lane without arrivals here is far off. */
            if (wanted > 0 && before->states[chip].counted < wanted) return false;
        }
    }
    return true;
}

/* Whether a step of a routed primitive has to wait: for arrivals of its own lane, or of another.
 * Unlike on a ring, one that waits for none in its piece does not wait for the pieces before. */
static bool routed_waits(const struct lane_table *lane, uint32_t chip,
                         const struct primitive_step *step, uint32_t piece)
{
    if (step->arrivals == 0) return false;
    const struct lane_table *other = &lane->plan->lane[lane->item->lane_first + step->wait_lane];
    uint32_t const each = other->steps.arrival_count[position_of(other, chip)];
    return other->states[chip].counted < step->arrivals + piece * each;
}

void transport_ready_post(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                          int64_t at_ps)
{
    lane->states[chip].waiting = true;
    engine_post(
        replay->engine, at_ps,
        event_key_make(EVENT_LANE_READY, lane->route.leg[0].port, lane->stream, lane->number),
        channel_of(replay, EVENT_LANE_READY, lane->number), chip);
}

/* Whether a message of a script has to wait: for what arrived in other lanes, or left in them. Who
 * waits for the end of a message that is leaving comes back then. */
static bool msccl_message_waits(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                                int64_t now_ps)
{
    const struct msccl_script *script = lane->plan->plan->script;
    uint32_t count = 0;
    const struct msccl_wait *wait =
        msccl_waits(script, lane->lane, position_of(lane, chip), lane->states[chip].sent, &count);
    int64_t left_ps = now_ps;
    for (uint32_t i = 0; i < count; i++) {
        const struct lane_state *other =
            &lane->plan->lane[lane->item->lane_first + wait[i].lane].states[chip];
        if ((wait[i].left ? other->sent : other->counted) < wait[i].count) return true;
        if (!wait[i].left || other->sent != wait[i].count) continue;
        if (other->free_ps == lane_held_ps) return true;
        if (other->free_ps > left_ps) left_ps = other->free_ps;
    }
    if (left_ps == now_ps) return false;
    transport_ready_post(replay, lane, chip, left_ps);
    return true;
}

/* A message of a script has left: others of the chip may have waited for that. */
static void msccl_others_try(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                             int64_t now_ps)
{
    for (uint32_t i = 0; i < lane->primitive->lane_count; i++) {
        struct lane_table *other = &lane->plan->lane[lane->item->lane_first + i];
        if (other != lane) transport_lane_try(replay, other, chip, now_ps);
    }
}

/* Sends what a light lane may send behind its last message. */
static __attribute__((noinline)) void light_more(struct replay *replay, struct lane_table *lane,
                                                 uint32_t chip, int64_t now_ps)
{
    struct lane_state *state = &lane->states[chip];
    while (state->sent < state->sends) {
        const struct light_step *step = &lane->steps.light[state->sent];
        if (!light_may_send(replay, lane, state, step, chip, now_ps)) return;
        state->free_ps = light_send(replay, lane, chip, step->units, now_ps);
        state->sent++;
    }
    lane_check(lane, chip);
}

/* Sends what a light lane may send now: mostly one message, or none, so that is no loop. */
static inline __attribute__((always_inline)) void
light_try(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps)
{
    struct lane_state *state = &lane->states[chip];
    if (state->sent < state->sends) {
        const struct light_step *step = &lane->steps.light[state->sent];
        if (!light_may_send(replay, lane, state, step, chip, now_ps)) return;
        state->free_ps = light_send(replay, lane, chip, step->units, now_ps);
        state->sent++;
        if (state->sent < state->sends) {
            if (state->counted >= step[1].arrivals) light_more(replay, lane, chip, now_ps);
            return;
        }
    }
    lane_check(lane, chip);
}

/* Sends what any lane may send now. */
static void lane_try(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps)
{
    struct lane_state *state = &lane->states[chip];
    bool const is_script = lane->plan->plan->script != NULL;
    uint32_t const position = position_of(lane, chip);
    while (state->sent < state->sends && !state->waiting) {
        uint32_t piece = 0, number = 0;
        const struct primitive_step *step = next_step(lane, position, state->sent, &piece, &number);
        if (lane->routed == NULL) {
            if (state->counted < step_arrivals(lane, position, step, piece)) return;
        } else if (is_script ? msccl_message_waits(replay, lane, chip, now_ps)
                             : routed_waits(lane, chip, step, piece)) {
            return;
        }
        if (step_has_before(lane, state, number) &&
            !transport_before_arrived(lane, chip, piece, number))
            return;
        if (lane->reduces && lane->chain.first &&
            !operand_ready(replay, lane, chip, operand_wanted(lane, piece, step->chunks)))
            return;
        if (state->free_ps > now_ps && !(lane->abreast && state->sent > 0)) {
            if (state->free_ps != lane_held_ps)
                transport_ready_post(replay, lane, chip, state->free_ps);
            return;
        }
        if (lane->routed != NULL) {
            int64_t const left_ps = routed_send(replay, lane, chip, piece, number, now_ps);
            if (!lane->abreast || state->free_ps < left_ps) state->free_ps = left_ps;
        } else {
            state->free_ps = message_send(replay, lane, chip, step->units, now_ps);
        }
        state->sent++;
        if (is_script) msccl_others_try(replay, lane, chip, now_ps);
    }
    lane_check(lane, chip);
}

void transport_lane_try(struct replay *replay, struct lane_table *lane, uint32_t chip,
                        int64_t now_ps)
{
    if (lane->steps.light != NULL)
        light_try(replay, lane, chip, now_ps);
    else
        lane_try(replay, lane, chip, now_ps);
}

void transport_lane_ready(struct replay *replay, uint32_t stream, uint32_t number, uint32_t chip,
                          int64_t now_ps)
{
    struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    struct lane_table *lane = &plan->lane[number - plan->lane_first];
    lane->states[chip].waiting = false;
    transport_lane_try(replay, lane, chip, now_ps);
    if (lane->states[chip].finished) transport_check_end(replay, stream, chip, now_ps);
}

void transport_left(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps)
{
    transport_lane_try(replay, lane, chip, now_ps);
    if (lane->plan->plan->script != NULL) msccl_others_try(replay, lane, chip, now_ps);
    transport_check_end(replay, lane->stream, chip, now_ps);
}

/* Pieces of the whole array that every order has completed on this chip. */
static uint32_t pieces_done(const struct plan_table *plan, uint32_t chip)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        if (!lane->chain.last) continue;
        uint32_t const each = lane->steps.arrival_count[position_of(lane, chip)];
        uint32_t const counted = lane->states[chip].counted;
        uint32_t const pieces = (each == 0 ? lane->piece_count : counted / each) / lane->portions;
        least = pieces < least ? pieces : least;
    }
    return least;
}

uint32_t transport_parts_new(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    const struct stream_state *stream = stream_at(replay, lane->stream, chip);
    uint32_t const pieces = pieces_done(lane->plan, chip);
    uint32_t const known = stream->done - stream->op_first;
    return pieces > known ? pieces - known : 0;
}

/* Units of the `index`-th message to arrive: what the neighbour sent in its step of that number. */
static uint32_t arrival_units(const struct lane_table *lane, uint32_t chip, uint32_t index)
{
    uint32_t position = position_of(lane, chip);
    uint32_t const step = index % lane->steps.arrival_count[position];
    if (!lane->ring) position += lane->lane == 0 ? lane->size - 1 : 1;
    if (position >= lane->size) position -= lane->size;
    return lane_step(lane, position, step).units;
}

/* Whether HBM or the VPU is behind where a message lands: then EVENT_LAND will say when not. */
static inline bool landing_delayed(struct replay *replay, const struct message_cost *cost,
                                   uint32_t chip, uint64_t key, int64_t now_ps)
{
    int64_t const land_ps = arrival_cost_ps(&replay->servers, cost, cost->link_ps, chip, now_ps);
    if (land_ps <= now_ps) return false;
    uint32_t const lane = event_key_lane(key);
    uint64_t const kind = (uint64_t)(EVENT_LAND ^ EVENT_ARRIVE) << KEY_KIND_SHIFT;
    engine_post(replay->engine, land_ps, key ^ kind, channel_of(replay, EVENT_LAND, lane), chip);
    return true;
}

void transport_followers_try(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                             int64_t now_ps)
{
    for (uint32_t r = 0; r < lane->chain.behind_count; r++) {
        struct lane_range const range = lane->chain.behind[r];
        for (uint32_t i = range.first; i < range.first + range.count; i++)
            lane_follow(replay, &lane->plan->lane[i], chip, now_ps);
    }
}

/* What follows the arrival of a message that the running op has counted. */
static inline void arrival_follow(struct replay *replay, const struct lane_table *lane,
                                  uint32_t chip, int64_t now_ps)
{
    const struct lane_state *state = &lane->states[chip];
    if (arrival_is_followed(lane, state, chip, state->counted))
        transport_followers_try(replay, lane, chip, now_ps);
    if (state->finished) transport_check_end(replay, lane->stream, chip, now_ps);
}

void transport_message_land(struct replay *replay, struct lane_table *lane, uint32_t chip,
                            uint32_t units, int64_t now_ps)
{
    struct lane_state *state = &lane->states[chip];
    if (lane->owner.running[chip] != lane->plan->index || state->counted == state->arrivals) {
        if (lane->posts)
            p2p_arrive(replay, lane->stream, chip, now_ps);
        else
            state->ahead++; /* It belongs to an op still to come. */
        return;
    }
    uint32_t const parts = lane_absorb(replay, lane, chip, units);
    if (parts > 0) streams_progress(replay, lane->stream, chip, parts, now_ps);
    transport_lane_try(replay, lane, chip, now_ps);
    arrival_follow(replay, lane, chip, now_ps);
}

/* A message of a light lane has arrived, and is in the digest. */
static inline __attribute__((always_inline)) void
light_land(struct replay *replay, struct lane_table *lane, const struct message_cost *cost,
           uint64_t key, uint32_t chip, int64_t now_ps)
{
    struct lane_state *state = &lane->states[chip];
    arrival_cost_single(&replay->servers, cost, chip, now_ps);
    if (lane->owner.running[chip] != lane->plan->index || state->counted == state->arrivals) {
        state->ahead++; /* It belongs to an op still to come. */
        return;
    }
    state->counted++;
    if (arrival_counts(lane, chip, state->counted)) {
        uint32_t const units = event_key_field(key, 0, KEY_UNITS_BITS);
        uint32_t const parts = arrival_parts(replay, lane, chip, units);
        if (parts > 0) streams_progress(replay, lane->stream, chip, parts, now_ps);
    }
    light_try(replay, lane, chip, now_ps);
    arrival_follow(replay, lane, chip, now_ps);
}

/* Not inlined, so that what nearly every message of a few chips does has the registers to itself.
 */
static __attribute__((noinline)) void light_arrive(struct replay *replay, struct lane_table *lane,
                                                   const struct message_cost *cost, uint64_t key,
                                                   const uint32_t *chips, uint32_t count,
                                                   int64_t now_ps)
{
    for (uint32_t i = 0; i < count; i++) {
        if (promise_is_void(replay, key, chips[i], now_ps)) continue;
        digest_add(replay, now_ps, key, chips[i]);
        light_land(replay, lane, cost, key, chips[i], now_ps);
    }
}

void transport_land(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                    int64_t now_ps)
{
    struct lane_table *lane = lane_of_key(replay, key);
    uint32_t const units = event_key_field(key, 0, KEY_UNITS_BITS);
    for (uint32_t i = 0; i < count; i++)
        transport_message_land(replay, lane, chips[i], units, now_ps);
}

/* Whether the rest of the message has still to come. */
static inline bool arrival_is_void(struct replay *replay, const struct lane_table *lane,
                                   uint64_t key, uint32_t chip, int64_t now_ps)
{
    /* Over several links its name has its number. */
    return promise_is_void(replay, key, chip, lane->route.passed == NULL ? now_ps : 0);
}

/* Messages have arrived that may go together, or in another lane than a light one. */
static __attribute__((noinline)) void
messages_arrive(struct replay *replay, struct lane_table *lane, const struct message_cost *cost,
                uint64_t key, const uint32_t *chips, uint32_t count, int64_t now_ps)
{
    uint32_t const units = event_key_field(key, 0, KEY_UNITS_BITS);
    uint64_t const unnumbered = key & ~arrival_number(UINT32_MAX);
    if (lane_takes_batches(replay, lane, count) &&
        lanes_arrive(replay, lane, unnumbered, chips, count, now_ps))
        return;
    if (lane->steps.light != NULL) {
        light_arrive(replay, lane, cost, key, chips, count, now_ps);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (arrival_is_void(replay, lane, key, chips[i], now_ps)) continue;
        digest_add(replay, now_ps, unnumbered, chips[i]);
        if (lane->route.single)
            arrival_cost_single(&replay->servers, cost, chips[i], now_ps);
        else if (landing_delayed(replay, cost, chips[i], key, now_ps))
            continue;
        transport_message_land(replay, lane, chips[i], units, now_ps);
    }
}

void transport_arrive(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                      int64_t now_ps)
{
    struct lane_table *lane = lane_of_key(replay, key);
    const struct message_cost *cost =
        cost_at(lane, event_key_field(key, KEY_CLASS_SHIFT, KEY_CLASS_BITS),
                event_key_field(key, 0, KEY_UNITS_BITS));
    if (count < BATCH_CHIPS_MIN && lane->steps.light != NULL)
        light_arrive(replay, lane, cost, key, chips, count, now_ps);
    else
        messages_arrive(replay, lane, cost, key, chips, count, now_ps);
}

/* Chips whose state is loaded at once. */
enum { LOADED = 16 };

/* A load: a processor may leave out what it is only asked to prefetch. */
static inline void line_load(const void *line)
{
    (void)*(const volatile char *)line;
}

/* Loads what messages of the lane will touch on several chips. Streams are asked where others count
 * on the messages, or where these read what is computed. */
static inline void light_load(const struct replay *replay, const struct lane_table *lane,
                              const uint32_t *chips, uint32_t count)
{
    bool const asks = lane->chain.counts || (lane->reduces && lane->chain.first);
    for (uint32_t i = 0; i < count; i++) {
        line_load(&lane->states[chips[i]]);
        line_load(&lane->owner.running[chips[i]]);
        line_load(&lane->route.ports[chips[i]]);
        line_load(&replay->servers.states[chips[i]]);
    }
    for (uint32_t i = 0; asks && i < count; i++) {
        line_load(&lane->owner.states[chips[i]]);
        line_load(&replay->streams.states[chips[i]]);
    }
}

void transport_ahead(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count)
{
    const struct lane_table *lane = lane_of_key(replay, key);
    if (lane->steps.light == NULL) return;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&lane->states[chips[i]], 1);
        __builtin_prefetch(&lane->route.ports[chips[i]], 1);
        __builtin_prefetch(&replay->servers.states[chips[i]], 1);
    }
}

void transport_window(struct replay *replay, uint64_t key, const uint32_t *chips,
                      const int64_t *at_ps, uint32_t count)
{
    struct lane_table *lane = lane_of_key(replay, key);
    const struct message_cost *cost =
        cost_at(lane, event_key_field(key, KEY_CLASS_SHIFT, KEY_CLASS_BITS),
                event_key_field(key, 0, KEY_UNITS_BITS));
    if (lane->steps.light == NULL) {
        for (uint32_t i = 0; i < count; i++)
            messages_arrive(replay, lane, cost, key, &chips[i], 1, at_ps[i]);
        return;
    }
    bool const may_be_void = replay->ports != NULL; /* A message before may make one void. */
    for (uint32_t i = 0; i < count; i++) {
        if (i % LOADED == 0)
            light_load(replay, lane, &chips[i], count - i < LOADED ? count - i : LOADED);
        uint32_t const chip = chips[i];
        if (may_be_void && promise_is_void(replay, key, chip, at_ps[i])) continue;
        replay->tally.digest += digest_record(at_ps[i], key, chip);
        light_land(replay, lane, cost, key, chip, at_ps[i]);
    }
}

/* Around a root most chips have a part in one item of an order only: it need not ask the others. */
static void rooted_begin(const struct plan_table *plan, uint32_t chip)
{
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        struct lane_state *own = &lane->states[chip];
        own->alone_before = own->alone_behind = true;
        for (uint32_t r = 0; r < lane->chain.before_count; r++)
            for (uint32_t j = 0; j < lane->chain.before[r].count; j++) {
                const struct lane_table *other = &plan->lane[lane->chain.before[r].first + j];
                if (other->steps.arrival_count[position_of(other, chip)] > 0)
                    own->alone_before = false;
            }
        for (uint32_t r = 0; r < lane->chain.behind_count; r++)
            for (uint32_t j = 0; j < lane->chain.behind[r].count; j++) {
                const struct lane_table *other = &plan->lane[lane->chain.behind[r].first + j];
                if (other->steps.send_count[position_of(other, chip)] > 0)
                    own->alone_behind = false;
            }
    }
}

void transport_open(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    struct stream_state *state = stream_at(replay, stream, chip);
    int64_t const begin_ps = plan->plan->protocol.begin_ps;
    state->lanes_left = (uint8_t)plan->lane_count;
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        uint32_t const position = position_of(lane, chip);
        struct lane_state *own = &lane->states[chip];
        own->sends = lane->steps.send_count[position] * lane->piece_count;
        own->arrivals = lane->posts ? 0 : lane->steps.arrival_count[position] * lane->piece_count;
        own->sent = 0;
        own->counted = 0;
        own->finished = own->alone_before = own->alone_behind = false;
        if (begin_ps > 0 && own->sends > 0 && own->free_ps < now_ps + begin_ps)
            own->free_ps = now_ps + begin_ps;
    }
    if (collective_is_rooted(plan->plan->kind)) rooted_begin(plan, chip);
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const struct lane_table *lane = &plan->lane[i];
        struct lane_state *own = &lane->states[chip];
        if (lane->posts) break;
        if (lane->routed != NULL) {
            state->done += routed_begin(replay, lane, chip);
            continue;
        }
        for (; own->ahead > 0 && own->counted < own->arrivals; own->ahead--)
            state->done += lane_absorb(replay, lane, chip, arrival_units(lane, chip, own->counted));
    }
    if (plan->plan->counts_buckets) state->done += plan->plan->chunk_parts; /* The own chunk. */
}

void transport_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    transport_open(replay, stream, chip, now_ps);
    transport_operand(replay, stream, chip, now_ps);
    streams_progress(replay, stream, chip, 0, now_ps);
}

void transport_operand(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps)
{
    const struct plan_table *plan = &replay->lanes.plans[*running_at(replay, stream, chip)];
    for (uint32_t i = 0; i < plan->lane_count; i++)
        transport_lane_try(replay, &plan->lane[i], chip, now_ps);
    transport_check_end(replay, stream, chip, now_ps);
}
