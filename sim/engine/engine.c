#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/engine/engine_state.h"

enum {
    WATCH_ENTRIES = 4096,
    WATCH_EVENTS = 65536,
};

static const uint64_t pending_limit = UINT64_C(1) << 31; /* Entries are numbered in 32 bits. */

/* Instant of an entry that is free. */
static const uint64_t free_ps = UINT64_MAX;

static enum status create_fast(struct arena *arena, struct engine *engine, struct error *reterr)
{
    const struct engine_options *options = &engine->options;
    /* A list has at least two chips a block; only the list being handled may be down to one chip
     * in its last block, besides the block in the handler's hands, and block 0 is never used. */
    uint64_t const block_max = options->pending_max / 2 + 3;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, (uint64_t)options->channel_count, sizeof *engine->channels, &memory,
                         reterr));
    engine->channels = memory;
    STATUS_TRY(
        arena_try_unset(arena, options->pending_max + 1, sizeof *engine->entries, &memory, reterr));
    engine->entries = memory;
    engine->entries[0].at_ps = free_ps;
    STATUS_TRY(arena_try_unset(arena, block_max, sizeof *engine->blocks, &memory, reterr));
    engine->blocks = memory;
    engine->blocks[0].count = BLOCK_CHIPS;
    STATUS_TRY(wheel_create(arena, engine->entries, (uint32_t)options->pending_max, &engine->wheel,
                            reterr));
    engine->wheel.ahead = options->ahead;
    engine->wheel.ahead_owner = options->owner;
    return STATUS_OK;
}

enum status engine_create(struct arena *arena, const struct engine_options *options,
                          struct engine **ret_engine, struct error *reterr)
{
    static const char *const queues[] = {"fast", "reference", NULL};
    uint32_t const queue = name_find(options->queue, queues);
    bool const is_reference = queue == 1;
    if (queues[queue] == NULL)
        return error_set(reterr, STATUS_NOT_FOUND, "",
                         "unknown queue \"%s\"; known are \"fast\" and \"reference\"",
                         options->queue);
    if (options->pending_max >= pending_limit)
        return error_set(
            reterr, STATUS_LIMIT, "", "%llu events may wait at once, more than the queue's %llu",
            (unsigned long long)options->pending_max, (unsigned long long)pending_limit - 1);
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct engine), &memory, reterr));
    struct engine *engine = memory;
    engine->options = *options;
    engine->is_reference = is_reference;
    engine->pending_max = is_reference ? 0 : options->pending_max;
    if (is_reference)
        STATUS_TRY(heap_create(arena, options->pending_max, &engine->heap, reterr));
    else
        STATUS_TRY(create_fast(arena, engine, reterr));
    *ret_engine = engine;
    return STATUS_OK;
}

static uint32_t block_take(struct engine *engine)
{
    uint32_t block = engine->block_free;
    if (block != 0)
        engine->block_free = engine->blocks[block].next;
    else
        block = ++engine->block_count;
    engine->blocks[block].next = 0;
    engine->blocks[block].count = 0;
    return block;
}

/* The last block of the channel's entry is full, or the entry has only its first chip. */
static void channel_extend(struct engine *engine, struct engine_channel *channel, uint32_t chip)
{
    struct wheel_entry *entry = &engine->entries[channel->entry];
    uint32_t const index = block_take(engine);
    struct engine_block *block = &engine->blocks[index];
    if (channel->block == 0) {
        entry->block = index;
        block->chips[block->count++] = entry->chip;
    } else {
        engine->blocks[channel->block].next = index;
    }
    block->chips[block->count++] = chip;
    channel->block = index;
}

/* Not inlined, so that a post to an entry that is open has few registers to save. */
static __attribute__((noinline)) void channel_open(struct engine *engine,
                                                   struct engine_channel *channel, uint64_t at_ps,
                                                   uint64_t key, uint32_t chip)
{
    uint32_t index = engine->entry_free;
    if (index != 0)
        engine->entry_free = engine->wheel.next[index];
    else
        index = ++engine->entry_count;
    engine->entries[index] = (struct wheel_entry){.at_ps = at_ps, .key = key, .chip = chip};
    *channel = (struct engine_channel){index, 0, chip, chip};
    wheel_push(&engine->wheel, index, at_ps);
}

/* Whether a channel's first or last chip is that chip. The same event twice is no batch: what the
 * first of the two posts for the same instant may come before the second. Chips that are alike post
 * in one order, so where all of them post once more, the first one does so first. */
static inline bool channel_has_twin(const struct engine_channel *channel, uint32_t chip)
{
    return chip == channel->first || chip == channel->last;
}

/* A post to the heap, or of a run that ends with an error. */
static __attribute__((noinline)) void post_heap(struct engine *engine, int64_t at_ps, uint64_t key,
                                                uint32_t chip)
{
    if (at_ps >= TIME_PS_END) {
        engine->has_passed_end = true;
    } else if (engine->pending_count >= engine->options.pending_max) {
        SIM_ASSERT(engine->options.pending_is_limit);
        engine->has_overflowed = true;
        engine->check_entries = 0;
    } else {
        engine->pending_count++;
        heap_push(&engine->heap, (struct heap_event){at_ps, key, chip});
    }
}

/* A post that has no place in the wheel. */
static __attribute__((noinline)) void post_elsewhere(struct engine *engine, int64_t at_ps,
                                                     uint64_t key, uint32_t chip)
{
    SIM_ASSERT(at_ps >= engine->now_ps && chip < engine->options.chip_count);
    if (engine->windows == NULL || engine->pending_count >= engine->options.pending_max) {
        post_heap(engine, at_ps, key, chip);
        return;
    }
    engine->pending_count++;
    windows_post(engine->windows, at_ps, key, chip);
}

void engine_post(struct engine *engine, int64_t at_ps, uint64_t key, uint32_t channel,
                 uint32_t chip)
{
    if (engine->pending_count >= engine->pending_max || at_ps >= TIME_PS_END) {
        post_elsewhere(engine, at_ps, key, chip);
        return;
    }
    SIM_ASSERT(at_ps >= engine->now_ps);
    SIM_ASSERT(channel < engine->options.channel_count && chip < engine->options.chip_count);
    engine->pending_count++;
    struct engine_channel *last = &engine->channels[channel];
    const struct wheel_entry *entry = &engine->entries[last->entry];
    if (entry->at_ps != (uint64_t)at_ps || entry->key != key || channel_has_twin(last, chip)) {
        channel_open(engine, last, (uint64_t)at_ps, key, chip);
        return;
    }
    struct engine_block *block = &engine->blocks[last->block];
    last->last = chip;
    if (block->count < BLOCK_CHIPS)
        block->chips[block->count++] = chip;
    else
        channel_extend(engine, last, chip);
}

void engine_post_many(struct engine *engine, int64_t at_ps, uint64_t key, uint32_t channel,
                      const uint32_t *chips, uint32_t count)
{
    uint32_t posted = 0;
    bool const singly = engine->pending_count + count > engine->pending_max;
    while (posted < count) {
        /* Opens the entry, or a block of its list. */
        engine_post(engine, at_ps, key, channel, chips[posted++]);
        if (singly || at_ps >= TIME_PS_END) continue;
        struct engine_channel *last = &engine->channels[channel];
        struct engine_block *block = &engine->blocks[last->block];
        uint32_t const room = BLOCK_CHIPS - block->count, left = count - posted;
        uint32_t const more = left < room ? left : room;
        memcpy(&block->chips[block->count], &chips[posted], more * sizeof *chips);
        block->count += more;
        engine->pending_count += more;
        posted += more;
        last->last = chips[posted - 1];
    }
}

/* Calls the handler with `count` chips that are pending no more. */
static void engine_call(struct engine *engine, uint64_t key, const uint32_t *chips, uint32_t count)
{
    engine->pending_count -= count;
    engine->event_count += count;
    engine->options.handler(engine->options.owner, engine, engine->now_ps, key, chips, count);
}

static void serve_reference(struct engine *engine)
{
    struct heap_event const event = heap_pop(&engine->heap);
    engine->now_ps = event.at_ps;
    engine->popped_count++;
    engine_call(engine, event.key, &event.chip, 1);
}

static inline void serve_fast(struct engine *engine)
{
    uint32_t const index = wheel_pop(&engine->wheel);
    SIM_ASSERT(index != 0);
    struct wheel_entry *entry = &engine->entries[index];
    uint64_t const key = entry->key;
    uint32_t const chip = entry->chip;
    uint32_t block = entry->block;
    engine->now_ps = (int64_t)entry->at_ps;
    engine->popped_count++;
    entry->at_ps = free_ps;
    engine->wheel.next[index] = engine->entry_free;
    engine->entry_free = index;
    if (block == 0) engine_call(engine, key, &chip, 1);
    while (block != 0) {
        struct engine_block *piece = &engine->blocks[block];
        uint32_t const next = piece->next;
        engine_call(engine, key, piece->chips, piece->count);
        piece->next = engine->block_free;
        engine->block_free = block;
        block = next;
    }
}

/* Between batches, every few thousand events: the limit and the watcher. */
static enum status engine_check(struct engine *engine, struct error *reterr)
{
    const struct engine_options *options = &engine->options;
    if (engine->has_overflowed)
        return error_set(reterr, STATUS_LIMIT, "/run",
                         "more than %llu events wait at once, which is more than a run can hold",
                         (unsigned long long)options->pending_max);
    if (options->event_count_max != 0 && engine->event_count >= options->event_count_max)
        return error_set(reterr, STATUS_LIMIT, "",
                         "%llu events were handled, which is the limit, up to %lld ps; "
                         "%llu still wait",
                         (unsigned long long)engine->event_count, (long long)engine->now_ps,
                         (unsigned long long)engine->pending_count);
    if (options->watch != NULL &&
        !options->watch(options->watch_owner, engine->now_ps, engine->event_count))
        return error_set(reterr, STATUS_INTERRUPTED, "", "stopped at %lld ps",
                         (long long)engine->now_ps);
    engine->check_entries = engine->popped_count + WATCH_ENTRIES;
    engine->check_events = engine->event_count + WATCH_EVENTS;
    if (options->event_count_max != 0 && engine->check_events > options->event_count_max)
        engine->check_events = options->event_count_max;
    return STATUS_OK;
}

static inline void serve(struct engine *engine, bool is_reference)
{
    if (engine->windows != NULL)
        engine_window_serve(engine);
    else if (is_reference)
        serve_reference(engine);
    else
        serve_fast(engine);
}

enum status engine_run(struct engine *engine, struct error *reterr)
{
    bool const is_reference = engine->is_reference;
    engine->is_paused = false;
    while (engine->pending_count > 0) {
        if (engine->popped_count >= engine->check_entries ||
            engine->event_count >= engine->check_events) {
            if (engine->is_paused) break;
            STATUS_TRY(engine_check(engine, reterr));
        }
        serve(engine, is_reference);
    }
    if (engine->has_passed_end)
        return error_set(reterr, STATUS_LIMIT, "/run",
                         "the step takes longer than %lld days, which is more than a run can count",
                         (long long)(TIME_PS_END / (86400 * TIME_PS_PER_S)));
    return STATUS_OK;
}

void engine_pause(struct engine *engine)
{
    engine->is_paused = true;
    engine->check_entries = 0;
}

void engine_drain(struct engine *engine, engine_handler_fn *handler, void *owner)
{
    uint64_t const event_count = engine->event_count, popped_count = engine->popped_count;
    int64_t const now_ps = engine->now_ps;
    SIM_ASSERT(engine->windows == NULL);
    struct engine_options const options = engine->options;
    engine->options.handler = handler;
    engine->options.owner = owner;
    engine->options.ahead = NULL;
    engine->wheel.ahead = NULL;
    while (engine->pending_count > 0) serve(engine, engine->is_reference);
    engine->event_count = event_count;
    engine->popped_count = popped_count;
    engine->now_ps = now_ps;
    engine->wheel.now_ps = (uint64_t)now_ps;
    engine->options = options;
    engine->wheel.ahead = options.ahead;
}

void engine_continue(struct engine *engine, const struct engine *other, uint64_t factor)
{
    engine->now_ps = other->now_ps;
    engine->event_count = other->event_count * factor;
    engine->popped_count = other->popped_count;
}

static void forget(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                   const uint32_t *chips, uint32_t count)
{
    (void)owner, (void)engine, (void)now_ps, (void)key, (void)chips, (void)count;
}

void engine_forget(struct engine *engine)
{
    engine_drain(engine, forget, NULL);
}

void engine_pending_each(struct engine *engine, engine_pending_fn *each, void *owner)
{
    SIM_ASSERT(!engine->is_reference && engine->windows == NULL);
    for (uint32_t i = 1; i <= engine->entry_count; i++) {
        const struct wheel_entry *entry = &engine->entries[i];
        int64_t const at_ps = (int64_t)entry->at_ps;
        if (entry->at_ps == free_ps) continue;
        if (entry->block == 0) each(owner, at_ps, entry->key, &entry->chip, 1);
        for (uint32_t b = entry->block; b != 0; b = engine->blocks[b].next)
            each(owner, at_ps, entry->key, engine->blocks[b].chips, engine->blocks[b].count);
    }
}

void engine_jump(struct engine *engine, int64_t by_ps, uint64_t event_count)
{
    SIM_ASSERT(!engine->is_reference && engine->windows == NULL && by_ps >= 0);
    for (uint32_t i = 1; i <= engine->entry_count; i++)
        if (engine->entries[i].at_ps != free_ps) engine->entries[i].at_ps += (uint64_t)by_ps;
    wheel_later(&engine->wheel, (uint64_t)by_ps);
    engine->now_ps += by_ps;
    engine->event_count += event_count;
}

void engine_restart(struct engine *engine, int64_t now_ps)
{
    SIM_ASSERT(engine->is_reference && engine->pending_count == 0);
    engine->now_ps = now_ps;
    engine->event_count = engine->popped_count = 0;
    engine->check_events = engine->check_entries = 0;
}

void engine_run_before(struct engine *engine, int64_t at_ps, uint64_t key)
{
    SIM_ASSERT(engine->is_reference);
    while (engine->pending_count > 0) {
        const struct heap_event *next = engine->heap.events;
        if (next->at_ps > at_ps || (next->at_ps == at_ps && next->key >= key)) return;
        serve_reference(engine);
    }
}

void engine_count(struct engine *engine, int64_t event_count)
{
    engine->event_count += (uint64_t)event_count;
}

bool engine_is_reference(const struct engine *engine)
{
    return engine->is_reference;
}

uint64_t engine_pending_count(const struct engine *engine)
{
    return engine->pending_count;
}

int64_t engine_now_ps(const struct engine *engine)
{
    return engine->now_ps;
}

uint64_t engine_event_count(const struct engine *engine)
{
    return engine->event_count;
}

uint64_t engine_entry_count(const struct engine *engine)
{
    return engine->popped_count;
}
