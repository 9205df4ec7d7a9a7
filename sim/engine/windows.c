#include "sim/engine/windows.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"

enum status windows_create(struct arena *arena, int64_t lookahead_ps, uint32_t chip_count,
                           uint64_t pending_max, struct windows **ret_windows, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct windows), &memory, reterr));
    struct windows *windows = memory;
    SIM_ASSERT(lookahead_ps > 0);
    while ((lookahead_ps >> windows->shift) >= WINDOW_PARTS) windows->shift++;
    windows->width = (uint32_t)(lookahead_ps >> windows->shift);
    uint64_t const all = pending_max + 1;
    /* A bucket has one chunk at most that is not full. */
    uint64_t const chunk_max = pending_max / WINDOW_CHUNK_EVENTS + WINDOW_BUCKETS + 1;
#define TAKE(array, count)                                                                         \
    STATUS_TRY(arena_try_unset(arena, count, sizeof *windows->array, &memory, reterr));            \
    windows->array = memory;
    TAKE(chunks, chunk_max)
    TAKE(far, all)
    TAKE(events, all)
    TAKE(active, chip_count)
    TAKE(spare, chip_count)
    /* The arrays of groups begin on sets of the cache of their own. */
    for (uint32_t g = 0; g < WINDOW_GROUPS; g++) {
        TAKE(groups[g].chips, chip_count + (uint64_t)48 * g)
        windows->groups[g].chips += 48 * g;
        TAKE(groups[g].at_ps, chip_count + (uint64_t)40 * g)
        windows->groups[g].at_ps += 40 * g;
    }
#undef TAKE
    STATUS_TRY(arena_try(arena, chip_count, sizeof *windows->first, &memory, reterr));
    windows->first = memory;
    *ret_windows = windows;
    return STATUS_OK;
}

void windows_post_far(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    uint64_t const bucket = (uint64_t)at_ps >> windows->shift;
    if (windows->far_count == 0 || bucket < windows->far_bucket) windows->far_bucket = bucket;
    windows->far[windows->far_count++] = (struct window_event){at_ps, key, chip, 0};
}

/* Joins the list of the chip's events in the window. */
static inline void chip_add(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    uint32_t index = windows->event_free;
    if (index != 0)
        windows->event_free = windows->events[index].next;
    else
        index = ++windows->event_count;
    uint32_t *link = &windows->first[chip];
    if (*link == 0) windows->active[windows->active_count++] = chip;
    while (*link != 0) {
        const struct window_event *other = &windows->events[*link];
        if (at_ps < other->at_ps || (at_ps == other->at_ps && key < other->key)) break;
        link = &windows->events[*link].next;
    }
    windows->events[index] = (struct window_event){at_ps, key, chip, *link};
    *link = index;
}

void windows_post_near(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    chip_add(windows, at_ps, key, chip);
}

/* The first bucket with events from `bucket` on; WINDOW_BUCKETS behind it: none. */
static uint64_t bucket_next(const struct windows *windows, uint64_t bucket)
{
    uint64_t const end = bucket + WINDOW_BUCKETS;
    while (bucket < end) {
        uint32_t const slot = (uint32_t)(bucket % WINDOW_BUCKETS);
        uint64_t const bits = windows->used[slot / 64] >> slot % 64;
        if (bits != 0) {
            bucket += (uint64_t)__builtin_ctzll(bits);
            return bucket < end ? bucket : end;
        }
        bucket += 64 - slot % 64;
    }
    return end;
}

/* What has waited behind the ring comes into it, as far as the ring reaches now. */
static void far_take(struct windows *windows)
{
    uint32_t const count = windows->far_count;
    windows->far_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct window_event const event = windows->far[i];
        if (((uint64_t)event.at_ps >> windows->shift) - windows->bucket < WINDOW_BUCKETS)
            windows_bucket_add(windows, event.at_ps, event.key, event.chip);
        else
            windows_post_far(windows, event.at_ps, event.key, event.chip);
    }
}

static void bucket_take(struct windows *windows, uint32_t slot)
{
    uint32_t index = windows->buckets[slot];
    windows->buckets[slot] = 0;
    windows->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    while (index != 0) {
        struct window_chunk *chunk = &windows->chunks[index];
        uint32_t const next = chunk->next;
        if (next != 0) __builtin_prefetch(&windows->chunks[next]);
        for (uint32_t i = 0; i < chunk->count; i++)
            chip_add(windows, chunk->event[i].at_ps, chunk->event[i].key, chunk->event[i].chip);
        chunk->next = windows->chunk_free;
        windows->chunk_free = index;
        index = next;
    }
}

bool windows_open(struct windows *windows)
{
    uint64_t bucket = bucket_next(windows, windows->bucket);
    bool const is_empty = bucket == windows->bucket + WINDOW_BUCKETS;
    if (is_empty && windows->far_count == 0) return false;
    if (windows->far_count > 0 && (is_empty || windows->far_bucket < bucket + windows->width)) {
        if (is_empty || windows->far_bucket < bucket) bucket = windows->far_bucket;
        windows->bucket = bucket;
        far_take(windows);
    }
    windows->event_count = windows->event_free = windows->active_count = 0;
    windows->bucket = bucket + windows->width;
    windows->begin_ps = (int64_t)(bucket << windows->shift);
    windows->end_ps = (int64_t)(windows->bucket << windows->shift);
    for (uint64_t i = bucket; i < windows->bucket; i++)
        bucket_take(windows, (uint32_t)(i % WINDOW_BUCKETS));
    return true;
}

/* The group of a key in this round; NULL: there is no room for another one. */
static inline struct window_group *group_find(struct windows *windows, uint64_t key)
{
    uint32_t slot = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % WINDOW_KEYS;
    struct window_key *found = &windows->keys[slot];
    while (found->round == windows->round && found->key != key) {
        slot = (slot + 1) % WINDOW_KEYS;
        found = &windows->keys[slot];
    }
    if (found->round != windows->round) {
        if (windows->group_count == WINDOW_GROUPS) return NULL;
        *found = (struct window_key){key, windows->round, windows->group_count};
        windows->groups[windows->group_count].key = key;
        windows->groups[windows->group_count++].count = 0;
    }
    return &windows->groups[found->group];
}

bool windows_round(struct windows *windows)
{
    uint32_t const count = windows->active_count;
    uint32_t *const active = windows->active, *const next = windows->spare;
    uint32_t left = 0;
    if (count == 0) return false;
    windows->round++;
    windows->group_count = 0;
    windows->active = next;
    windows->spare = active;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const chip = active[i], index = windows->first[chip];
        struct window_event *event = &windows->events[index];
        struct window_group *group = group_find(windows, event->key);
        uint32_t const behind = event->next;
        next[left] = chip; /* Stays if the chip has another event. */
        if (group == NULL) {
            left++;
            continue;
        }
        group->chips[group->count] = chip;
        group->at_ps[group->count++] = event->at_ps;
        windows->first[chip] = behind;
        left += behind != 0;
        event->next = windows->event_free;
        windows->event_free = index;
    }
    windows->active_count = left;
    return true;
}
