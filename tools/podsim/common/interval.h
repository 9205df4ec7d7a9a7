/*
 * interval.h: between which times a measured step would lie, out of the residuals of others.
 *
 * A publication has one vote, which its rows share. The interval is around the median of the votes,
 * and reaches as far, up and down as a ratio, as intervals of the work have to. Chips and stacks
 * have no part in it: residuals of the same ones were no nearer to those of a publication that is
 * left out (docs/uncertainty.md). No logarithm is taken, so the figures are the same on every
 * machine.
 */
#ifndef TOOLS_PODSIM_COMMON_INTERVAL_H
#define TOOLS_PODSIM_COMMON_INTERVAL_H

#include "tools/podsim/common/residuals.h"

struct report_interval;

struct interval_entry {
    double ratio; /* Measured over simulated. */
    double votes;
};

/* Residuals of one work. */
struct interval_pool {
    struct interval_entry *entry; /* Least ratio first. */
    uint32_t count;
    double votes, median;
    /* Of the same chip and stack, and the rest. */
    uint32_t alike_rows, alike_publications, other_rows, other_publications;
};

/* Rows whose `left_out` is set are not in the pool (NULL: all are). Without a row of the work the
 * pool has no entry. */
enum status interval_pool_build(struct arena *arena, const struct residuals *residuals,
                                const bool *left_out, const struct residual_kind *kind,
                                struct interval_pool *ret_pool, struct error *reterr);

/* How far a ratio lies from the median, which is above 0, as a ratio: 1 or more. */
double interval_distance(double median, double ratio);

/* How far intervals of a work have to reach so that they hold as many of 100 rows as `percent` has,
 * for each of `count` shares. Each row's interval is around the median of the other publications;
 * without another none reaches it. Rows that are left out do not count. Errors: memory. */
enum status interval_reach(struct arena *arena, const struct residuals *residuals,
                           const bool *left_out, const struct residual_kind *kind,
                           const uint32_t *percent, uint32_t count, double *ret_reach,
                           struct error *reterr);

/* Of a step that was replayed, by the residuals of the project. Errors: residual_kind_find()'s. */
enum status interval_find(const struct session *session, struct report_interval *ret_interval,
                          struct error *reterr);

#endif
