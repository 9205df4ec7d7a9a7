/* Items that are found by a hash: one list for each bucket. */
#include "sim/base/hashed.h"

#include "sim/base/arena.h"

enum { BUCKETS = 1 << 11, BUCKETS_MAX = 1 << 20 };

enum status hashed_build(struct arena *arena, uint32_t item_max, struct hashed *ret_hashed,
                         struct error *reterr)
{
    void *memory = NULL;
    uint32_t count = BUCKETS;
    while (count < item_max && count < BUCKETS_MAX) count *= 2;
    STATUS_TRY(arena_try(arena, count, sizeof *ret_hashed->first, &memory, reterr));
    ret_hashed->first = memory;
    STATUS_TRY(arena_try_unset(arena, item_max + 1ull, sizeof *ret_hashed->next, &memory, reterr));
    ret_hashed->next = memory;
    STATUS_TRY(
        arena_try_unset(arena, item_max + 1ull, sizeof *ret_hashed->hashes, &memory, reterr));
    ret_hashed->hashes = memory;
    ret_hashed->mask = BUCKETS - 1;
    ret_hashed->most_mask = count - 1;
    ret_hashed->count = 0;
    return STATUS_OK;
}

/* Each bucket becomes two, whose items keep their order. */
static void grow(struct hashed *hashed)
{
    uint32_t const old = hashed->mask + 1;
    for (uint32_t bucket = 0; bucket < old; bucket++) {
        uint32_t *ends[] = {&hashed->first[bucket], &hashed->first[bucket + old]};
        for (uint32_t item = *ends[0]; item != 0; item = hashed->next[item]) {
            uint32_t **end = &ends[(hashed->hashes[item] & old) != 0];
            **end = item;
            *end = &hashed->next[item];
        }
        *ends[0] = *ends[1] = 0;
    }
    hashed->mask = 2 * old - 1;
}

void hashed_add(struct hashed *hashed, uint64_t hash, uint32_t item)
{
    if (++hashed->count > 2 * hashed->mask && hashed->mask < hashed->most_mask) grow(hashed);
    uint32_t *end = &hashed->first[hash & hashed->mask];
    while (*end != 0) end = &hashed->next[*end];
    *end = item;
    hashed->next[item] = 0;
    hashed->hashes[item] = (uint32_t)hash;
}

void hashed_remove(struct hashed *hashed, uint64_t hash, uint32_t item)
{
    uint32_t *at = &hashed->first[hash & hashed->mask];
    while (*at != item) at = &hashed->next[*at];
    *at = hashed->next[item];
    hashed->count--;
}
