#include "sim/replay/recur_kept.h"

#include "sim/base/arena.h"
#include "sim/replay/recur.h"
#include "sim/replay/recur_search.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

enum { EVENT_KINDS = 8 };

/* Events of a period that are kept at most, of up to 40 bytes each. */
static const uint64_t kept_max = UINT64_C(1) << 22;

struct kept_entry {
    int64_t at_ps;
    uint64_t key;
    uint64_t chips_first;
};

/* Chips of a block of 64: mostly many of them have the event. */
struct kept_chips {
    uint64_t bits;
    uint32_t block;
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
    kept->entry_count = kept->chips_count = 0;
    kept->failed = false;
    if (events > kept_max) return false;
    if (events <= kept->room) return true;
    kept->room = 0;
    if (arena_try_unset(arena, events, sizeof *kept->entries, &entries, &error) != STATUS_OK ||
        arena_try_unset(arena, events, sizeof *kept->chips, &chips, &error) != STATUS_OK)
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

/* Whether a chip is of the block, and has the event for the first time. */
static bool chips_take(struct kept_chips *chips, uint32_t chip)
{
    uint64_t const bit = UINT64_C(1) << chip % 64;
    if (chips->block != chip / 64 || (chips->bits & bit) != 0) return false;
    chips->bits |= bit;
    return true;
}

void recur_digest_add(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip)
{
    struct recur_kept *kept = &replay->recurrence.search->kept;
    if (kept->chips_count == kept->room) {
        kept->failed = true;
        return;
    }
    if (kept->entry_count == 0 ||
        !entry_is_of(&kept->entries[kept->entry_count - 1], now_ps, key)) {
        kept->entries[kept->entry_count++] = (struct kept_entry){now_ps, key, kept->chips_count};
    } else if (chips_take(&kept->chips[kept->chips_count - 1], chip)) {
        return;
    }
    kept->chips[kept->chips_count++] = (struct kept_chips){UINT64_C(1) << chip % 64, chip / 64};
}

void recur_kept_repeat(const struct recur_kept *kept, int64_t period_ps, uint64_t times,
                       const uint32_t *epochs, uint64_t *digest)
{
    for (uint64_t i = 0; i < kept->entry_count; i++) {
        const struct kept_entry *entry = &kept->entries[i];
        uint64_t const end = i + 1 == kept->entry_count ? kept->chips_count : entry[1].chips_first;
        bool const turns = event_key_names_epoch(entry->key);
        uint32_t const more = turns ? epochs[event_key_stream(entry->key)] : 0;
        uint64_t const rest = entry->key & ~((uint64_t)(RECUR_EPOCHS - 1) << KEY_EPOCH_SHIFT);
        uint64_t epoch = event_key_field(entry->key, KEY_EPOCH_SHIFT, KEY_EPOCH_BITS);
        for (uint64_t k = 1; k <= times; k++) {
            int64_t const at_ps = entry->at_ps + (int64_t)k * period_ps;
            epoch = (epoch + more) % RECUR_EPOCHS;
            uint64_t const key = turns ? rest | epoch << KEY_EPOCH_SHIFT : entry->key;
            for (uint64_t c = entry->chips_first; c < end; c++)
                for (uint64_t bits = kept->chips[c].bits; bits != 0; bits &= bits - 1)
                    *digest += digest_record(
                        at_ps, key, kept->chips[c].block * 64 + (uint32_t)__builtin_ctzll(bits));
        }
    }
}
