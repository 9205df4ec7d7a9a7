/*
 * Tests that walk through very many combinations take every THIN-th one with sanitizers, which look
 * for slips of memory and are five times as slow; the optimised builds take them all.
 */
#ifndef PODSIM_TESTS_SUPPORT_THIN_H
#define PODSIM_TESTS_SUPPORT_THIN_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define THIN 5
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define THIN 5
#endif
#ifndef THIN
#define THIN 1
#endif

/* Whether a combination is left out; `*count` is the walk's own, from 0. */
static inline bool thin_skips(uint32_t *count)
{
    return (*count)++ % THIN != 0;
}

#endif
