/*
 * digest.h: the 64-bit fingerprint of a run: a sum of mixed records.
 *
 * A sum, not a chain: engines that visit chips of one instant in another order agree, as they must.
 */
#ifndef SIM_BASE_DIGEST_H
#define SIM_BASE_DIGEST_H

#include <stdint.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
 * generators", figure 16) over the record's three words. */
static inline uint64_t digest_record(int64_t at_ps, uint64_t key, uint64_t subject)
{
    uint64_t x = (uint64_t)at_ps * UINT64_C(0x9e3779b97f4a7c15);
    x ^= (key + subject * UINT64_C(0xd1342543de82ef95)) * UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
