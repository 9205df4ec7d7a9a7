/*
 * published.h: what makers and the book say of whole machines, next to what the machine here comes
 * to: switches, cables, egress, bisection.
 *
 * The machine is built from numbers of one chip, one cable and one switch (topology/chips/) by
 * rules; these are figures of what such rules should come to, each with its source, so that either
 * can be seen to be wrong. Rates are one way.
 */
#ifndef SIM_MACHINE_PUBLISHED_H
#define SIM_MACHINE_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/machine.h"

struct published {
    const char *name; /* "leaf switches" */
    bool rate;        /* In bytes a second; else a count. */
    uint64_t published;
    uint64_t here; /* Effective: less where a profile scales rates. */
    const char *source;
};

/* The next figure about such a machine from *index on, which begins at 0; false past the last. */
bool published_next(const struct machine *machine, uint32_t *index, struct published *ret);

#endif
