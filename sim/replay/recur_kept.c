#include "sim/replay/recur_kept.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/replay/flight.h"
#include "sim/replay/recur.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

enum { EVENT_KINDS = 8, CHIP_BYTES_MAX = 5, MET_MAX = 1 << 15 };

/* Events of a period that are kept at most; their instants and keys; collectives and ops. */
static const uint64_t events_max = UINT64_C(1) << 22, entries_max = UINT64_C(1) << 20;

struct kept_entry {
    int64_t at_ps;
    uint64_t key;
    uint64_t chips_first; /* Byte. */
};

/* A collective that flew. */
struct kept_flight {
    const struct flight_log *log;
    int64_t begin_ps;
    uint32_t chip;
    uint8_t stream, epoch;
};

/* An op of compute that has ended on the chip whose passes are counted. */
struct kept_pass {
    int64_t counted_ps, begin_ps, end_ps;
    uint32_t slot;
    uint16_t position, role;
};

/* The last event of a kind of a lane, for epochs that meet. */
struct met {
    int64_t at_ps;
    uint32_t epoch;
};

/* Whether a tier's cable is of chips of several roles. */
static bool roles_share_tier(const struct replay *replay, const struct tier_links *tier,
                             uint32_t *role_of_unit)
{
    for (uint32_t unit = 0; unit < tier->unit_count; unit++) role_of_unit[unit] = UINT32_MAX;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t *role = &role_of_unit[tier->unit[chip]];
        if (*role != UINT32_MAX && *role != replay->chips[chip].role) return true;
        *role = replay->chips[chip].role;
    }
    return false;
}

/* Whether a line of links of the grid leads from chips of one role to those of another. */
static bool roles_share_grid(const struct replay *replay)
{
    uint32_t stride = 0;
    for (uint32_t axis = 0; axis < replay->machine->axis_count; axis++)
        if (replay->machine->axis_level[axis] == LEVEL_NONE &&
            program_roles_along(replay->program, axis, &stride) > 1)
            return true;
    return false;
}

/* Whether chips of several roles share some link. Else a link is one chip's, or of chips of one
 * role: a collective's messages stay among these. */
static enum status roles_share_links(struct arena *arena, const struct replay *replay,
                                     bool *ret_share, struct error *reterr)
{
    *ret_share = roles_share_grid(replay);
    if (replay->program->role_count == 1) return STATUS_OK;
    for (uint32_t index = 0; index < replay->routes->level_count && !*ret_share; index++)
        for (uint32_t t = 0; t < replay->machine->level[index].tier_count && !*ret_share; t++) {
            const struct tier_links *tier = &replay->routes->level[index].tier[t];
            void *memory = NULL;
            if (!tier->queues) continue;
            STATUS_TRY(arena_try(arena, tier->unit_count, sizeof(uint32_t), &memory, reterr));
            *ret_share = roles_share_tier(replay, tier, memory);
        }
    return STATUS_OK;
}

enum status recur_kept_build(struct arena *arena, const struct replay *replay,
                             struct recur_kept *ret_kept, struct error *reterr)
{
    void *memory = NULL;
    uint64_t lanes = 0;
    STATUS_TRY(
        arena_try(arena, replay->lanes.plan_count + 1ull, sizeof(uint32_t), &memory, reterr));
    ret_kept->met_first = memory;
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++) {
        ret_kept->met_first[i] = (uint32_t)lanes;
        lanes += replay->lanes.plans[i].lane_count;
    }
    bool share = false;
    STATUS_TRY(roles_share_links(arena, replay, &share, reterr));
    uint64_t const roles = share ? 1 : replay->program->role_count;
    ret_kept->met_roles = lanes * roles > MET_MAX ? 1 : (uint32_t)roles;
    ret_kept->met_count = (lanes + 1) * ret_kept->met_roles * EVENT_KINDS;
    STATUS_TRY(arena_try(arena, ret_kept->met_count, sizeof(struct met), &memory, reterr));
    ret_kept->met = memory;
    STATUS_TRY(arena_try_unset(arena, RECUR_MEETS, sizeof *ret_kept->meets, &memory, reterr));
    ret_kept->meets = memory;
    return STATUS_OK;
}

bool recur_met_share(const struct recur_kept *from, struct recur_kept *to)
{
    if (from->met_count != to->met_count) return false;
    memcpy(to->met, from->met, to->met_count * sizeof *to->met);
    memcpy(to->meets, from->meets, RECUR_MEETS * sizeof *to->meets);
    return true;
}

/* Twice as much each time, so that all that was ever taken is little more than the last. */
static bool room_take(struct arena *arena, struct recur_kept *kept, uint64_t events)
{
    uint64_t const wanted = events > 2 * kept->room ? events : 2 * kept->room;
    uint64_t const room = wanted < events_max ? wanted : events_max;
    uint64_t const entries = room < entries_max ? room : entries_max;
    struct error error;
    void *memory[4] = {NULL};
    kept->room = kept->entry_room = 0;
    if (arena_try_unset(arena, room, CHIP_BYTES_MAX, &memory[0], &error) != STATUS_OK ||
        arena_try_unset(arena, entries, sizeof *kept->entries, &memory[1], &error) != STATUS_OK ||
        arena_try_unset(arena, entries, sizeof *kept->flights, &memory[2], &error) != STATUS_OK ||
        arena_try_unset(arena, entries, sizeof *kept->passes, &memory[3], &error) != STATUS_OK)
        return false;
    kept->chips = memory[0];
    kept->entries = memory[1];
    kept->flights = memory[2];
    kept->passes = memory[3];
    kept->room = room;
    kept->entry_room = entries;
    return true;
}

bool recur_kept_begin(struct replay *replay, uint64_t events)
{
    struct recur *recur = replay->recurrence.search;
    struct recur_kept *kept = &recur->kept;
    kept->entry_count = kept->chips_bytes = kept->flight_count = kept->pass_count = 0;
    kept->chip_last = 0;
    kept->failed = false;
    return events <= kept->room || kept->room == events_max ||
           room_take(recur->arena, kept, events);
}

static void epochs_meet(struct replay *replay, struct met_pair pair)
{
    struct recur *recur = replay->recurrence.search;
    recur->kept.failed = true;
    recur->kept.meets[recur->met_count++ % RECUR_MEETS] = pair;
}

void recur_event(struct replay *replay, int64_t now_ps, uint64_t key, const uint32_t *chips,
                 uint32_t count)
{
    struct recur_kept *kept = &replay->recurrence.search->kept;
    if (!event_key_names_epoch(key)) return;
    const struct lane_table *lane = routed_lane_of(replay, key);
    uint64_t const index = kept->met_first[lane->plan->index] + (uint64_t)(lane - lane->plan->lane);
    uint32_t const epoch = event_key_field(key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const role = kept->met_roles == 1 ? 0 : replay->chips[chips[i]].role;
        struct met *met =
            &kept->met[(index * kept->met_roles + role) * EVENT_KINDS + event_key_kind(key)];
        if (met->at_ps == now_ps && met->epoch != epoch)
            epochs_meet(replay, (struct met_pair){
                                    .epoch = {(uint8_t)met->epoch, (uint8_t)epoch},
                                    .stream = (uint8_t)event_key_stream(key),
                                    .role = replay->chips[chips[i]].role,
                                    .is_known = kept->met_roles == replay->program->role_count,
                                });
        *met = (struct met){now_ps, epoch};
    }
}

/* Epochs decide only between messages of one stream. */
void recur_land(struct replay *replay, uint64_t key, uint32_t stream)
{
    if (event_key_names_epoch(key) && event_key_stream(key) == stream)
        epochs_meet(replay, (struct met_pair){.is_known = false});
}

static bool entry_is_of(const struct kept_entry *entry, int64_t at_ps, uint64_t key)
{
    return entry->at_ps == at_ps && entry->key == key;
}

static void chip_put(struct recur_kept *kept, uint32_t chip)
{
    int64_t const more = (int64_t)chip - kept->chip_last;
    uint64_t left = more < 0 ? (uint64_t)-more * 2 - 1 : (uint64_t)more * 2;
    for (; left >= 128; left /= 128)
        kept->chips[kept->chips_bytes++] = (unsigned char)(left % 128 + 128);
    kept->chips[kept->chips_bytes++] = (unsigned char)left;
    kept->chip_last = chip;
}

static uint32_t chip_get(const struct recur_kept *kept, uint64_t *at, uint32_t last)
{
    uint64_t more = 0;
    uint32_t shift = 0;
    for (; kept->chips[*at] >= 128; shift += 7)
        more |= (uint64_t)(kept->chips[(*at)++] - 128) << shift;
    more |= (uint64_t)kept->chips[(*at)++] << shift;
    return more % 2 != 0 ? last - (uint32_t)(more / 2) - 1 : last + (uint32_t)(more / 2);
}

void recur_digest_add(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip)
{
    struct recur_kept *kept = &replay->recurrence.search->kept;
    if (replay->steps.max != 0) return; /* Further steps have no digest. */
    bool const opens =
        kept->entry_count == 0 || !entry_is_of(&kept->entries[kept->entry_count - 1], now_ps, key);
    if (kept->chips_bytes + CHIP_BYTES_MAX > kept->room * CHIP_BYTES_MAX ||
        (opens && kept->entry_count == kept->entry_room)) {
        kept->failed = true;
        return;
    }
    if (opens)
        kept->entries[kept->entry_count++] = (struct kept_entry){now_ps, key, kept->chips_bytes};
    chip_put(kept, chip);
}

void recur_flight(struct replay *replay, const struct flight_log *log, int64_t begin_ps,
                  uint32_t epoch, uint32_t stream, uint32_t chip)
{
    struct recur_kept *kept = &replay->recurrence.search->kept;
    if (kept->flight_count == kept->entry_room) {
        kept->failed = true;
        return;
    }
    kept->flights[kept->flight_count++] = (struct kept_flight){.log = log,
                                                               .begin_ps = begin_ps,
                                                               .chip = chip,
                                                               .stream = (uint8_t)stream,
                                                               .epoch = (uint8_t)epoch};
}

static void flights_repeat(struct replay *replay, int64_t period_ps, uint64_t times)
{
    const struct recur_kept *kept = &replay->recurrence.search->kept;
    for (uint64_t i = 0; i < kept->flight_count; i++) {
        const struct kept_flight *flight = &kept->flights[i];
        uint32_t const more = recur_role_of(replay, flight->chip)->epochs[flight->stream];
        uint32_t epoch = flight->epoch;
        for (uint64_t k = 1; k <= times; k++) {
            epoch = (epoch + more) % RECUR_EPOCHS;
            replay->tally.digest += flight_digest(
                flight->log, flight->begin_ps + (int64_t)k * period_ps, epoch, flight->chip);
        }
    }
}

/* One event of the period, as often as it comes again. */
static uint64_t event_repeat(const struct kept_entry *entry, uint32_t chip, int64_t period_ps,
                             uint64_t times, uint32_t epochs)
{
    bool const turns = event_key_names_epoch(entry->key);
    uint64_t const epoch_bits = (uint64_t)(RECUR_EPOCHS - 1) << KEY_EPOCH_SHIFT;
    uint64_t key = entry->key, digest = 0;
    for (uint64_t k = 1; k <= times; k++) {
        if (turns)
            key =
                (key & ~epoch_bits) | ((key + ((uint64_t)epochs << KEY_EPOCH_SHIFT)) & epoch_bits);
        digest += digest_record(entry->at_ps + (int64_t)k * period_ps, key, chip);
    }
    return digest;
}

void recur_kept_repeat(struct replay *replay, int64_t period_ps, uint64_t times)
{
    const struct recur_kept *kept = &replay->recurrence.search->kept;
    uint64_t at = 0;
    uint32_t chip = 0;
    for (uint64_t i = 0; i < kept->entry_count; i++) {
        const struct kept_entry *entry = &kept->entries[i];
        uint64_t const end = i + 1 == kept->entry_count ? kept->chips_bytes : entry[1].chips_first;
        uint32_t const stream = event_key_stream(entry->key);
        while (at < end) {
            chip = chip_get(kept, &at, chip);
            replay->tally.digest += event_repeat(entry, chip, period_ps, times,
                                                 recur_role_of(replay, chip)->epochs[stream]);
        }
    }
    flights_repeat(replay, period_ps, times);
}

void recur_pass(struct replay *replay, uint32_t chip, int64_t counted_ps, int64_t begin_ps,
                int64_t end_ps)
{
    struct recur_kept *kept = &replay->recurrence.search->kept;
    if (kept->pass_count == kept->entry_room) {
        kept->failed = true;
        return;
    }
    kept->passes[kept->pass_count++] = (struct kept_pass){
        .counted_ps = counted_ps,
        .begin_ps = begin_ps,
        .end_ps = end_ps,
        .slot = stream_at(replay, PROGRAM_COMPUTE, chip)->slot,
        .position = stream_at(replay, PROGRAM_COMPUTE, chip)->position,
        .role = replay->chips[chip].role,
    };
}

void recur_passes_repeat(struct replay *replay, int64_t period_ps, uint64_t times)
{
    const struct recur *recur = replay->recurrence.search;
    for (uint64_t k = 1; k <= times; k++)
        for (uint64_t i = 0; i < recur->kept.pass_count; i++) {
            const struct kept_pass *pass = &recur->kept.passes[i];
            struct role_table *role = &replay->roles[pass->role];
            struct need_cache needs;
            struct stream_state const at = {.slot = pass->slot +
                                                    (uint32_t)k * recur->roles[pass->role].slots,
                                            .position = pass->position};
            streams_needs_fill(replay, role, PROGRAM_COMPUTE, &at, &needs);
            breakdown_pass_add(role, &needs, pass->counted_ps,
                               pass->begin_ps + (int64_t)k * period_ps,
                               pass->end_ps + (int64_t)k * period_ps);
        }
}
