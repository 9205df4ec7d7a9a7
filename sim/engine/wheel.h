/*
 * wheel.h: the order of entries: (instant, order) smallest first, by the digits of instants.
 *
 * A hierarchical timing wheel (Varghese, Lauck 1987, "Hashed and hierarchical timing wheels"). An
 * instant has digits of 12 bits. An entry hangs at the level of the highest digit in which it
 * differs from the wheel's own instant, in the slot of that digit:
 *
 *     level   a slot is    entries of a slot
 *     0       1 ps         of one instant
 *     1       4 ns         served together, in order, unless they are many
 *     2       17 us        } served if there is one; else hung at the levels below, when the
 *     3..5    69 ms ...    } wheel's instant comes to the slot
 *
 * All entries of a level come before all of the next level, and all of a slot before those of the
 * next slot; so the next entries are in the first slot of the lowest level, which two words of bits
 * tell. An entry is hung once for each level at which it has company, and nothing is compared but
 * the entries of one narrow slot.
 */
#ifndef SIM_ENGINE_WHEEL_H
#define SIM_ENGINE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;

enum {
    WHEEL_DIGIT_BITS = 12,
    WHEEL_LEVELS = 6, /* Digits of an instant before TIME_PS_END. */
    WHEEL_SLOTS = 1 << WHEEL_DIGIT_BITS,
    WHEEL_SORT_MAX = 8, /* Most entries of a slot of level 1 that are served together. */
};

/* A pending entry: its key, and the owner's data. Entry 0 stands for none. */
struct wheel_entry {
    uint64_t at_ps;
    uint64_t key;
    uint32_t chip;  /* The first one. */
    uint32_t block; /* First block of the chips of an entry with several; 0: one chip. */
};

struct wheel_level {
    uint64_t used;                         /* Words of `slots_used` that are not 0; bits. */
    uint64_t slots_used[WHEEL_SLOTS / 64]; /* Slots that are not empty; bits. */
    uint32_t slots[WHEEL_SLOTS];           /* First entry; 0: none. */
};

/* Told of an entry of one chip that is served soon, so that its data can be prefetched. */
typedef void wheel_ahead_fn(void *owner, uint64_t key, uint32_t chip);

struct wheel {
    struct wheel_entry *entries;
    uint32_t *next; /* [entry]: in its slot's list, or in the owner's list of free entries. */
    struct wheel_level *levels;
    uint64_t now_ps; /* The wheel's own instant: all that hangs is later. */
    uint32_t front_next;
    uint32_t front_count;
    uint32_t *front;       /* Entries up to the wheel's instant, in order. */
    uint32_t *spare;       /* For sorting. */
    wheel_ahead_fn *ahead; /* May be NULL. */
    void *ahead_owner;
};

/* `entries` has entry_max + 1 items. */
enum status wheel_create(struct arena *arena, struct wheel_entry *entries, uint32_t entry_max,
                         struct wheel *ret_wheel, struct error *reterr);

/* Adds an entry to the front. */
void wheel_front_add(struct wheel *wheel, uint32_t entry);
/* Serves the next slot; false if nothing waits. The front is empty when it is called. */
bool wheel_refill(struct wheel *wheel);
/* The owner has set all entries later by so much. */
void wheel_later(struct wheel *wheel, uint64_t by_ps);

/* Hangs an entry at a level. */
static inline void wheel_hang(struct wheel *wheel, struct wheel_level *level, uint32_t shift,
                              uint32_t entry, uint64_t at_ps)
{
    uint32_t const slot = (uint32_t)(at_ps >> shift) % WHEEL_SLOTS;
    uint32_t const first = level->slots[slot];
    wheel->next[entry] = first;
    level->slots[slot] = entry;
    if (first != 0) return;
    level->slots_used[slot / 64] |= UINT64_C(1) << slot % 64;
    level->used |= UINT64_C(1) << slot / 64;
}

/* Hangs an entry that is later than the wheel's instant. */
static inline void wheel_hang_later(struct wheel *wheel, uint32_t entry, uint64_t at_ps)
{
    uint64_t const differs = at_ps ^ wheel->now_ps;
    uint32_t const number = (63 - (uint32_t)__builtin_clzll(differs)) / WHEEL_DIGIT_BITS;
    wheel_hang(wheel, &wheel->levels[number], number * WHEEL_DIGIT_BITS, entry, at_ps);
}

/* Adds an entry whose instant and key are set. */
static inline void wheel_push(struct wheel *wheel, uint32_t entry, uint64_t at_ps)
{
    if (at_ps <= wheel->now_ps)
        wheel_front_add(wheel, entry);
    else
        wheel_hang_later(wheel, entry, at_ps);
}

/* The entry with the smallest key, or 0. */
static inline uint32_t wheel_pop(struct wheel *wheel)
{
    if (wheel->front_next == wheel->front_count && !wheel_refill(wheel)) return 0;
    return wheel->front[wheel->front_next++];
}

#endif
