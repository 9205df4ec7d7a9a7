/*
 * ranked.h: a number of a list by its rank, as the median is one.
 */
#ifndef SIM_BASE_RANKED_H
#define SIM_BASE_RANKED_H

#include <stdint.h>

/* The number that `rank` others are not above: of rank 0 the least. The list stays as it is.
 * `rank` is less than `count`. */
uint64_t ranked_number(const uint64_t *numbers, uint32_t count, uint32_t rank);

#endif
