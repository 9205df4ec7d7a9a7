/*
 * units.h: amounts and rates to time, exactly.
 *
 * Instants and durations are signed 64-bit picoseconds (106 days), amounts are unsigned 64-bit
 * bytes or FLOP, rates are per second. A duration is rounded once, upwards, per transfer or op.
 */
#ifndef SIM_BASE_UNITS_H
#define SIM_BASE_UNITS_H

#include <stdint.h>

#include "sim/base/status.h"

/* Products of two 64-bit amounts; gcc and clang both have it. */
__extension__ typedef unsigned __int128 units_wide;

#define TIME_PS_PER_S INT64_C(1000000000000)
#define TIME_PS_PER_US INT64_C(1000000)
#define TIME_PS_NEVER INT64_MAX
/* No run goes on beyond this instant (53 days), so that an instant and a duration can be added. */
#define TIME_PS_END (TIME_PS_NEVER / 2)
#define PPM_ONE UINT32_C(1000000)

/* ceil(amount / rate) in picoseconds. The rate is not 0; more than TIME_PS_NEVER/4 saturates
 * there, so that a few such durations may be added without overflow. */
static inline int64_t units_duration_ps(uint64_t amount, uint64_t rate_per_s)
{
    SIM_ASSERT(rate_per_s != 0);
    units_wide const work = (units_wide)amount * (uint64_t)TIME_PS_PER_S;
    units_wide const ps = (work + rate_per_s - 1) / rate_per_s;
    return ps > (units_wide)(TIME_PS_NEVER / 4) ? TIME_PS_NEVER / 4 : (int64_t)ps;
}

/* The amount, or the most that 64 bits have. */
static inline uint64_t units_saturated(units_wide amount)
{
    return amount > UINT64_MAX ? UINT64_MAX : (uint64_t)amount;
}

static inline uint64_t units_times(uint64_t left, uint64_t right)
{
    return units_saturated((units_wide)left * right);
}

/* For figures and estimates, never for what decides an instant. */
static inline double units_seconds(int64_t duration_ps)
{
    return (double)duration_ps / (double)TIME_PS_PER_S;
}

/* floor(amount · ppm / 10^6). */
static inline uint64_t units_scale_ppm(uint64_t amount, uint32_t ppm)
{
    return (uint64_t)((units_wide)amount * ppm / PPM_ONE);
}

/* floor(rate · ppm · of_ppm · of_all_ppm / 10^18): shares of shares of a rate, of at most 10^18,
 * 10^8, 10^6 and 10^6. A rate above 0 stays so, and none is more than 64 bits have. */
static inline uint64_t units_scale_rate(uint64_t rate_per_s, uint32_t ppm, uint32_t of_ppm,
                                        uint32_t of_all_ppm)
{
    units_wide const whole = (units_wide)PPM_ONE * PPM_ONE * PPM_ONE;
    units_wide const scaled = (units_wide)rate_per_s * ppm * of_ppm * of_all_ppm / whole;
    return scaled == 0 ? rate_per_s > 0 : units_saturated(scaled);
}

static inline uint64_t units_smaller(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

static inline uint64_t units_larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

static inline units_wide units_wide_larger(units_wide left, units_wide right)
{
    return left > right ? left : right;
}

static inline units_wide units_wide_ceil_divide(units_wide amount, units_wide by)
{
    return (amount + by - 1) / by;
}

static inline uint64_t units_ceil_divide(uint64_t amount, uint64_t by)
{
    return amount / by + (amount % by != 0);
}

static inline uint64_t units_round_up(uint64_t amount, uint64_t multiple)
{
    return units_ceil_divide(amount, multiple) * multiple;
}

/* The largest number that divides both, of which one may be 0: Euclid's. */
static inline uint64_t units_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t const rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The smallest number of which both, neither of them 0, are divisors. */
static inline uint32_t units_common_multiple(uint32_t a, uint32_t b)
{
    return a / (uint32_t)units_common_divisor(a, b) * b;
}

#endif
