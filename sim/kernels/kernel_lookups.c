#include "sim/kernels/kernel_lookups.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/lock.h"

enum { SLOTS = 2 * KERNEL_LOOKUPS_MAX };

/* What decides which tables have a work. Chunks do where it is a batch: its table may have the
 * matrices of the whole, and not those of a chunk. */
struct tables_key {
    struct work_matmul matmul[WORK_MATMULS_MAX];
    struct work_attended attended[WORK_ATTENDED_MAX];
    uint64_t matmul_count, math_format, kernel, cast, result, of_experts, batched;
    uint64_t batch_chunk_count, batch_chunked;
};

/* Keys are compared as bytes, so none of these may be padding. */
_Static_assert(sizeof(struct tables_key) == WORK_MATMULS_MAX * sizeof(struct work_matmul) +
                                                WORK_ATTENDED_MAX * sizeof(struct work_attended) +
                                                9 * sizeof(uint64_t),
               "a key has padding");

/* What decides their shares beyond that. */
struct shares_key {
    uint64_t chunk_count, chunked;
    uint32_t core_count;
};

struct kernel_lookups_entry {
    struct tables_key key;
    struct shares_key of;
    bool has_shares;
    struct kernel_lookup lookup;
};

enum status kernel_lookups_create(struct arena *arena, struct kernel_stack *stack,
                                  struct error *reterr)
{
    void *memory = NULL, *entries = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *stack->lookups, &memory, reterr));
    STATUS_TRY(arena_try_unset(arena, KERNEL_LOOKUPS_MAX, sizeof(struct kernel_lookups_entry),
                               &entries, reterr));
    stack->lookups = memory;
    stack->lookups->stack = stack;
    stack->lookups->entry = entries;
    return STATUS_OK;
}

static struct tables_key key_of(const struct work *work)
{
    struct tables_key key = {
        .matmul_count = work->matmul_count,
        .math_format = work->math_format,
        .kernel = work->kernel,
        .cast = work->cast,
        .result = work->result,
        .of_experts = work->of_experts,
        .batched = work->batched,
        .batch_chunk_count = work->batched == 0 ? 0 : work->chunk_count,
        .batch_chunked = work->batched == 0 ? 0 : work->chunked,
    };
    memcpy(key.matmul, work->matmul, sizeof key.matmul);
    memcpy(key.attended, work->attended, sizeof key.attended);
    return key;
}

static uint32_t slot_of(const struct tables_key *key)
{
    uint64_t word[sizeof *key / sizeof(uint64_t)], hash = 0;
    memcpy(word, key, sizeof *key);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        hash = (hash ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) % SLOTS;
}

static bool shares_are_of(const struct kernel_lookups_entry *entry, const struct shares_key *of)
{
    return entry->of.chunk_count == of->chunk_count && entry->of.chunked == of->chunked &&
           entry->of.core_count == of->core_count;
}

/* The entry that has what is wanted, or may have it; else a new one. */
static struct kernel_lookups_entry *entry_find(struct kernel_lookups *lookups,
                                               const struct work *work, const struct shares_key *of,
                                               bool wants_shares)
{
    struct tables_key const key = key_of(work);
    uint32_t slot = slot_of(&key);
    for (; lookups->slot[slot] != 0; slot = (slot + 1) % SLOTS) {
        struct kernel_lookups_entry *entry = &lookups->entry[lookups->slot[slot] - 1];
        if (memcmp(&entry->key, &key, sizeof key) == 0 &&
            (!wants_shares || !entry->has_shares || shares_are_of(entry, of)))
            return entry;
    }
    if (lookups->count == KERNEL_LOOKUPS_MAX) {
        memset(lookups->slot, 0, sizeof lookups->slot);
        lookups->count = 0;
        slot = slot_of(&key);
    }
    struct kernel_lookups_entry *entry = &lookups->entry[lookups->count++];
    lookups->slot[slot] = (uint16_t)lookups->count;
    lookups->made++;
    entry->key = key;
    entry->has_shares = false;
    kernel_lookup_tables(lookups->stack, work, &entry->lookup);
    return entry;
}

void kernel_lookups_find(const struct kernel_stack *stack, uint32_t core_count,
                         const struct work *work, bool wants_shares,
                         struct kernel_lookup *ret_lookup)
{
    struct kernel_lookups *lookups = stack->lookups;
    if (lookups == NULL || lookups->stack != stack) { /* A stack by hand, or a copy. */
        kernel_lookup_tables(stack, work, ret_lookup);
        if (wants_shares) kernel_lookup_shares(stack, core_count, work, ret_lookup);
        return;
    }
    struct shares_key const of = {work->chunk_count, work->chunked, core_count};
    lock_take(&lookups->lock);
    struct kernel_lookups_entry *entry = entry_find(lookups, work, &of, wants_shares);
    if (wants_shares && !entry->has_shares) {
        entry->of = of;
        entry->has_shares = true;
        entry->lookup.call_count = work_calls(stack, work, entry->lookup.call); /* Of its chunks. */
        kernel_lookup_shares(stack, core_count, work, &entry->lookup);
    }
    *ret_lookup = entry->lookup;
    lock_give(&lookups->lock);
}
