/*
 * random.h: numbers drawn from a seed. They are integers made of integers, so that a seed gives the
 * same ones with any compiler.
 */
#ifndef SIM_BASE_RANDOM_H
#define SIM_BASE_RANDOM_H

#include <stdint.h>

#include "sim/base/units.h"

/* SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014). The
 * state begins with any seed. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Below `end`, by the high half of a product. */
static inline uint64_t random_below(uint64_t *state, uint64_t end)
{
    return (uint64_t)((units_wide)random_next(state) * end >> 64);
}

enum { RANDOM_SIGMA_MAX = 4 };

/* Whole numbers with a given mean, rounded from numbers that are distributed so. The mean is below
 * 2^32, and the standard deviation of a log-normal number's logarithm RANDOM_SIGMA_MAX at most. */
uint64_t random_exponential(uint64_t *state, uint64_t mean);
uint64_t random_lognormal(uint64_t *state, uint64_t mean, uint32_t sigma_ppm);

#endif
