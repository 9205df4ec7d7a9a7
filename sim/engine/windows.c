#include "sim/engine/windows.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

enum status windows_create(struct arena *arena, int64_t lookahead_ps, uint32_t chip_count,
                           uint32_t channel_count, uint64_t pending_max,
                           struct windows **ret_windows, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct windows), &memory, reterr));
    struct windows *windows = memory;
    SIM_ASSERT(lookahead_ps > 0);
    while ((lookahead_ps >> windows->shift) >= WINDOW_PARTS) windows->shift++;
    windows->width = (uint32_t)(lookahead_ps >> windows->shift);
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
    TAKE(slots, channel_count)
    for (uint32_t i = 0; i < channel_count; i++) windows->slots[i] = &windows->no_key;
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
    struct window_last *last = &windows->last[chip];
    if (last->round == windows->opened && last->layer == WINDOW_LAYERS) return;
    last->round = windows->opened;
    last->layer = WINDOW_LAYERS;
    windows->apart_count++;
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
    windows->posts[place] = *event;
}

void windows_post_apart(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t channel,
                        uint32_t chip)
{
    uint64_t const bucket = (uint64_t)at_ps >> windows->shift;
    struct window_event const event = {at_ps, key, chip, channel};
    if (bucket - windows->bucket < WINDOW_BUCKETS)
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

/* The slot of a key that gets a group. Where there is no room for groups, further keys have a slot
 * in common. */
static inline struct window_key *key_slot(struct windows *windows, uint64_t key)
{
    uint32_t index = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % WINDOW_KEYS;
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

/* Events `first` to `end` of a bucket join their groups. A channel mostly posts one key for a
 * while. */
static void events_join(struct windows *windows, uint32_t first, uint32_t end)
{
    uint32_t const opened = windows->opened;
    for (uint32_t i = first; i < end; i++) {
        const struct window_event *event = &windows->posts[i];
        struct window_last *last = &windows->last[event->chip];
        /* Chips mostly have one or two events. Which it is, is not asked by a branch. */
        uint32_t const has_last = last->round == opened;
        uint32_t const layer = (last->layer + 1u) & (0 - has_last);
        bool const is_late =
            event->at_ps < last->at_ps || (event->at_ps == last->at_ps && has_last &&
                                           event->key <= windows->groups[last->group].key);
        uint32_t group = WINDOW_NONE;
        if (layer < WINDOW_LAYERS && !is_late) {
            struct window_key *slot = windows->slots[event->next];
            if (slot->key != event->key || slot->round != opened)
                slot = windows->slots[event->next] = key_slot(windows, event->key);
            group = slot->groups[layer];
            if (group == WINDOW_NONE) group = group_add(windows, slot, layer);
        }
        if (group == WINDOW_NONE) {
            post_near(windows, event->at_ps, event->key, event->chip);
            continue;
        }
        *last = (struct window_last){event->at_ps, opened, (uint16_t)layer, (uint16_t)group};
        group_join(&windows->groups[group], event->at_ps, event->chip);
    }
}

static void bucket_take(struct windows *windows, uint32_t slot)
{
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
        events_join(windows, first, is_last ? place : first + WINDOW_CHUNK_EVENTS);
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
        windows->bucket = bucket;
        far_take(windows);
    }
    windows->event_count = windows->event_free = windows->active_count = 0;
    windows->apart_count = windows->group_count = 0;
    windows->opened = ++windows->round;
    windows->bucket = bucket + windows->width;
    windows->begin_ps = (int64_t)(bucket << windows->shift);
    windows->end_ps = (int64_t)(windows->bucket << windows->shift);
    for (uint64_t i = bucket; i < windows->bucket; i++)
        bucket_take(windows, (uint32_t)(i % WINDOW_BUCKETS));
    return true;
}

void windows_sift(struct windows *windows, struct window_group *group)
{
    uint32_t count = 0;
    if (windows->apart_count == 0) return;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t const chip = group->chips[i];
        int64_t const at_ps = group->at_ps[i];
        if (windows->last[chip].layer == WINDOW_LAYERS) {
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
        struct window_key *slot = key_slot(windows, event->key);
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
