#include "sim/measure/fit.h"

#include "sim/base/status.h"
#include "sim/base/units.h"

struct fit fit_line(const uint64_t *bytes, const int64_t *time_ps, uint32_t count)
{
    /* Sums of the weights 1/t² with 1, x, x², t and x·t; x relative to the largest, as bytes
     * squared and counts would lose digits to each other. */
    double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0, scale = 1;
    struct fit fit = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++)
        if ((double)bytes[i] > scale) scale = (double)bytes[i];
    for (uint32_t i = 0; i < count; i++) {
        SIM_ASSERT(time_ps[i] > 0);
        double const t = units_seconds(time_ps[i]), x = (double)bytes[i] / scale;
        double const weight = 1 / (t * t);
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wt += weight * t;
        wxt += weight * x * t;
    }
    if (count == 0) return fit;
    double const determinant = w * wxx - wx * wx;
    double const slope = determinant > 1e-12 * w * wxx ? (w * wxt - wx * wt) / determinant : 0;
    fit.alpha_s = (wt - slope * wx) / w;
    fit.beta_s_per_byte = slope / scale;
    for (uint32_t i = 0; i < count; i++) {
        double const t = units_seconds(time_ps[i]);
        double const off = fit.alpha_s + fit.beta_s_per_byte * (double)bytes[i] - t;
        double const error = (off < 0 ? -off : off) / t;
        if (error > fit.error_most) fit.error_most = error;
    }
    return fit;
}
