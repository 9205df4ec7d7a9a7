/*
 * bench_compare.h: this podsim and another one, a release or a change apart, side by side. Both
 * simulate the same steps in turn, each time in a process of its own, so that what else the machine
 * does meets both alike; each pair of neighbours gives a ratio.
 */
#ifndef TOOLS_PODSIM_BENCH_BENCH_COMPARE_H
#define TOOLS_PODSIM_BENCH_BENCH_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct worker;

enum { BENCH_PAIRS = 5, BENCH_PAIRS_MAX = 99, BENCH_REFUSED_BYTES = 128 };

struct bench_pairs {
    const char *name;              /* The name of the step. */
    uint64_t events, other_events; /* Of one run of either podsim. */
    uint32_t runs;                 /* Runs of each podsim in a pair: short ones are repeated. */
    double cpu_s, other_cpu_s;
    double ratio, ratio_least,
        ratio_most; /* CPU an event, this podsim over the other; the median. */
    bool same;      /* Both podsims have one digest. */
    /* What the other one said instead of a result; "": it has one. */
    char refused[BENCH_REFUSED_BYTES];
};

struct bench_comparing {
    const char *other; /* The path of the other podsim. */
    uint32_t pairs;    /* 1 to BENCH_PAIRS_MAX. */
    bool quick;        /* Only steps that take well under a second. */
    bool early;        /* The other one has no run.arbitration: as it runs, this one does. */
};

/* Fills up to BENCH_STEPS_MAX rows. CPU is user and system time of whole commands, `podsim run`,
 * the median of all pairs. If it is interrupted, rows that are finished stay. Errors: STATUS_IO;
 * STATUS_NOT_FOUND for a path that no program has; STATUS_INTERRUPTED. */
enum status bench_compare(const struct bench_comparing *comparing, struct worker *worker,
                          struct bench_pairs *ret_rows, uint32_t *ret_count, struct error *reterr);

#endif
