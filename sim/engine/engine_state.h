/*
 * engine_state.h: an engine as its files see it. Internal to sim/engine.
 */
#ifndef SIM_ENGINE_ENGINE_STATE_H
#define SIM_ENGINE_ENGINE_STATE_H

#include "sim/engine/engine.h"
#include "sim/engine/heap.h"
#include "sim/engine/wheel.h"
#include "sim/engine/windows.h"

enum { BLOCK_CHIPS = ENGINE_BATCH_MAX };

/* A piece of an entry's list of chips. Block 0 is a full one that holds nothing. */
struct engine_block {
    uint32_t next; /* In the entry's list, or in the list of free blocks. 0: none. */
    uint32_t count;
    uint32_t chips[BLOCK_CHIPS];
};

/* The entry that was opened last in a channel, to which equal posts are added as long as it is
 * pending. */
struct engine_channel {
    uint32_t entry;
    uint32_t block; /* The last of the entry; 0 as long as it has only one chip. */
    uint32_t first; /* Chip of the entry, and the chip that was added last. */
    uint32_t last;
};

struct engine {
    struct engine_channel *channels;
    struct wheel_entry *entries; /* From 1. */
    struct engine_block *blocks;
    uint32_t entry_free;  /* Used last, so that it is still in the cache. 0: none. */
    uint32_t entry_count; /* Ever used. */
    uint32_t block_free;
    uint32_t block_count;
    uint64_t pending_count; /* Events. */
    uint64_t pending_max;   /* Most events of the wheel; of other queues 0. */
    struct wheel wheel;

    struct heap heap;
    struct windows *windows; /* NULL: the wheel. */
    engine_window_fn *window_handler;
    engine_window_ahead_fn *window_ahead; /* NULL: nothing is fetched ahead. */
    bool is_reference;
    bool has_overflowed; /* More events waited than pending_max. */
    bool has_passed_end; /* An event was posted after TIME_PS_END. */
    bool is_paused;

    int64_t now_ps;
    uint64_t event_count;
    uint64_t popped_count;  /* Entries. */
    uint64_t check_events;  /* When to look at the limit and to call the watcher. */
    uint64_t check_entries; /* 0: at once. */
    struct engine_options options;
};

/* engine_windows.c: hands over the events of the next window. */
void engine_window_serve(struct engine *engine);

#endif
