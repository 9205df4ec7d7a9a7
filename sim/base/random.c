#include "sim/base/random.h"

#include "sim/base/logarithm.h"

enum { ROOT_BITS = 62, HALF_BITS = 31 };

static const uint64_t ln_2 = UINT64_C(3196577161300663915);   /* In units of 2^-62. */
static const uint64_t log2_e = UINT64_C(6653256548922161246); /* In units of 2^-62. */
static const uint64_t least_square = UINT64_C(1) << 20;       /* Of a point in the circle. */

static uint64_t square_root(units_wide of)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 63; bit != 0; bit /= 2)
        if ((units_wide)(root | bit) * (root | bit) <= of) root |= bit;
    return root;
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
    int64_t const log =
        times(ROOT_BITS * ((int64_t)1 << LOGARITHM_BITS) - logarithm_2(square), ln_2);
    units_wide const ratio = ((units_wide)(2 * log) << ROOT_BITS) / square;
    uint64_t const root = square_root(ratio << LOGARITHM_BITS);
    uint64_t const size = x < 0 ? (uint64_t)-x : (uint64_t)x;
    int64_t const drawn = (int64_t)((units_wide)size * root >> HALF_BITS);
    return x < 0 ? -drawn : drawn;
}

/* -ln(u) of u between 0 and 1. */
uint64_t random_exponential(uint64_t *state, uint64_t mean)
{
    uint64_t const drawn = random_next(state);
    int64_t const log = 64 * ((int64_t)1 << LOGARITHM_BITS) - logarithm_2(drawn == 0 ? 1 : drawn);
    units_wide const product = (units_wide)mean * (uint64_t)times(log, ln_2);
    return (uint64_t)((product + ((units_wide)1 << (LOGARITHM_BITS - 1))) >> LOGARITHM_BITS);
}

/* e^(s·z - s^2/2) of a normal z has a mean of 1. */
uint64_t random_lognormal(uint64_t *state, uint64_t mean, uint32_t sigma_ppm)
{
    units_wide const square = (units_wide)sigma_ppm * sigma_ppm << LOGARITHM_BITS;
    int64_t const half = (int64_t)(square / (2 * (units_wide)PPM_ONE * PPM_ONE));
    int64_t const drawn = normal(state) * (int64_t)sigma_ppm / PPM_ONE;
    int64_t const exponent = times(drawn - half, log2_e);
    return logarithm_times_power_2(mean, exponent < LOGARITHM_MAX ? exponent : LOGARITHM_MAX);
}
