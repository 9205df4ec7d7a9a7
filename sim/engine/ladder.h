/*
 * ladder.h: the order of entries: (instant, order) smallest first, by buckets of time.
 *
 * A one-rung ladder queue (Tang, Goh, Thng 2005, "Ladder queue: an O(1) priority queue structure
 * for large-scale discrete event simulation") with three changes: the rung is as long as twice the
 * median of what waits, so that a few far events do not widen its buckets; a bucket that is too
 * full gets a rung of its own; posts into the bucket being served go to a small heap instead of
 * into its sorted array. So random times cost a few dozen cycles, and ties or bad spreads cost a
 * sort at worst.
 *
 *     late   a binary heap     what was posted before front_end since the front was sorted
 *     front  a sorted array    the bucket being served
 *     rungs  lists by bucket   the last rung is the nearest and finest; each lies in one bucket
 *                              of the rung before it
 *     far    unsorted          at or after the end of the first rung
 */
#ifndef SIM_ENGINE_LADDER_H
#define SIM_ENGINE_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/units.h"

struct arena;

enum {
    LADDER_RUNGS_MAX = 12,
    LADDER_BUCKETS_MAX = 16384,
    LADDER_BUCKET_ENTRIES = 3, /* Wanted per bucket. */
    LADDER_BUCKET_SLOTS = 6,   /* In a bucket, before its list: a bucket is half a cache line. */
    LADDER_RANK_MAX = 8,       /* Most items sorted by counting ranks; more are inserted. */
    LADDER_INSERT_MAX = 24, /* Most items sorted by insertion; of more, sorted runs are merged. */
    LADDER_SORT_MAX = 48,   /* A bucket with more entries of different times is spread. */
    LADDER_LATE_MIN = 64,   /* A late heap is spread above this number plus the front's rest. */
};

/* A pending entry: its key, and the owner's data. Entry 0 stands for none. */
struct ladder_entry {
    uint64_t at_ps;
    uint64_t key;
    uint32_t next; /* In its bucket's list, or in the owner's list of free entries. */
    uint32_t channel;
    uint32_t chip;  /* Of an entry with one chip. */
    uint32_t block; /* First block of the chips of an entry with several; 0: one chip. */
};

struct ladder_item {
    uint64_t at_ps;
    uint64_t key;
    uint32_t entry;
};

struct ladder_far {
    uint64_t at_ps;
    uint32_t entry;
};

/* Entries in slots can be fetched ahead all at once, entries of a list only one after the other. */
struct ladder_bucket {
    uint32_t count; /* Slots in use. */
    uint32_t list;  /* First entry of the rest; 0: none. */
    uint32_t slots[LADDER_BUCKET_SLOTS];
};

struct ladder_rung {
    uint64_t start_ps;
    uint64_t end_ps;
    struct ladder_bucket *buckets;
    uint32_t shift; /* A bucket is 2^shift ps wide. */
    uint32_t bucket_count;
    uint32_t bucket_next; /* The next bucket to serve. */
};

/* Told of an entry that is served soon, so that it can prefetch the entry's data. */
typedef void ladder_ahead_fn(void *owner, const struct ladder_entry *entry);

struct ladder {
    struct ladder_entry *entries;
    uint64_t front_end_ps;
    uint32_t rung_count;
    uint32_t front_next;
    uint32_t front_count;
    uint32_t late_count;
    uint32_t far_count;
    struct ladder_item *front;
    struct ladder_item *late;
    struct ladder_item *spare; /* For sorting and spreading. */
    struct ladder_far *far;
    struct ladder_rung rungs[LADDER_RUNGS_MAX];
    ladder_ahead_fn *ahead; /* May be NULL. */
    void *ahead_owner;
};

/* `entries` has entry_max + 1 items. */
enum status ladder_create(struct arena *arena, struct ladder_entry *entries, uint32_t entry_max,
                          struct ladder *ret_ladder, struct error *reterr);

void ladder_late_push(struct ladder *ladder, uint32_t entry);
/* Serves the next bucket; false if nothing waits. Front and late are empty when it is called. */
bool ladder_refill(struct ladder *ladder);
uint32_t ladder_late_pop(struct ladder *ladder);
/* The owner has set all entries later by so much. */
void ladder_later(struct ladder *ladder, uint64_t by_ps);

static inline units_wide ladder_key(uint64_t at_ps, uint64_t key)
{
    return (units_wide)at_ps << 64 | key;
}

static inline void ladder_rung_push(struct ladder *ladder, const struct ladder_rung *rung,
                                    uint64_t at_ps, uint32_t entry)
{
    struct ladder_bucket *bucket = &rung->buckets[(at_ps - rung->start_ps) >> rung->shift];
    if (bucket->count < LADDER_BUCKET_SLOTS) {
        bucket->slots[bucket->count++] = entry;
    } else {
        ladder->entries[entry].next = bucket->list;
        bucket->list = entry;
    }
}

/* Adds an entry whose key is set. */
static inline void ladder_push(struct ladder *ladder, uint32_t entry)
{
    uint64_t const at_ps = ladder->entries[entry].at_ps;
    if (at_ps < ladder->front_end_ps) {
        ladder_late_push(ladder, entry);
        return;
    }
    for (uint32_t i = ladder->rung_count; i-- > 0;) {
        const struct ladder_rung *rung = &ladder->rungs[i];
        if (at_ps >= rung->end_ps) continue;
        ladder_rung_push(ladder, rung, at_ps, entry);
        return;
    }
    ladder->far[ladder->far_count++] = (struct ladder_far){at_ps, entry};
}

/* The entry with the smallest key, or 0. */
static inline uint32_t ladder_pop(struct ladder *ladder)
{
    if (ladder->late_count != 0) return ladder_late_pop(ladder);
    if (ladder->front_next == ladder->front_count && !ladder_refill(ladder)) return 0;
    return ladder->front[ladder->front_next++].entry;
}

#endif
