/*
 * smallest_slice.h: the slice with fewest chips, among those that a product can be sliced into.
 */
#ifndef SIM_REPORT_SMALLEST_SLICE_H
#define SIM_REPORT_SMALLEST_SLICE_H

#include "sim/machine/shape.h"
#include "sim/step/workload.h"

struct strbuf;

struct smallest_slice {
    uint64_t chip_count;          /* 0: no slice is large enough. */
    char slice[SHAPE_TEXT_BYTES]; /* "4x4"; of GPUs "4", or with nodes "8x2". */
};

/* With `least` chips or more: of GPUs a part of a node, or whole nodes. */
struct smallest_slice smallest_slice_of(const struct chip *chip, uint64_t least);

/* Of a training step: chips that have room for equal shares of weights, gradients and moments, but
 * not for anything else. Moments in the host's memory need none. */
struct smallest_slice smallest_slice_of_training(const struct workload_plan *plan,
                                                 const struct chip *chip);

/* A line that names this slice, unless the machine has as many chips. */
void smallest_slice_print(const struct workload_plan *plan, const struct machine *machine,
                          struct strbuf *text);

#endif
