/*
 * fit.h: a straight line through times: seconds = alpha + beta · bytes, the model of Hockney.
 *
 * Least squares of the relative errors: each point weighs 1/seconds², so that a sweep from bytes to
 * gigabytes determines alpha by its short times as well as beta by its long ones.
 */
#ifndef SIM_MEASURE_FIT_H
#define SIM_MEASURE_FIT_H

#include <stdint.h>

struct fit {
    double alpha_s;
    double beta_s_per_byte;
    double error_most; /* The largest relative error of a point. */
};

/* All seconds above 0. Fewer than two different sizes: the line is flat. */
struct fit fit_line(const uint64_t *bytes, const int64_t *time_ps, uint32_t count);

#endif
