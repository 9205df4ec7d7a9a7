#include "sim/engine/heap.h"

#include <stdbool.h>

#include "sim/base/arena.h"

enum status heap_create(struct arena *arena, uint64_t event_max, struct heap *ret_heap,
                        struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try_unset(arena, event_max, sizeof *ret_heap->events, &memory, reterr));
    *ret_heap = (struct heap){memory, 0};
    return STATUS_OK;
}

static bool event_before(const struct heap_event *left, const struct heap_event *right)
{
    if (left->at_ps != right->at_ps) return left->at_ps < right->at_ps;
    if (left->key != right->key) return left->key < right->key;
    return left->chip < right->chip;
}

void heap_push(struct heap *heap, struct heap_event event)
{
    uint64_t i = heap->count++;
    while (i > 0 && event_before(&event, &heap->events[(i - 1) / 2])) {
        heap->events[i] = heap->events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->events[i] = event;
}

struct heap_event heap_pop(struct heap *heap)
{
    struct heap_event const first = heap->events[0];
    struct heap_event const last = heap->events[--heap->count];
    uint64_t i = 0;
    for (;;) {
        uint64_t child = 2 * i + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count && event_before(&heap->events[child + 1], &heap->events[child]))
            child++;
        if (!event_before(&heap->events[child], &last)) break;
        heap->events[i] = heap->events[child];
        i = child;
    }
    heap->events[i] = last;
    return first;
}
