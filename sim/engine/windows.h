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
    WINDOW_SHIFT_MAX = 20, /* Longest bucket; a longer lookahead has a window of eight such ones. */
    WINDOW_PS_BITS = 24,   /* Bits of an instant of a window, from the window's begin on. */
};

struct window_event {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
    uint32_t next; /* In a chip's list. */
};

/* A post that waits in a bucket, which says what its instant's upper bits are. */
struct window_post {
    uint64_t key;
    uint32_t chip;
    uint32_t low_ps;
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

struct windows {
    uint32_t shift;   /* A bucket is 2^shift ps. */
    uint32_t width;   /* Buckets of a window. */
    uint64_t bucket;  /* The first one of the ring: all before have been handed over. */
    int64_t begin_ps; /* Begin of the window at hand. */
    int64_t end_ps;   /* End of that window, where the ring begins. */
    int64_t ring_ps;  /* Length of the ring, up to TIME_PS_END. */

    struct window_post *posts; /* Chunks of WINDOW_CHUNK_EVENTS; the first one is not used. */
    uint32_t *chunk_next;      /* [chunk]: behind it in its bucket, or free. 0: none. */
    uint32_t chunk_free;
    uint32_t chunk_count;
    uint64_t used[WINDOW_BUCKETS / 64]; /* Buckets of the ring with events; bits. */
    uint32_t places[WINDOW_BUCKETS];    /* Behind the last event; a multiple of
                                           WINDOW_CHUNK_EVENTS: it needs a chunk. 0: empty. */
    uint32_t chunks[WINDOW_BUCKETS];    /* The first one of each bucket. */
    struct window_event *far;           /* Events behind the ring. */
    uint32_t far_count;
    bool has_passed_end; /* An event was posted at or after TIME_PS_END: it is not kept. */
    uint64_t far_bucket; /* The earliest of these. */

    /* Of each chip, its last event in the groups of a window: window << 40 | ps from the window's
     * begin << 16 | group << 8 | layer. A chip of layer WINDOW_LAYERS is apart. */
    uint64_t *last;
    uint64_t window; /* The number of the window at hand, << 24; from 1, and 1 again. */
    uint32_t chip_count;
    bool has_apart;  /* Some chip is apart. */
    uint64_t *apart; /* [chip / 64]: bits of chips that are apart. */

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
    struct window_group groups[WINDOW_GROUPS]; /* Of the window, or of the round at hand. */
    uint32_t group_count;
};

/* `pending_max`: the most events that wait. */
enum status windows_create(struct arena *arena, int64_t lookahead_ps, uint32_t chip_count,
                           uint64_t pending_max, struct windows **ret_windows,
                           struct error *reterr);

/* Finds the groups of the next window; false if no event waits. */
bool windows_open(struct windows *windows);
/* Before a group of the window is handed over: leaves the events of chips that are apart by now to
 * rounds. */
void windows_sift(struct windows *windows, struct window_group *group);
/* Finds the groups of the next round, behind those of the window; false if the window has no event
 * left. */
bool windows_round(struct windows *windows);

/* A post behind the ring, into the window at hand, or that needs a chunk. */
void windows_post_apart(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip);

/* Few instructions for most posts, and no registers to save. */
static inline void windows_post(struct windows *windows, int64_t at_ps, uint64_t key, uint32_t chip)
{
    if ((uint64_t)(at_ps - windows->end_ps) < (uint64_t)windows->ring_ps) {
        uint32_t *const place =
            &windows->places[((uint64_t)at_ps >> windows->shift) % WINDOW_BUCKETS];
        if (*place % WINDOW_CHUNK_EVENTS != 0) {
            windows->posts[(*place)++] = (struct window_post){key, chip, (uint32_t)at_ps};
            return;
        }
    }
    windows_post_apart(windows, at_ps, key, chip);
}

#endif
