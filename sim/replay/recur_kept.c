#include "sim/replay/recur_kept.h"

#include "sim/base/arena.h"
#include "sim/replay/recur.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

enum { EVENT_KINDS = 8, CHIP_BYTES_MAX = 5 };

/* Events of a period that are kept at most, and their instants and keys: 12 MiB. */
static const uint64_t kept_max = UINT64_C(1) << 22, entries_max = UINT64_C(1) << 19;

struct kept_entry {
    int64_t at_ps;
    uint64_t key;
    uint64_t chips_first; /* Byte. */
};

/* The last event of a kind of a lane, for epochs that meet. */
struct met {
    int64_t at_ps;
    uint32_t epoch;
};

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
    STATUS_TRY(arena_try(arena, (lanes + 1) * EVENT_KINDS, sizeof(struct met), &memory, reterr));
    ret_kept->met = memory;
    return STATUS_OK;
}

bool recur_kept_begin(struct arena *arena, struct recur_kept *kept, uint64_t events)
{
    struct error error;
    void *entries = NULL, *chips = NULL;
    kept->entry_count = kept->chips_bytes = 0;
    kept->chip_last = 0;
    kept->failed = false;
    if (events > kept_max) return false;
    if (events <= kept->room) return true;
    kept->room = 0;
    if (arena_try_unset(arena, entries_max, sizeof *kept->entries, &entries, &error) != STATUS_OK ||
        arena_try_unset(arena, events, CHIP_BYTES_MAX, &chips, &error) != STATUS_OK)
        return false;
    kept->entries = entries;
    kept->chips = chips;
    kept->room = events;
    return true;
}

void recur_event(struct replay *replay, int64_t now_ps, uint64_t key)
{
    struct recur_kept *kept = &replay->recurrence.search->kept;
    if (!event_key_names_epoch(key)) return;
    const struct lane_table *lane = routed_lane_of(replay, key);
    uint32_t const index = kept->met_first[lane->plan->index] + (uint32_t)(lane - lane->plan->lane);
    struct met *met = &kept->met[index * EVENT_KINDS + event_key_kind(key)];
    uint32_t const epoch = event_key_field(key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS);
    if (met->at_ps == now_ps && met->epoch != epoch) kept->failed = true;
    *met = (struct met){now_ps, epoch};
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
    bool const opens =
        kept->entry_count == 0 || !entry_is_of(&kept->entries[kept->entry_count - 1], now_ps, key);
    if (kept->chips_bytes + CHIP_BYTES_MAX > kept->room * CHIP_BYTES_MAX ||
        (opens && kept->entry_count == entries_max)) {
        kept->failed = true;
        return;
    }
    if (opens)
        kept->entries[kept->entry_count++] = (struct kept_entry){now_ps, key, kept->chips_bytes};
    chip_put(kept, chip);
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

void recur_kept_repeat(const struct recur_kept *kept, int64_t period_ps, uint64_t times,
                       const uint32_t *epochs, uint64_t *digest)
{
    uint64_t at = 0;
    uint32_t chip = 0;
    for (uint64_t i = 0; i < kept->entry_count; i++) {
        const struct kept_entry *entry = &kept->entries[i];
        uint64_t const end = i + 1 == kept->entry_count ? kept->chips_bytes : entry[1].chips_first;
        while (at < end) {
            chip = chip_get(kept, &at, chip);
            *digest +=
                event_repeat(entry, chip, period_ps, times, epochs[event_key_stream(entry->key)]);
        }
    }
}
