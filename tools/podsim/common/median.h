/*
 * median.h: the median of figures.
 */
#ifndef TOOLS_PODSIM_COMMON_MEDIAN_H
#define TOOLS_PODSIM_COMMON_MEDIAN_H

#include <stdint.h>

/* Puts the values in order, the least first. Returns the median, of an even number the mean of the
 * two in the middle; 0: there are no values. */
double median(double *values, uint32_t count);

#endif
