#include "sim/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/guard.h"

/* The first block of an arena is small, and each further one twice as long: what is zeroed is no
 * more than a few times what is taken, and arenas of a moment are many. */
enum {
    ARENA_BLOCK_FIRST_BYTES = 4 * 1024,
    ARENA_BLOCK_BYTES = 64 * 1024,
    ARENA_ALIGN_BYTES = 64, /* A cache line, so that arrays of hot state do not share lines. */
};

static const uint64_t arena_limit_default_bytes = 16ull << 30;

struct arena_block {
    struct arena_block *next;
    void *memory; /* As calloc gave it. */
};

struct arena {
    struct arena_block *blocks;
    unsigned char *free;
    uint64_t free_bytes;
    uint64_t block_bytes; /* Of the next block. */
    uint64_t taken_bytes;
    uint64_t limit_bytes;
};

struct arena *arena_create(uint64_t limit_bytes)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) return NULL;
    arena->limit_bytes = limit_bytes ? limit_bytes : arena_limit_default_bytes;
    arena->block_bytes = ARENA_BLOCK_FIRST_BYTES;
    return arena;
}

void arena_destroy(struct arena *arena)
{
    if (arena == NULL) return;
    for (struct arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block->memory);
        free(block);
    }
    free(arena);
}

/* Rounds an address up to the arena's alignment. */
static unsigned char *align_up(unsigned char *address)
{
    uintptr_t const misfit = (uintptr_t)address % ARENA_ALIGN_BYTES;
    return misfit ? address + (ARENA_ALIGN_BYTES - misfit) : address;
}

static unsigned char *block_add(struct arena *arena, uint64_t size_bytes, bool zeroed)
{
    struct arena_block *block = malloc(sizeof *block);
    if (block == NULL) return NULL;
    size_t const bytes = (size_t)size_bytes + ARENA_ALIGN_BYTES;
    block->memory = zeroed ? calloc(1, bytes) : malloc(bytes);
    if (block->memory == NULL) {
        free(block);
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return align_up(block->memory);
}

/* Whether that much is left of the limit, and how much it is with the alignment. */
static bool is_within_limit(const struct arena *arena, uint64_t count, uint64_t size_bytes,
                            uint64_t *ret_bytes)
{
    uint64_t const left_bytes = arena->limit_bytes - arena->taken_bytes;
    uint64_t asked_bytes = 0;
    if (__builtin_mul_overflow(count, size_bytes, &asked_bytes)) return false;
    if (asked_bytes > left_bytes) return false;
    *ret_bytes = asked_bytes == 0 ? ARENA_ALIGN_BYTES
                                  : (asked_bytes + ARENA_ALIGN_BYTES - 1) / ARENA_ALIGN_BYTES *
                                        ARENA_ALIGN_BYTES;
    return *ret_bytes <= left_bytes;
}

/* A block for small items, one of which needs that much. */
static bool block_begin(struct arena *arena, uint64_t needed_bytes)
{
    while (arena->block_bytes < needed_bytes) arena->block_bytes *= 2;
    unsigned char *fresh = block_add(arena, arena->block_bytes, true);
    if (fresh == NULL) return false;
    guard_hide(fresh, (size_t)arena->block_bytes);
    arena->free = fresh;
    arena->free_bytes = arena->block_bytes;
    if (arena->block_bytes < ARENA_BLOCK_BYTES) arena->block_bytes *= 2;
    return true;
}

static void *take(struct arena *arena, uint64_t count, uint64_t size_bytes, bool zeroed)
{
    uint64_t bytes = 0;
    if (!is_within_limit(arena, count, size_bytes, &bytes)) return NULL;
    uint64_t const asked_bytes = count * size_bytes;
    uint64_t const guarded_bytes = bytes + GUARD_BYTES;
    unsigned char *memory = NULL;
    if (bytes > ARENA_BLOCK_BYTES / 4) {
        memory = block_add(arena, guarded_bytes, zeroed);
        if (memory == NULL) return NULL;
        guard_hide(memory + asked_bytes, (size_t)(guarded_bytes - asked_bytes));
    } else {
        if (guarded_bytes > arena->free_bytes && !block_begin(arena, guarded_bytes)) return NULL;
        memory = arena->free;
        guard_show(memory, (size_t)asked_bytes);
        arena->free += guarded_bytes;
        arena->free_bytes -= guarded_bytes;
    }
    arena->taken_bytes += bytes;
    if (!zeroed) guard_spoil(memory, (size_t)asked_bytes);
    return memory;
}

void *arena_take(struct arena *arena, uint64_t count, uint64_t size_bytes)
{
    return take(arena, count, size_bytes, true);
}

static enum status try_take(struct arena *arena, uint64_t count, uint64_t size_bytes, bool zeroed,
                            void **ret_memory, struct error *reterr)
{
    void *memory = take(arena, count, size_bytes, zeroed);
    uint64_t bytes = 0;
    if (memory == NULL && is_within_limit(arena, count, size_bytes, &bytes)) {
        return error_set(reterr, STATUS_NO_MEMORY, "",
                         "the system has no memory for %llu items of %llu bytes",
                         (unsigned long long)count, (unsigned long long)size_bytes);
    }
    if (memory == NULL) {
        return error_set(reterr, STATUS_NO_MEMORY, "",
                         "%llu items of %llu bytes do not fit the memory limit of %llu bytes",
                         (unsigned long long)count, (unsigned long long)size_bytes,
                         (unsigned long long)arena->limit_bytes);
    }
    *ret_memory = memory;
    return STATUS_OK;
}

enum status arena_try(struct arena *arena, uint64_t count, uint64_t size_bytes, void **ret_memory,
                      struct error *reterr)
{
    return try_take(arena, count, size_bytes, true, ret_memory, reterr);
}

enum status arena_try_unset(struct arena *arena, uint64_t count, uint64_t size_bytes,
                            void **ret_memory, struct error *reterr)
{
    return try_take(arena, count, size_bytes, false, ret_memory, reterr);
}

char *arena_text(struct arena *arena, const char *text)
{
    size_t const length = strlen(text);
    char *copy = arena_take(arena, 1, length + 1);
    if (copy != NULL) memcpy(copy, text, length + 1);
    return copy;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int const length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : arena_take(arena, 1, (uint64_t)length + 1);
    if (text == NULL) return NULL;
    va_start(arguments, format);
    (void)vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

uint64_t arena_taken_bytes(const struct arena *arena)
{
    return arena->taken_bytes;
}
