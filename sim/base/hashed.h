/*
 * hashed.h: items that are found by a hash of their name. An item is a number from 1. Names are the
 * owner's, who compares them: items of unlike names may share a bucket. Items of one bucket are
 * found in the order in which they were added.
 */
#ifndef SIM_BASE_HASHED_H
#define SIM_BASE_HASHED_H

#include <stdint.h>

#include "sim/base/status.h"

struct arena;

struct hashed {
    uint32_t *first;    /* [bucket] 0: none. */
    uint32_t *next;     /* [item] The next of its bucket; 0: none. */
    uint32_t *hashes;   /* [item]: the low bits of its hash. */
    uint32_t mask;      /* Buckets less one: few, so that a processor's nearest cache holds them. */
    uint32_t most_mask; /* The mask of the buckets that there is memory for. */
    uint32_t count;     /* Items. */
};

/* Has room for the items 1 .. item_max. */
enum status hashed_build(struct arena *arena, uint32_t item_max, struct hashed *ret_hashed,
                         struct error *reterr);

/* An item is added once, and removed with the hash that it was added with. */
void hashed_add(struct hashed *hashed, uint64_t hash, uint32_t item);
void hashed_remove(struct hashed *hashed, uint64_t hash, uint32_t item);

/* The first item of the hash's bucket; 0: none. */
static inline uint32_t hashed_first(const struct hashed *hashed, uint64_t hash)
{
    return hashed->first[hash & hashed->mask];
}

static inline uint32_t hashed_next(const struct hashed *hashed, uint32_t item)
{
    return hashed->next[item];
}

#endif
