/*
 * guard.h: memory that nobody was given, for AddressSanitizer. The sanitizer watches what malloc
 * gives; an arena gives parts of that, and an overrun of one part would end in the next. So the
 * arena hides what it has not given, and leaves GUARD_BYTES hidden behind each part. Memory that is
 * given unset is spoilt, so that a result shows who reads it before it is written. Builds without
 * the sanitizer hide and spoil nothing.
 */
#ifndef SIM_BASE_GUARD_H
#define SIM_BASE_GUARD_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define GUARD_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARD_WATCHED 1
#endif
#endif

#ifdef GUARD_WATCHED
#include <sanitizer/asan_interface.h>
#include <string.h>
enum { GUARD_BYTES = 64, GUARD_SPOILT = 0xa5 };

static inline void guard_hide(const void *memory, size_t size_bytes)
{
    __asan_poison_memory_region(memory, size_bytes);
}

static inline void guard_show(const void *memory, size_t size_bytes)
{
    __asan_unpoison_memory_region(memory, size_bytes);
}

static inline void guard_spoil(void *memory, size_t size_bytes)
{
    memset(memory, GUARD_SPOILT, size_bytes);
}
#else
enum { GUARD_BYTES = 0 };

static inline void guard_hide(const void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
}

static inline void guard_show(const void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
}

static inline void guard_spoil(void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
}
#endif

#endif
