/*
 * lengths.h: how long each of some sequences is: all alike, each as it is given, or drawn from a
 * distribution.
 */
#ifndef SIM_BASE_LENGTHS_H
#define SIM_BASE_LENGTHS_H

#include <stdint.h>

#include "sim/base/status.h"

struct arena;

enum { LENGTHS_MAX = 1 << 20 }; /* Sequences. */

/* In tokens. Uniform: from mean·(1 - spread) to mean·(1 + spread). Log-normal: `sigma` is the
 * standard deviation of the logarithm. Exponential: the standard deviation is the mean. */
enum lengths_shape { LENGTHS_UNIFORM, LENGTHS_LOGNORMAL, LENGTHS_EXPONENTIAL };

struct lengths_distribution {
    uint32_t shape; /* enum lengths_shape */
    uint64_t mean;  /* Before what follows; 0: lengths are given. */
    uint64_t least; /* A length that is drawn shorter is this one. */
    uint64_t most;  /* A length that is drawn longer is this one. */
    uint32_t spread_ppm, sigma_ppm;
};

/* Lengths that were drawn from one distribution and seed: more sequences have the same first ones.
 */
struct lengths_drawn {
    struct arena *arena; /* Owns the lengths. */
    uint64_t *tokens;    /* [room]; NULL: none were drawn. */
    uint64_t count, room;
    uint64_t state; /* Of the numbers behind the last one. */
};

struct lengths {
    const uint64_t *tokens;
    uint32_t count; /* 1: all sequences are alike. 0: not drawn yet. */
    struct lengths_distribution of;
    uint64_t longest;            /* In tokens; 0: nobody has looked. */
    struct lengths_drawn *drawn; /* Looked at first, and filled; NULL: all are drawn anew. */
};

static inline struct lengths lengths_given(const uint64_t *tokens, uint32_t count)
{
    return (struct lengths){.tokens = tokens, .count = count};
}

extern const char *const lengths_shape_names[]; /* Ended by NULL. */

/* Lengths of `count` sequences, where they have a distribution: the same from the same seed. Those
 * that lengths->drawn keeps belong to its arena, others to `arena`. */
enum status lengths_draw(struct arena *arena, uint64_t count, uint64_t seed,
                         struct lengths *lengths, struct error *reterr);

#endif
