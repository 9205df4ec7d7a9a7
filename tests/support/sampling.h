/*
 * Tests that walk through very many combinations, or draw them, may take every n-th only: what the
 * environment variable PODSIM_TEST_THIN says, else every fifth with sanitizers, which look for
 * slips of memory and are five times as slow, and else all. tools/test says what each build takes:
 * a submission's builds take samples, and with --nightly one of them takes all.
 */
#ifndef PODSIM_TESTS_SUPPORT_SAMPLING_H
#define PODSIM_TESTS_SUPPORT_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/base/guard.h"

enum { SAMPLING_MOST = 20 }; /* A test of fewer would prove next to nothing. */

#ifdef GUARD_WATCHED
enum { SAMPLING_UNASKED = 5 };
#else
enum { SAMPLING_UNASKED = 1 };
#endif

/* One of how many is taken. */
static inline uint32_t sampling_of(void)
{
    const char *const asked = getenv("PODSIM_TEST_THIN");
    if (asked == NULL || *asked == '\0') return SAMPLING_UNASKED;
    unsigned long const count = strtoul(asked, NULL, 10);
    if (count < 1 || count > SAMPLING_MOST) abort();
    return (uint32_t)count;
}

/*
 * Whether a combination is left out; `*count` is the walk's own, from 0, and the first is always
 * taken. Counts are scattered (by the golden section of 2^32), so that what is taken does not keep
 * step with the loops of the walk, and one of 6 takes others than one of 7.
 */
static inline bool sampling_skips(uint32_t *count)
{
    uint32_t const scattered = (*count)++ * UINT32_C(2654435769);
    return (scattered >> 8) % sampling_of() != 0;
}

/* Whether a cheap combination is left out: builds without sanitizers take every cheap one. */
static inline bool sampling_skips_watched(uint32_t *count)
{
#ifdef GUARD_WATCHED
    return sampling_skips(count);
#else
    (void)count;
    return false;
#endif
}

#endif
