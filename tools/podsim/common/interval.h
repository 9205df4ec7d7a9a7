/*
 * interval.h: between which times a measured step would lie, out of the residuals of others.
 *
 * Residuals of steps that differ from the simulated one count less. A publication counts as much as
 * its nearest row would alone, and its rows share that in proportion. The interval is around the
 * weighted median. It reaches as far, in ratio, as a share of the weight does. No logarithm is
 * taken, so the figures are the same on every machine.
 */
#ifndef TOOLS_PODSIM_COMMON_INTERVAL_H
#define TOOLS_PODSIM_COMMON_INTERVAL_H

#include "tools/podsim/common/residuals.h"

struct report_interval;

struct interval_entry {
    double ratio;    /* Measured over simulated. */
    double distance; /* From the median, as a ratio: 1 or more. */
    double weight;
};

/* Residuals of one work, by their distance from the median. */
struct interval_pool {
    struct interval_entry *entry; /* Nearest first. */
    uint32_t count;
    double weight, median;
    /* Of the same chip and stack, and the rest. */
    double alike_weight;
    uint32_t alike_rows, alike_publications, other_rows, other_publications;
};

/* Rows whose `left_out` is set are not in the pool (NULL: all are). Without a row of the work the
 * pool has no entry. */
enum status interval_pool_build(struct arena *arena, const struct residuals *residuals,
                                const bool *left_out, const struct residual_kind *kind,
                                struct interval_pool *ret_pool, struct error *reterr);

/* The share of the weight that is nearer to the median than a ratio is: an interval of more has it
 * within. */
double interval_mass(const struct interval_pool *pool, double ratio);

/* The interval that has `mass_percent` of the weight, as ratios to the simulated time. The pool has
 * an entry. */
void interval_cut(const struct interval_pool *pool, uint32_t mass_percent, double *ret_low,
                  double *ret_high);

/* Of a step that was replayed, by the residuals of the project. Errors: residual_kind_find()'s. */
enum status interval_find(const struct session *session, struct report_interval *ret_interval,
                          struct error *reterr);

#endif
