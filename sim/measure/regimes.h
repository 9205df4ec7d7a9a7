/*
 * regimes.h: when a collective is bound by latency and when by bandwidth, and which algorithm wins
 * where: sizes times groups times algorithms, all simulated.
 *
 * Groups grow from the neighbours on the last axis of the largest group to all of it. Where the
 * winner changes from one size of the sweep to the next, the change is found by bisection.
 */
#ifndef SIM_MEASURE_REGIMES_H
#define SIM_MEASURE_REGIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/parallel.h"
#include "sim/measure/fit.h"
#include "sim/measure/measure_row.h"
#include "sim/measure/sizes.h"

struct arena;

enum {
    REGIMES_GROUPS_MAX = 64,
    REGIMES_ALGORITHMS_MAX = PLAN_ALGORITHMS_MAX,
    REGIMES_CROSSOVERS_MAX = 64,
    REGIMES_KNOWN_MAX = 96,
    REGIMES_NONE = 0xff,
};

/* Called in and between runs, on the thread of a part (sim/base/parallel.h): the share of the part
 * that is done, and the events of the current run. False stops with STATUS_INTERRUPTED. */
typedef bool regimes_watch_fn(void *owner, uint32_t thread, double share, uint64_t events);

struct regimes_plan {
    struct measure_row_args args; /* With the largest group. Its script, if it has one, is
                                     one more algorithm, of the groups with as many ranks. */
    struct sizes sizes;
    const struct algorithm *algorithms; /* NULL: all that apply. */
    uint32_t algorithm_count;
    struct measure_options run;      /* Without a watch of its own. */
    const struct parallel *parallel; /* Who simulates the curves; NULL: one after another. */
    regimes_watch_fn *watch;
    void *watch_owner;
};

/* A size that was simulated, and its time. */
struct regimes_known {
    uint64_t size_bytes;
    int64_t time_ps;
};

/* Sizes and times of one algorithm on one group. */
struct regimes_curve {
    bool applies;
    uint64_t run_count;      /* Runs that it took to find the curve. */
    int64_t *time_ps;        /* [size] */
    int64_t floor_ps;        /* Time of one byte. */
    double peak_bytes_per_s; /* algbw of 16 GiB, or up to 16 times the largest size. */
    /* Where half of peak_bytes_per_s is reached, n½, and where 95 %: between the first size of the
     * sweep that has it and the size before, to a thousandth. */
    uint64_t half_bytes, most_bytes;
    struct fit fit;
    /* The fit by the estimate of the algorithm's plans on idle links (sim/choose/estimate.h): alpha
     * of the plan for the least size, beta of the plan for the greatest size. */
    bool has_theory; /* A script has none. */
    double theory_alpha_s;
    double theory_beta_s_per_byte;
    uint32_t known_count;
    struct regimes_known known[REGIMES_KNOWN_MAX]; /* None of them is simulated again. */
};

struct regimes_crossover {
    uint64_t size_bytes; /* The least (to a thousandth) at which `to` wins. */
    uint8_t from, to;    /* Algorithms. */
};

struct regimes_group {
    struct measure_row_args args;
    uint64_t ranks;
    struct regimes_curve curve[REGIMES_ALGORITHMS_MAX];
    uint8_t *winner; /* [size] */
    struct regimes_crossover crossover[REGIMES_CROSSOVERS_MAX];
    uint32_t crossover_count;
    struct regimes_curve best; /* Of the winners: all but its fit and times. Its runs are those that
                                  found the crossovers too. */
    /* By the cuts of the fabric, without any algorithm. */
    double bound_alpha_s, bound_beta_s_per_byte;
    const char *bound_by; /* What bounds the largest size. */
    double *strict_s;     /* [size] Below which no algorithm comes (collective_bound.h). */
};

struct regimes {
    struct algorithm algorithm[REGIMES_ALGORITHMS_MAX];
    char algorithm_name[REGIMES_ALGORITHMS_MAX][PLAN_ALGORITHM_SIZE];
    uint32_t algorithm_count;
    uint32_t msccl_at; /* The algorithm that is the script; REGIMES_NONE: none. */
    uint64_t *size_bytes;
    uint32_t size_count;
    struct regimes_group *group; /* The smallest first. */
    uint32_t group_count;        /* Finished, where it was interrupted. */
    uint32_t group_count_max;
    uint64_t run_count; /* Of the groups that are finished. */
};

/* The size that the peak is taken at: so large that latency is nothing to it. */
uint64_t regimes_peak_bytes(const struct sizes *sizes);

/* STATUS_INTERRUPTED leaves the groups that are finished in `ret_regimes`. */
enum status regimes_run(struct arena *arena, const struct regimes_plan *plan,
                        struct regimes *ret_regimes, struct error *reterr);

/* The groups of a map: boxes of neighbours that grow to all of `largest`; sizes that are not at
 * least twice the one before are passed over. Returns how many. */
uint32_t regimes_groups(const struct machine *machine, const struct group *largest,
                        struct group ret_groups[REGIMES_GROUPS_MAX]);

#endif
