/*
 * windows.h: the order of events where a post to another chip lies a lookahead ahead at least.
 *
 * Within a window shorter than the lookahead no event of one chip can follow from an event of
 * another one. So a chip needs its own events in order, and chips may take any order: events of
 * different instants are handed over together, if they have one key.
 *
 *     buckets    | e   e e | e       |     e   |   e     | ...     of posts still to come
 *                +---------+---------+---------+
 *     a window   chip 0: e     chip 3: e, e     chip 7: e          each chip's in order
 *     layer 0    key A: chips 0, 3      key B: chip 7              handed over group by group
 *     layer 1    key B: chip 3
 *
 * When a window opens, the n-th event of a chip joins the group of its key in layer n. Chips whose
 * events do not lie in the buckets in their order, that have more events than there are layers, or
 * that post to themselves within the window, are *apart*: they have lists of events, and take one
 * event in each round that follows the layers. Buckets are a ring. What lies behind its end waits,
 * and comes into the ring when the ring has turned.
 */
#ifndef SIM_ENGINE_WINDOWS_H
#define SIM_ENGINE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;

enum {
    WINDOW_BUCKETS = 4096,    /* Buckets of the ring. */
    WINDOW_CHUNK_EVENTS = 16, /* Of a bucket, in a row. */
    WINDOW_PARTS = 8,         /* Buckets of a window, at most. */
    WINDOW_KEYS = 1024,       /* Slots of the table of keys. */
    WINDOW_LAYERS = 4,        /* Events of a chip that join groups when a window opens. */
    WINDOW_GROUPS = 64,       /* Of a window or a round. Events of other keys wait for a round. */
    WINDOW_NONE = WINDOW_GROUPS,
};

struct window_event {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
    uint32_t next; /* In a chip's list; of a post that waits in a bucket: its channel. */
};

/* A slot of the table of keys. */
struct window_key {
    uint64_t key;
    uint32_t round;                /* In which it was used last. */
    uint8_t groups[WINDOW_LAYERS]; /* WINDOW_NONE: no group yet. */
};

/* Events of one key, each on another chip. */
struct window_group {
    uint64_t key;
    uint32_t layer;
    uint32_t count;
    uint32_t *chips; /* Room for all chips. */
    int64_t *at_ps;
};

/* The last event of a chip in the groups of a window. */
struct window_last {
    int64_t at_ps;
    uint32_t round; /* The round that opened its window; an earlier one: the chip has no event. */
    uint16_t layer; /* The layer of that event. WINDOW_LAYERS: the chip is apart. */
    uint16_t group;
};

struct windows {
    uint32_t shift;   /* A bucket is 2^shift ps. */
    uint32_t width;   /* Buckets of a window. */
    uint64_t bucket;  /* The first one of the ring: all before have been handed over. */
    int64_t begin_ps; /* Instant at which the window at hand, its first bucket, begins. */
    int64_t end_ps;

    struct window_event *posts; /* Chunks of WINDOW_CHUNK_EVENTS; the first one is not used. */
    uint32_t *chunk_next;       /* [chunk]: behind it in its bucket, or free. 0: none. */
    uint32_t chunk_free;
    uint32_t chunk_count;
    uint64_t used[WINDOW_BUCKETS / 64]; /* Buckets of the ring with events; bits. */
    uint32_t places[WINDOW_BUCKETS];    /* Behind the last event; a multiple of
                                           WINDOW_CHUNK_EVENTS: it needs a chunk. 0: empty. */
    uint32_t chunks[WINDOW_BUCKETS];    /* The first one of each bucket. */
    struct window_event *far;           /* Events behind the ring. */
    uint32_t far_count;
    uint64_t far_bucket; /* The earliest of these. */

    struct window_last *last; /* [chip] */
    uint32_t opened;          /* The round in which the window at hand was opened. */
    uint32_t apart_count;     /* Chips that are apart. */

    struct window_event *events; /* Events of chips that are apart; from 1. */
    uint32_t event_count;
    uint32_t event_free;
    uint32_t *first;  /* [chip]: its first event in the list; 0: none. */
    uint32_t *active; /* Chips with events, for the next round. */
    uint32_t active_count;
    uint32_t *spare; /* Chips of the round at hand. */
    uint32_t round;
    struct window_key keys[WINDOW_KEYS];
    struct window_key no_key;                  /* Of a key that has no group. */
    struct window_key **slots;                 /* [channel]: of the key that it posted last. */
    struct window_group groups[WINDOW_GROUPS]; /* Of the window, or of the round at hand. */
    uint32_t group_count;
};

/* `pending_max`: the most events that wait. */
enum status windows_create(struct arena *arena, int64_t lookahead_ps, uint32_t chip_count,
                           uint32_t channel_count, uint64_t pending_max,
                           struct windows **ret_windows, struct error *reterr);

/* Finds the groups of the next window; false if no event waits. */
bool windows_open(struct windows *windows);
/* Before a group of the window is handed over: leaves the events of chips that are apart by now to
 * rounds. */
void windows_sift(struct windows *windows, struct window_group *group);
/* Finds the groups of the next round, behind those of the window; false if the window has no event
 * left. */
bool windows_round(struct windows *windows);

/* A post behind the ring, into the window at hand, or that needs a chunk. */
void windows_post_apart(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t channel,
                        uint32_t chip);

/* Few instructions for most posts, and no registers to save. */
static inline void windows_post(struct windows *windows, int64_t at_ps, uint64_t key,
                                uint32_t channel, uint32_t chip)
{
    uint64_t const bucket = (uint64_t)at_ps >> windows->shift;
    uint32_t *const place = &windows->places[bucket % WINDOW_BUCKETS];
    if (bucket - windows->bucket < WINDOW_BUCKETS && *place % WINDOW_CHUNK_EVENTS != 0)
        windows->posts[(*place)++] = (struct window_event){at_ps, key, chip, channel};
    else
        windows_post_apart(windows, at_ps, key, channel, chip);
}

#endif
