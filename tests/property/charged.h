/*
 * charged.h: the bytes of the cache that a pass reads, in tests that count them on their own.
 *
 * A pass is charged the rank that attends longest: mostly the one that reads most, but its kernel
 * may be shared better among cores than that of a rank with less.
 */
#ifndef TESTS_PROPERTY_CHARGED_H
#define TESTS_PROPERTY_CHARGED_H

#include "tests/support/case.h"

struct charged {
    uint32_t count, less; /* Steps; those that read less than the rank that has most. */
};

static inline void charged_check(struct charged *charged, double bytes, double most_bytes)
{
    charged->count++;
    charged->less += bytes < most_bytes * (1 - 1e-9);
    assert_true(bytes > 0 || most_bytes <= 0);
    assert_true(bytes <= most_bytes * (1 + 1e-9));
}

/* At the end of all draws. */
static inline void charged_end(const struct charged *charged)
{
    print_message("of %u steps %u read less than the rank that has most\n",
                  (unsigned)charged->count, (unsigned)charged->less);
    assert_true(charged->less <= 2 + charged->count / 16);
}

#endif
