/*
 * kernel_of_work.h: what a table of measured kernels says of a compute op.
 */
#ifndef SIM_RESOURCE_KERNEL_OF_WORK_H
#define SIM_RESOURCE_KERNEL_OF_WORK_H

#include "sim/base/work.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/chip.h"

struct work_kernels {
    const struct kernel_table *table; /* Of the first product. NULL: no table has the op. */
    uint32_t share_ppm;               /* Of the roofline, of all products together. */
    bool is_outside;                  /* A side lies outside its grid. */
    bool is_of_other_layout;          /* A product's layout has no table; TN's was taken. */
};

/* A product as its kernel has it. dX[m, k] = dY[m, n] · W[n, k] and dW[n, k] = dY[m, n] · X[m, k]
 * of Y[m, n] = X[m, k] · W[k, n]: rows are m there. One without a kernel is as a forward one. */
enum kernel_layout kernel_sides(const struct work *work, uint32_t index,
                                uint64_t ret_side[KERNEL_SIDES]);

/* All products of an op, each by its own share: together they have the share of their rooflines in
 * the sum of their times. */
struct work_kernels kernel_of_work(const struct chip *chip, const struct work *work);

#endif
