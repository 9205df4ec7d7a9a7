/* Items that are found by a hash: one list for each bucket. */
#include "sim/base/hashed.h"

#include "sim/base/arena.h"

/* So many buckets stay in a processor's cache. Few owners have more items at once. */
enum { BUCKETS_MAX = 1 << 16 };

enum status hashed_build(struct arena *arena, uint32_t item_max, struct hashed *ret_hashed,
                         struct error *reterr)
{
    void *memory = NULL;
    uint32_t count = 1;
    while (count < item_max && count < BUCKETS_MAX) count *= 2;
    STATUS_TRY(arena_try(arena, count, sizeof *ret_hashed->first, &memory, reterr));
    ret_hashed->first = memory;
    STATUS_TRY(arena_try(arena, item_max + 1ull, sizeof *ret_hashed->next, &memory, reterr));
    ret_hashed->next = memory;
    ret_hashed->mask = count - 1;
    return STATUS_OK;
}

void hashed_add(struct hashed *hashed, uint64_t hash, uint32_t item)
{
    uint32_t *end = &hashed->first[hash & hashed->mask];
    while (*end != 0) end = &hashed->next[*end];
    *end = item;
    hashed->next[item] = 0;
}

void hashed_remove(struct hashed *hashed, uint64_t hash, uint32_t item)
{
    uint32_t *at = &hashed->first[hash & hashed->mask];
    while (*at != item) at = &hashed->next[*at];
    *at = hashed->next[item];
}
