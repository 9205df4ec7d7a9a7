#include "sim/engine/windows.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

/* All buckets before `bucket` have been handed over, or are the window at hand. */
static void windows_ring(struct windows *windows, uint64_t bucket)
{
    int64_t const ring_ps = (int64_t)WINDOW_BUCKETS << windows->shift;
    windows->bucket = bucket;
    windows->end_ps = (int64_t)(bucket << windows->shift);
    windows->ring_ps = TIME_PS_END - windows->end_ps;
    if (ring_ps < windows->ring_ps) windows->ring_ps = ring_ps;
    if (windows->ring_ps < 0) windows->ring_ps = 0;
}

/* The numbers of a long run begin anew, and so do those of a short one, which a test can wait for.
 */
static const uint64_t window_first = (UINT64_C(1) << 48) - (UINT64_C(64) << WINDOW_PS_BITS);

enum status windows_create(struct arena *arena, int64_t lookahead_ps, uint32_t chip_count,
                           uint64_t pending_max, struct windows **ret_windows, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct windows), &memory, reterr));
    struct windows *windows = memory;
    SIM_ASSERT(lookahead_ps > 0);
    while ((lookahead_ps >> windows->shift) >= WINDOW_PARTS && windows->shift < WINDOW_SHIFT_MAX)
        windows->shift++;
    int64_t const width = lookahead_ps >> windows->shift;
    windows->width = width < WINDOW_PARTS ? (uint32_t)width : WINDOW_PARTS;
    windows->chip_count = chip_count;
    windows->window = window_first;
    windows_ring(windows, 0);
    uint64_t const all = pending_max + 1;
    /* A bucket has one chunk at most that is not full; the first chunk is not used. */
    uint64_t const chunk_max = pending_max / WINDOW_CHUNK_EVENTS + WINDOW_BUCKETS + 1;
#define TAKE(array, count)                                                                         \
    STATUS_TRY(arena_try_unset(arena, count, sizeof *windows->array, &memory, reterr));            \
    windows->array = memory;
    TAKE(posts, chunk_max * WINDOW_CHUNK_EVENTS)
    TAKE(chunk_next, chunk_max)
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
    STATUS_TRY(arena_try(arena, chip_count, sizeof *windows->last, &memory, reterr));
    windows->last = memory;
    STATUS_TRY(arena_try(arena, chip_count / 64 + 1, sizeof *windows->apart, &memory, reterr));
    windows->apart = memory;
    *ret_windows = windows;
    return STATUS_OK;
}

static void post_far(struct windows *windows, const struct window_event *event)
{
    uint64_t const bucket = (uint64_t)event->at_ps >> windows->shift;
    if (windows->far_count == 0 || bucket < windows->far_bucket) windows->far_bucket = bucket;
    windows->far[windows->far_count++] = *event;
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

/* A chip is apart from now on: events of it that are in groups are not handed over with them. */
static inline void chip_part(struct windows *windows, uint32_t chip)
{
    windows->last[chip] = windows->window << 16 | WINDOW_LAYERS;
    windows->apart[chip / 64] |= UINT64_C(1) << chip % 64;
    windows->has_apart = true;
}

static void post_near(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    chip_part(windows, chip);
    chip_add(windows, at_ps, key, chip);
}

/* Into the bucket of an instant within the ring; it may need a chunk. */
static void bucket_add(struct windows *windows, const struct window_event *event)
{
    uint32_t const slot = (uint32_t)((uint64_t)event->at_ps >> windows->shift) % WINDOW_BUCKETS;
    uint32_t place = windows->places[slot];
    if (place % WINDOW_CHUNK_EVENTS == 0) {
        uint32_t chunk = windows->chunk_free;
        if (chunk != 0)
            windows->chunk_free = windows->chunk_next[chunk];
        else
            chunk = ++windows->chunk_count;
        if (place == 0)
            windows->chunks[slot] = chunk;
        else
            windows->chunk_next[place / WINDOW_CHUNK_EVENTS - 1] = chunk;
        windows->used[slot / 64] |= UINT64_C(1) << slot % 64;
        place = chunk * WINDOW_CHUNK_EVENTS;
    }
    windows->places[slot] = place + 1;
    windows->posts[place] = (struct window_post){event->key, event->chip, (uint32_t)event->at_ps};
}

void windows_post_apart(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    uint64_t const bucket = (uint64_t)at_ps >> windows->shift;
    struct window_event const event = {at_ps, key, chip, 0};
    if (at_ps >= TIME_PS_END)
        windows->has_passed_end = true;
    else if (bucket - windows->bucket < WINDOW_BUCKETS)
        bucket_add(windows, &event);
    else if (at_ps < windows->end_ps)
        post_near(windows, at_ps, key, chip);
    else
        post_far(windows, &event);
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
            bucket_add(windows, &event);
        else
            post_far(windows, &event);
    }
}

/* The slot of a key of the round, or for a key that gets a group. Where there is no room for
 * groups, further keys have a slot in common. */
static __attribute__((noinline)) struct window_key *key_slot(struct windows *windows, uint64_t key,
                                                             uint32_t index)
{
    struct window_key *slot = &windows->keys[index];
    while (slot->round == windows->round && slot->key != key) {
        index = (index + 1) % WINDOW_KEYS;
        slot = &windows->keys[index];
    }
    if (slot->round == windows->round) return slot;
    if (windows->group_count == WINDOW_GROUPS) slot = &windows->no_key;
    slot->key = key;
    slot->round = windows->round;
    memset(slot->groups, WINDOW_NONE, sizeof slot->groups);
    return slot;
}

static inline struct window_key *key_find(struct windows *windows, uint64_t key)
{
    uint32_t const index = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 54);
    struct window_key *slot = &windows->keys[index];
    return slot->key == key && slot->round == windows->round ? slot : key_slot(windows, key, index);
}
_Static_assert(WINDOW_KEYS == 1 << (64 - 54), "as many as a key's upper bits count");

/* A group for a key; WINDOW_NONE: there is no room for another one. */
static uint32_t group_add(struct windows *windows, struct window_key *slot, uint32_t layer)
{
    uint32_t const group = windows->group_count;
    if (group == WINDOW_GROUPS) return WINDOW_NONE;
    windows->groups[group].key = slot->key;
    windows->groups[group].layer = layer;
    windows->groups[group].count = 0;
    windows->group_count++;
    slot->groups[layer] = (uint8_t)group;
    return group;
}

static inline void group_join(struct window_group *group, int64_t at_ps, uint32_t chip)
{
    group->chips[group->count] = chip;
    group->at_ps[group->count++] = at_ps;
}

/* Posts `first` to `end` of a bucket join their groups. */
static inline void posts_join(struct windows *windows, uint32_t first, uint32_t end)
{
    int64_t const begin_ps = windows->begin_ps;
    uint64_t const window = windows->window;
    for (uint32_t i = first; i < end; i++) {
        const struct window_post *post = &windows->posts[i];
        uint32_t const chip = post->chip, since = post->low_ps - (uint32_t)begin_ps;
        uint64_t const key = post->key, last = windows->last[chip], place = window + since;
        /* Chips mostly have one or two events. Which it is, is not asked by a branch. An event of
         * an earlier window is never later. */
        uint32_t const layer = (uint32_t)((last & 0xff) + 1) & (0u - (last >= window << 16));
        bool const is_late = last >> 16 >= place &&
                             (last >> 16 > place || key <= windows->groups[last >> 8 & 0xff].key);
        uint32_t group = WINDOW_NONE;
        if (layer < WINDOW_LAYERS && !is_late) {
            struct window_key *slot = key_find(windows, key);
            group = slot->groups[layer];
            if (group == WINDOW_NONE) group = group_add(windows, slot, layer);
        }
        if (group == WINDOW_NONE) {
            post_near(windows, begin_ps + since, key, chip);
            continue;
        }
        windows->last[chip] = place << 16 | group << 8 | layer;
        group_join(&windows->groups[group], begin_ps + since, chip);
    }
}
_Static_assert(WINDOW_PARTS <= 1 << (WINDOW_PS_BITS - WINDOW_SHIFT_MAX), "a window's instants fit");

static void bucket_take(struct windows *windows, uint64_t bucket)
{
    uint32_t const slot = (uint32_t)(bucket % WINDOW_BUCKETS);
    uint32_t const place = windows->places[slot];
    uint32_t chunk = windows->chunks[slot];
    if (place == 0) return;
    windows->places[slot] = 0;
    windows->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    for (bool is_last = false; !is_last;) {
        uint32_t const first = chunk * WINDOW_CHUNK_EVENTS;
        uint32_t const next = windows->chunk_next[chunk];
        is_last = place - first - 1 < WINDOW_CHUNK_EVENTS; /* It lies in this chunk. */
        if (!is_last) __builtin_prefetch(&windows->posts[next * WINDOW_CHUNK_EVENTS]);
        posts_join(windows, first, is_last ? place : first + WINDOW_CHUNK_EVENTS);
        windows->chunk_next[chunk] = windows->chunk_free;
        windows->chunk_free = chunk;
        chunk = next;
    }
}

bool windows_open(struct windows *windows)
{
    uint64_t bucket = bucket_next(windows, windows->bucket);
    bool const is_empty = bucket == windows->bucket + WINDOW_BUCKETS;
    if (is_empty && windows->far_count == 0) return false;
    if (windows->far_count > 0 && (is_empty || windows->far_bucket < bucket + windows->width)) {
        if (is_empty || windows->far_bucket < bucket) bucket = windows->far_bucket;
        windows_ring(windows, bucket);
        far_take(windows);
    }
    windows->event_count = windows->event_free = windows->active_count = 0;
    windows->group_count = 0;
    if (windows->has_apart)
        memset(windows->apart, 0, (windows->chip_count / 64 + 1) * sizeof *windows->apart);
    windows->has_apart = false;
    windows->window += UINT64_C(1) << WINDOW_PS_BITS;
    if (windows->window >> 48 != 0) { /* The events of chips have numbers before it. */
        memset(windows->last, 0, windows->chip_count * sizeof *windows->last);
        windows->window = UINT64_C(1) << WINDOW_PS_BITS;
    }
    windows->round++;
    windows_ring(windows, bucket + windows->width);
    windows->begin_ps = (int64_t)(bucket << windows->shift);
    for (uint64_t i = bucket; i < windows->bucket; i++) bucket_take(windows, i);
    return true;
}

static inline bool chip_is_apart(const struct windows *windows, uint32_t chip)
{
    return (windows->apart[chip / 64] >> chip % 64 & 1) != 0;
}

void windows_sift(struct windows *windows, struct window_group *group)
{
    uint32_t count = 0;
    if (!windows->has_apart) return;
    while (count < group->count && !chip_is_apart(windows, group->chips[count])) count++;
    for (uint32_t i = count; i < group->count; i++) {
        uint32_t const chip = group->chips[i];
        int64_t const at_ps = group->at_ps[i];
        if (chip_is_apart(windows, chip)) {
            chip_add(windows, at_ps, group->key, chip);
            continue;
        }
        group->chips[count] = chip;
        group->at_ps[count++] = at_ps;
    }
    group->count = count;
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
        struct window_key *slot = key_find(windows, event->key);
        uint32_t const behind = event->next;
        uint32_t group = slot->groups[0];
        if (group == WINDOW_NONE) group = group_add(windows, slot, 0);
        next[left] = chip; /* Stays if the chip has another event. */
        if (group == WINDOW_NONE) {
            left++;
            continue;
        }
        group_join(&windows->groups[group], event->at_ps, chip);
        windows->first[chip] = behind;
        left += behind != 0;
        event->next = windows->event_free;
        windows->event_free = index;
    }
    windows->active_count = left;
    return true;
}
