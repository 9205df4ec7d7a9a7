/*
 * logarithm.h: logarithms and powers of 2 as whole numbers, so that they are the same with any
 * compiler and library. A logarithm is in units of 2^-32.
 */
#ifndef SIM_BASE_LOGARITHM_H
#define SIM_BASE_LOGARITHM_H

#include <stdint.h>

enum { LOGARITHM_BITS = 32 };

#define LOGARITHM_ONE (INT64_C(1) << LOGARITHM_BITS)
#define LOGARITHM_MAX (40 * LOGARITHM_ONE) /* The most that an exponent may be. */

/* Of a whole number above 0; rounded down. */
int64_t logarithm_2(uint64_t of);

/* amount·2^exponent, to the nearest whole number; the amount is below 2^32. */
uint64_t logarithm_times_power_2(uint64_t amount, int64_t exponent);

#endif
