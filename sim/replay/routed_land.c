/* Landing: messages that name their receivers, as they arrive: what is counted, and what is kept
 * for later. */
#include <string.h>

#include "sim/replay/arrival_cost.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight_log.h"
#include "sim/replay/fold_prefix.h"
#include "sim/replay/lane_send.h"
#include "sim/replay/p2p.h"
#include "sim/replay/routed_way.h"
#include "sim/replay/state.h"
#include "sim/replay/transport.h"
#include "sim/replay/tree.h"

/* The slots of the collective of an epoch at a receiver. */
static uint64_t *slots_of(const struct routed_lane *routed, uint32_t chip, uint32_t epoch)
{
    return &routed->slots[((uint64_t)chip * EPOCHS_AHEAD + epoch % EPOCHS_AHEAD) * routed->words];
}

/* Notes an arrival that is early, or not the next in the order of slots. */
static void slot_put(const struct lane_table *lane, uint32_t chip,
                     const struct routed_message *message)
{
    uint64_t *word = &slots_of(lane->routed, chip, message->epoch)[message->slot / 64];
    uint64_t const bit = UINT64_C(1) << message->slot % 64;
    SIM_ASSERT((*word & bit) == 0);
    *word |= bit;
}

/* Counts the arrivals in slots of which all before have been counted. */
static void slots_count(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    struct lane_state *state = &lane->states[chip];
    if (state->ahead == 0) return;
    const uint64_t *slots =
        slots_of(lane->routed, chip, stream_at(replay, lane->stream, chip)->epoch);
    while (state->ahead > 0 && slots[state->counted / 64] >> state->counted % 64 & 1) {
        state->ahead--;
        state->counted++;
    }
}

/* Parts of a collective that runs on which others may now count. */
static uint32_t parts_new(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                          uint32_t units)
{
    const struct plan *plan = lane->routed->plan;
    if (plan->counts_buckets) return units;
    if (plan->part_count == 1 || !lane->chain.last) return 0;
    return transport_parts_new(replay, lane, chip);
}

/* Takes an arrival into the books of a collective that runs. Most come in the order of their slots
 * and need none. */
static void absorb(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                   const struct routed_message *message)
{
    struct lane_state *state = &lane->states[chip];
    if (lane->routed->slots == NULL) {
        state->counted++;
    } else if (message->slot == state->counted) {
        state->counted++;
        slots_count(replay, lane, chip);
    } else {
        SIM_ASSERT(message->slot > state->counted);
        slot_put(lane, chip, message);
        state->ahead++;
    }
}

void routed_refuse_ahead(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    if (replay->refusal.status != STATUS_OK) return;
    (void)error_set(&replay->refusal, STATUS_LIMIT, "/run",
                    "chip %u is more than %d collectives of stream %s behind a chip that sends to "
                    "it; a run keeps messages for no more",
                    fold_machine_chip(replay->fold, replay->machine, chip), EPOCHS_AHEAD - 1,
                    replay->program->stream[lane->stream].name);
}

/* Whether a lane behind may go on when arrivals are counted up to `after`. */
static inline bool is_awaited(const struct lane_table *lane, uint32_t before, uint32_t after)
{
    if (lane->chain.behind_count == 0) return false;
    if (lane->chain.awaited == NULL) return true;
    while (before < after && !lane->chain.awaited[before + 1]) before++;
    return before < after;
}

/* A message has arrived whole at a chip. */
static void message_land(struct replay *replay, struct lane_table *lane, uint32_t chip,
                         const struct routed_message *message, int64_t now_ps)
{
    const struct routed_lane *routed = lane->routed;
    const struct stream_state *stream = stream_at(replay, lane->stream, chip);
    if (lane->posts) {
        p2p_arrive(replay, lane->stream, chip, now_ps);
        return;
    }
    uint32_t const ahead = (message->epoch - stream->epoch) & ((1u << KEY_EPOCH_BITS) - 1);
    if (ahead >= EPOCHS_AHEAD) {
        routed_refuse_ahead(replay, lane, chip);
        return;
    }
    if (ahead > 0) {
        if (routed->slots != NULL) slot_put(lane, chip, message);
        uint64_t const row = (uint64_t)chip * EPOCHS_AHEAD + message->epoch % EPOCHS_AHEAD;
        routed->ahead[row]++;
        routed->ahead_units[row] += message->cost->units;
        return;
    }
    SIM_ASSERT(*running_at(replay, lane->stream, chip) == lane->plan->index);
    uint32_t const before = lane->states[chip].counted;
    absorb(replay, lane, chip, message);
    uint32_t const parts = parts_new(replay, lane, chip, message->cost->units);
    if (parts > 0) streams_progress(replay, lane->stream, chip, parts, now_ps);
    if (lane->states[chip].counted == before) return;
    if (lane->waits) {
        const struct plan_item *item = lane->item;
        for (uint32_t i = 0; i < lane->primitive->lane_count; i++)
            if ((routed->wakes & lane_bit(i)) != 0)
                transport_lane_try(replay, &lane->plan->lane[item->lane_first + i], chip, now_ps);
    }
    lane_check(lane, chip);
    if (is_awaited(lane, before, lane->states[chip].counted))
        transport_followers_try(replay, lane, chip, now_ps);
    if (lane->states[chip].finished) transport_check_end(replay, lane->stream, chip, now_ps);
}

uint32_t routed_begin(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    const struct routed_lane *routed = lane->routed;
    uint64_t const row =
        (uint64_t)chip * EPOCHS_AHEAD + stream_at(replay, lane->stream, chip)->epoch % EPOCHS_AHEAD;
    uint32_t const count = routed->ahead[row], units = routed->ahead_units[row];
    routed->ahead[row] = 0;
    routed->ahead_units[row] = 0;
    if (count == 0) return 0;
    if (routed->slots != NULL)
        lane->states[chip].ahead = count;
    else
        lane->states[chip].counted = count;
    slots_count(replay, lane, chip);
    return parts_new(replay, lane, chip, units);
}

void routed_end(struct replay *replay, const struct lane_table *lane, uint32_t chip)
{
    const struct routed_lane *routed = lane->routed;
    if (routed->slots == NULL) return;
    uint32_t const row = stream_at(replay, lane->stream, chip)->epoch % EPOCHS_AHEAD;
    memset(&routed->slots[((uint64_t)chip * EPOCHS_AHEAD + row) * routed->words], 0,
           routed->words * sizeof *routed->slots);
}

/* The message of an arrival, and the chip where it is. */
static inline uint32_t message_receive(struct replay *replay, struct lane_table *lane, uint64_t key,
                                       uint32_t payload, struct routed_message *message)
{
    if (lane->routed->guide == ROUTED_BY_TREE) {
        tree_message(replay, lane, key, payload, message);
        return payload;
    }
    return routed_receiver(replay, lane, payload, message);
}

/* A message's own time on its way. */
static int64_t own_ps(struct replay *replay, struct lane_table *lane, uint32_t sender,
                      struct routed_message *message)
{
    if (lane->routed->guide == ROUTED_BY_TREE) return tree_pace_ps(lane, message->cost);
    if (lane->routed->guide == ROUTED_BY_AXIS)
        routed_address_along(replay, lane->routed, sender, message);
    return routed_slowest_ps(replay, lane, sender, message);
}

void routed_arrive(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                   int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, key);
    struct routed_message message;
    if (lane->routed->guide != ROUTED_BY_TREE) routed_open(replay, lane, key, &message);
    for (uint32_t i = 0; i < count; i++) {
        if (promise_is_void(replay, key, chips[i], 0)) continue;
        uint32_t const chip = message_receive(replay, lane, key, chips[i], &message);
        if (flight_is_recorded(replay) && flight_record_leads_away(replay, chip)) continue;
        stretch_clear(replay, chip);
        chain_clear(replay, chip);
        digest_add(replay, now_ps, key, chips[i]);
        const struct message_cost *cost = &message.cost->memory;
        bool const looks_back =
            arrival_cost_looks_back(&replay->servers, cost, chip, message.cost->slowest_ps, now_ps);
        bool const is_recorded = flight_is_recorded(replay);
        int64_t const link_ps =
            looks_back || is_recorded ? own_ps(replay, lane, chips[i], &message) : 0;
        int64_t const land_ps = arrival_cost_ps(&replay->servers, cost, link_ps, chip, now_ps);
        if (is_recorded) flight_record_arrival(replay, chip, now_ps, link_ps);
        if (land_ps > now_ps)
            engine_post(replay->engine, land_ps, key | (uint64_t)EVENT_LAND << KEY_KIND_SHIFT,
                        channel_of(replay, EVENT_LAND, lane->number), chips[i]);
        else
            message_land(replay, lane, chip, &message, now_ps);
    }
}

void routed_land(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                 int64_t now_ps)
{
    struct lane_table *lane = routed_lane_of(replay, key);
    struct routed_message message;
    if (lane->routed->guide != ROUTED_BY_TREE) routed_open(replay, lane, key, &message);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = message_receive(replay, lane, key, chips[i], &message);
        stretch_clear(replay, chip);
        chain_clear(replay, chip);
        message_land(replay, lane, chip, &message, now_ps);
    }
}
