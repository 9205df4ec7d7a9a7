/*
 * contention.h: what one routed item of a plan takes by itself, from its messages and their ways.
 *
 * The times come from a small simulation on the machine without memory, fold or other ops: each
 * message takes the links of its way at once when it is sent, in the order of sending, each link
 * one after the other. So times know what closed forms do not: who is how far from whom, two
 * messages on one link, cables that a hash names twice, tiers that are oversubscribed. Chips that
 * do the same are simulated once.
 *
 * Time is linear in bytes, nearly: one simulation without bytes and one with many give both terms,
 * and the same with two pieces, where pieces are more than one, give what each further piece costs.
 * Times depend neither on the size of the array, nor on what a protocol takes on ways that no
 * message goes. So a caller that asks for many sizes has them remembered.
 */
#ifndef SIM_CHOOSE_CONTENTION_H
#define SIM_CHOOSE_CONTENTION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

struct arena;
struct contention;

enum {
    CONTENTION_WIRES = MACHINE_AXES_MAX + LEVELS_MAX, /* Axes of the grid, then levels. */
    CONTENTION_ENTRIES_MAX = 192,
};

/* What the simulations of an item tell. Times of a byte are for a byte of the item's unit. */
struct contention_times {
    double latency_s; /* One piece, until the last message is there. */
    double byte_s;
    double next_latency_s; /* How much later the next piece is. */
    double next_byte_s;
    double wire_byte_s[CONTENTION_WIRES]; /* The busiest link of each, for one piece. */
};

/* The messages and ways of items, kept while one caller asks for plans of the same group and root
 * with other protocols. `arena` is the caller's; all else is zero at the start. */
struct contention_kept {
    struct arena *arena;
    struct contention *of[PLAN_ITEMS_MAX];
    uint32_t count;
};

/* The times that are known of one machine. Several threads may ask for entries and add
 * entries: an entry never changes once it is counted, and is the same whichever thread adds it. All
 * zero: no entry yet. */
struct contention_cache {
    struct contention_entry {
        struct group group;
        const struct primitive *primitive;
        int64_t message_ps[1 + LEVELS_MAX]; /* Zero of ways that no message goes. */
        uint32_t root;
        uint8_t dimension;
        uint8_t at_root, off_root; /* Where single links are overridden. */
        bool flat;
        bool simulated; /* False: there are too many messages to simulate. */
        bool has_next;  /* The times of a next piece are known. */
        double once_s;  /* One piece with many bytes. */
        struct contention_times times;
    } entry[CONTENTION_ENTRIES_MAX];
    atomic_uint count;
    atomic_bool lock;             /* Of whoever adds an entry. */
    struct contention_kept *kept; /* NULL unless a single caller asks. */
};

/* contention.c: fills the entry's times. `has_once`: those of one piece are there already. `kept`
 * may be NULL. False: there are too many messages. */
bool contention_simulate(const struct machine *machine, const struct plan *plan,
                         const struct plan_item *item, bool has_once, struct contention_kept *kept,
                         struct contention_entry *entry);

/* Times of the next piece are filled where some item of the plan has more than one piece.
 *
 * False where an item is not routed, is the switches' work, or has too many messages for an
 * estimate; then, where cables are hashed and messages can be counted, the times of a byte alone
 * are filled, and else all is zero. `known` may be NULL. */
bool contention_find(const struct machine *machine, const struct plan *plan,
                     const struct plan_item *item, struct contention_cache *known,
                     struct contention_times *ret_times);

#endif
