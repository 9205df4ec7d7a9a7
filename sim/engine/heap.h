/*
 * heap.h: the reference queue: a plain binary heap of single events by (instant, order, chip).
 *
 * It is simple on purpose: tests compare the fast queue with it.
 */
#ifndef SIM_ENGINE_HEAP_H
#define SIM_ENGINE_HEAP_H

#include <stdint.h>

#include "sim/base/status.h"

struct arena;

struct heap_event {
    int64_t at_ps;
    uint64_t key;
    uint32_t chip;
};

struct heap {
    struct heap_event *events;
    uint64_t count;
};

enum status heap_create(struct arena *arena, uint64_t event_max, struct heap *ret_heap,
                        struct error *reterr);
void heap_push(struct heap *heap, struct heap_event event);
struct heap_event heap_pop(struct heap *heap); /* The heap must not be empty. */

#endif
