/*
 * log2 by squares: each square doubles the logarithm, whose next binary digit says whether it is 2
 * or more. 2^x is a product of square roots of 2, one for each binary digit (Knuth, The Art of
 * Computer Programming 1, 1.2.2, exercises 25 and 28).
 */
#include "sim/base/logarithm.h"

#include <stdbool.h>

#include "sim/base/units.h"

enum { ROOT_BITS = 62 };

/* 2^(1/2), 2^(1/4), ... in units of 2^-62, rounded down. */
static const uint64_t roots[LOGARITHM_BITS] = {
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

int64_t logarithm_2(uint64_t of)
{
    int64_t whole = 63;
    uint64_t digits = 0;
    for (; of >> 63 == 0; of *= 2) whole--;
    for (uint32_t i = 0; i < LOGARITHM_BITS; i++) {
        units_wide square = (units_wide)of * of >> 63;
        bool const two = square >> 64 != 0;
        of = (uint64_t)(two ? square >> 1 : square);
        digits = digits * 2 + two;
    }
    return whole * ((int64_t)1 << LOGARITHM_BITS) + (int64_t)digits;
}

uint64_t logarithm_times_power_2(uint64_t amount, int64_t exponent)
{
    uint64_t const digits = (uint64_t)exponent & UINT32_MAX;
    int64_t const whole = (exponent - (int64_t)digits) / ((int64_t)1 << LOGARITHM_BITS);
    uint64_t power = UINT64_C(1) << ROOT_BITS;
    for (uint32_t i = 0; i < LOGARITHM_BITS; i++)
        if ((digits >> (LOGARITHM_BITS - 1 - i) & 1) != 0)
            power = (uint64_t)((units_wide)power * roots[i] >> ROOT_BITS);
    int64_t const shift = ROOT_BITS - whole; /* Above 0: see LOGARITHM_MAX. */
    units_wide const product = (units_wide)amount * power;
    if (shift > 2 * ROOT_BITS) return 0;
    return (uint64_t)((product + ((units_wide)1 << (shift - 1))) >> shift);
}
