/*
 * shares.h: how much of an array each cyclic order of a group's dimensions carries, so that all
 * dimensions finish together. Exact integers: no rounding decides which plan is made.
 */
#ifndef SIM_COLLECTIVE_SHARES_H
#define SIM_COLLECTIVE_SHARES_H

#include <stdint.h>

#include "sim/collective/group.h"

/* Order k gathers over dimension k first, then k+1, ... around. Its share of the array is
 * weight[k] / total. */
struct shares {
    int64_t weight[GROUP_DIMENSIONS_MAX];
    int64_t total;
};

/* `cost[d]`: time of a byte on dimension d, relative to the others: 1 on a ring in both
 * directions, 2 on a line, where the busiest link of a chip has to carry everything one way. Times
 * the stride: as many interleaved groups send over the links between two members. */
struct shares shares_solve(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX]);

/* By how much the first and last piece lengthen the whole if the array goes in one piece: the time
 * in which a dimension waits for data of the others, in parts per million of the time in which all
 * are busy. Without hops; on each dimension the smaller chunks go first. */
uint64_t shares_wait_ppm(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                         const struct shares *shares);

#endif
