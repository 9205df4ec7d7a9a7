/*
 * Logarithms are in units of 2^-32. log2 by squares: each square doubles the logarithm, whose next
 * binary digit says whether it is 2 or more. 2^x is a product of square roots of 2, one for each
 * binary digit (Knuth, The Art of Computer Programming 1, 1.2.2, exercises 25 and 28).
 */
#include "sim/base/random.h"

#include <stdbool.h>

enum { LOG_BITS = 32, ROOT_BITS = 62, HALF_BITS = 31 };

static const uint64_t ln_2 = UINT64_C(3196577161300663915);   /* In units of 2^-62. */
static const uint64_t log2_e = UINT64_C(6653256548922161246); /* In units of 2^-62. */
static const uint64_t least_square = UINT64_C(1) << 20;       /* Of a point in the circle. */
static const int64_t exponent_max = (int64_t)40 << LOG_BITS;

/* 2^(1/2), 2^(1/4), ... in units of 2^-62, rounded down. */
static const uint64_t roots[LOG_BITS] = {
    UINT64_C(6521908912666391106), UINT64_C(5484249825272419511), UINT64_C(5029079263719320435),
    UINT64_C(4815862801830788490), UINT64_C(4712668792719003883), UINT64_C(4661903986662671289),
    UINT64_C(4636727017470743990), UINT64_C(4624189567668517720), UINT64_C(4617933561212708776),
    UINT64_C(4614808732577250068), UINT64_C(4613247111281068008), UINT64_C(4612466498810092974),
    UINT64_C(4612076242109103707), UINT64_C(4611881126141011236), UINT64_C(4611783571252412753),
    UINT64_C(4611734794581956353), UINT64_C(4611710406440186475), UINT64_C(4611698212417665819),
    UINT64_C(4611692115418496524), UINT64_C(4611689066921934630), UINT64_C(4611687542674409371),
    UINT64_C(4611686780550835663), UINT64_C(4611686399489096040), UINT64_C(4611686208958238036),
    UINT64_C(4611686113692811986), UINT64_C(4611686066060099699), UINT64_C(4611686042243743740),
    UINT64_C(4611686030335565806), UINT64_C(4611686024381476851), UINT64_C(4611686021404432376),
    UINT64_C(4611686019915910140), UINT64_C(4611686019171649022),
};

static uint64_t square_root(units_wide of)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 63; bit != 0; bit /= 2)
        if ((units_wide)(root | bit) * (root | bit) <= of) root |= bit;
    return root;
}

/* Of a whole number above 0. */
static int64_t log2_of(uint64_t of)
{
    int64_t whole = 63;
    uint64_t digits = 0;
    for (; of >> 63 == 0; of *= 2) whole--;
    for (uint32_t i = 0; i < LOG_BITS; i++) {
        units_wide square = (units_wide)of * of >> 63;
        bool const two = square >> 64 != 0;
        of = (uint64_t)(two ? square >> 1 : square);
        digits = digits * 2 + two;
    }
    return whole * ((int64_t)1 << LOG_BITS) + (int64_t)digits;
}

/* amount·2^exponent, to the nearest whole number; the amount is below 2^32. */
static uint64_t times_exp2(uint64_t amount, int64_t exponent)
{
    uint64_t const digits = (uint64_t)exponent & UINT32_MAX;
    int64_t const whole = (exponent - (int64_t)digits) / ((int64_t)1 << LOG_BITS);
    uint64_t power = UINT64_C(1) << ROOT_BITS;
    for (uint32_t i = 0; i < LOG_BITS; i++)
        if ((digits >> (LOG_BITS - 1 - i) & 1) != 0)
            power = (uint64_t)((units_wide)power * roots[i] >> ROOT_BITS);
    int64_t const shift = ROOT_BITS - whole; /* Above 0: see exponent_max. */
    units_wide const product = (units_wide)amount * power;
    if (shift > 2 * ROOT_BITS) return 0;
    return (uint64_t)((product + ((units_wide)1 << (shift - 1))) >> shift);
}

static int64_t times(int64_t of, uint64_t by)
{
    uint64_t const size = of < 0 ? (uint64_t)-of : (uint64_t)of;
    int64_t const product = (int64_t)((units_wide)size * by >> ROOT_BITS);
    return of < 0 ? -product : product;
}

/* A normal number in units of 2^-32, by the polar method (Marsaglia and Bray, A Convenient Method
 * for Generating Normal Variables, 1964): of a point in the unit circle. One next to its centre is
 * drawn again. */
static int64_t normal(uint64_t *state)
{
    int64_t x = 0, y = 0;
    uint64_t square = 0; /* In units of 2^-62. */
    while (square < least_square || square >= UINT64_C(1) << ROOT_BITS) {
        x = (int64_t)(random_next(state) >> 32) - ((int64_t)1 << HALF_BITS);
        y = (int64_t)(random_next(state) >> 32) - ((int64_t)1 << HALF_BITS);
        square = (uint64_t)(x * x) + (uint64_t)(y * y);
    }
    int64_t const log = times(ROOT_BITS * ((int64_t)1 << LOG_BITS) - log2_of(square), ln_2);
    units_wide const ratio = ((units_wide)(2 * log) << ROOT_BITS) / square;
    uint64_t const root = square_root(ratio << LOG_BITS);
    uint64_t const size = x < 0 ? (uint64_t)-x : (uint64_t)x;
    int64_t const drawn = (int64_t)((units_wide)size * root >> HALF_BITS);
    return x < 0 ? -drawn : drawn;
}

/* -ln(u) of u between 0 and 1. */
uint64_t random_exponential(uint64_t *state, uint64_t mean)
{
    uint64_t const drawn = random_next(state);
    int64_t const log = 64 * ((int64_t)1 << LOG_BITS) - log2_of(drawn == 0 ? 1 : drawn);
    units_wide const product = (units_wide)mean * (uint64_t)times(log, ln_2);
    return (uint64_t)((product + ((units_wide)1 << (LOG_BITS - 1))) >> LOG_BITS);
}

/* e^(s·z - s^2/2) of a normal z has a mean of 1. */
uint64_t random_lognormal(uint64_t *state, uint64_t mean, uint32_t sigma_ppm)
{
    units_wide const square = (units_wide)sigma_ppm * sigma_ppm << LOG_BITS;
    int64_t const half = (int64_t)(square / (2 * (units_wide)PPM_ONE * PPM_ONE));
    int64_t const drawn = normal(state) * (int64_t)sigma_ppm / PPM_ONE;
    int64_t const exponent = times(drawn - half, log2_e);
    return times_exp2(mean, exponent < exponent_max ? exponent : exponent_max);
}
