/*
 * windows.h: the order of events where a post to another chip lies a lookahead ahead at least.
 *
 * Within a window shorter than the lookahead no event of one chip can follow from an event of
 * another one. So a chip needs its own events in order, and chips may take any order: events of
 * different instants are handed over together, if they have one key.
 *
 *     buckets    | e   e e | e       |     e   |   e     | ...     of posts still to come
 *                +---------+---------+---------+
 *     a window   chip 0: e     chip 3: e, e     chip 7: e          (instant, key) in order
 *                     round 1: the first event of each chip, by key; round 2: the second; ...
 *
 * A post for the window at hand is one of the chip's own, and joins the chip's list. Buckets are a
 * ring. What lies behind its end waits apart, and comes into the ring when the ring has turned.
 */
#ifndef SIM_ENGINE_WINDOWS_H
#define SIM_ENGINE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;

enum {
    WINDOW_BUCKETS = 4096,    /* Buckets of the ring. */
    WINDOW_CHUNK_EVENTS = 10, /* A chunk has four lines of the cache. */
    WINDOW_PARTS = 8,         /* Buckets of a window, at most. */
    WINDOW_KEYS = 1024,       /* Slots of the table of keys. */
    WINDOW_GROUPS = 64,       /* Keys of a round; events of others wait for the next round. */
};

struct window_event {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
    uint32_t next; /* In a chip's list. */
};

struct window_chunk {
    uint32_t next; /* Of its bucket, or free. 0: none. */
    uint32_t count;
    struct window_event event[WINDOW_CHUNK_EVENTS];
};

/* A slot of the table of keys. */
struct window_key {
    uint64_t key;
    uint32_t round; /* In which it was used last. */
    uint32_t group;
};

/* Events of one key in a round: each on another chip. */
struct window_group {
    uint64_t key;
    uint32_t count;
    uint32_t *chips; /* Room for all chips. */
    int64_t *at_ps;
};

struct windows {
    uint32_t shift;   /* A bucket is 2^shift ps. */
    uint32_t width;   /* Buckets of a window. */
    uint64_t bucket;  /* The first one of the ring: all before have been handed over. */
    int64_t begin_ps; /* Instant at which the window at hand, its first bucket, begins. */
    int64_t end_ps;

    struct window_chunk *chunks; /* From 1. */
    uint32_t chunk_free;
    uint32_t chunk_count;
    uint64_t used[WINDOW_BUCKETS / 64]; /* Buckets of the ring with events; bits. */
    uint32_t buckets[WINDOW_BUCKETS];   /* First chunk. */
    struct window_event *far;           /* Events behind the ring. */
    uint32_t far_count;
    uint64_t far_bucket; /* The earliest of these. */

    struct window_event *events; /* Events of the window at hand; from 1. */
    uint32_t event_count;
    uint32_t event_free;
    uint32_t *first;  /* [chip]: its first event in the window; 0: none. */
    uint32_t *active; /* Chips with events, for the next round. */
    uint32_t active_count;
    uint32_t *spare; /* Chips of the round at hand. */
    uint32_t round;
    struct window_key keys[WINDOW_KEYS];
    struct window_group groups[WINDOW_GROUPS]; /* Lists of the round. */
    uint32_t group_count;
};

/* `pending_max`: the most events that wait. */
enum status windows_create(struct arena *arena, int64_t lookahead_ps, uint32_t chip_count,
                           uint64_t pending_max, struct windows **ret_windows,
                           struct error *reterr);

/* Collects the events of the next window; false if none waits. */
bool windows_open(struct windows *windows);
/* Finds the groups of the next round; false if the window has no event left. */
bool windows_round(struct windows *windows);

/* A post behind the ring, or into the window at hand. */
void windows_post_far(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip);
void windows_post_near(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip);

static inline void windows_bucket_add(struct windows *windows, int64_t at_ps, uint64_t key,
                                      uint32_t chip)
{
    uint32_t const slot = (uint32_t)((uint64_t)at_ps >> windows->shift) % WINDOW_BUCKETS;
    uint32_t index = windows->buckets[slot];
    struct window_chunk *chunk = &windows->chunks[index];
    if (index == 0 || chunk->count == WINDOW_CHUNK_EVENTS) {
        uint32_t const before = index;
        index = windows->chunk_free;
        if (index == 0) index = ++windows->chunk_count;
        chunk = &windows->chunks[index];
        if (index == windows->chunk_free) windows->chunk_free = chunk->next;
        chunk->next = before;
        chunk->count = 0;
        windows->buckets[slot] = index;
        windows->used[slot / 64] |= UINT64_C(1) << slot % 64;
    }
    chunk->event[chunk->count++] = (struct window_event){at_ps, key, chip, 0};
}

static inline void windows_post(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    uint64_t const bucket = (uint64_t)at_ps >> windows->shift;
    if (bucket - windows->bucket < WINDOW_BUCKETS)
        windows_bucket_add(windows, at_ps, key, chip);
    else if (at_ps < windows->end_ps)
        windows_post_near(windows, at_ps, key, chip);
    else
        windows_post_far(windows, at_ps, key, chip);
}

#endif
