/*
 * pareto_svg.h: what the two kinds of plots of a picture share: where they lie, how an axis is laid
 * out and ticked.
 */
#ifndef TOOLS_PODSIM_PARETO_PARETO_SVG_H
#define TOOLS_PODSIM_PARETO_PARETO_SVG_H

#include "sim/base/svg.h"
#include "tools/podsim/pareto/pareto.h"

enum { PARETO_TICK_BYTES = 24, PARETO_NAME_BYTES = 64 };

/* Pixels right of a plot, for names of curves that end there. */
enum { PARETO_NAMES_WIDTH = 76 };

/* From a number to a pixel; `from` and `to` are pixels. */
struct pareto_axis {
    double least, most;
    double from, to;
    bool is_linear; /* Else logarithmic, and `least` is above 0. */
};

/* A plot's frame: pixels. */
struct pareto_plot {
    struct strbuf *text;
    double left, top, width, height;
};

double pareto_at(const struct pareto_axis *axis, double value);

/* Lines across a plot, with words: of latencies ("5 ms"), of plain numbers ("200"). */
enum pareto_ticks { PARETO_SECONDS, PARETO_NUMBERS };
void pareto_draw_x(const struct pareto_plot *plot, const struct pareto_axis *axis,
                   enum pareto_ticks ticks);
void pareto_draw_y(const struct pareto_plot *plot, const struct pareto_axis *axis,
                   enum pareto_ticks ticks);
/* Batches: powers of 2. */
void pareto_draw_batches(const struct pareto_plot *plot, const struct pareto_axis *axis);

/* The curves of a column that have a simulated point in some column, counted from its first; each
 * has one colour and one row of plots. */
struct pareto_rows {
    uint32_t row[SVG_SERIES_MAX];
    uint32_t count;
};

/* "4x4", "8 GPUs"; where curves of several meshes are drawn "4x4 B". */
const char *pareto_name(char buffer[PARETO_NAME_BYTES], const struct pareto *pareto,
                        const struct pareto_curve *curve);

/* Throughput against latency of a column, whose curves begin with `first`: figure 8.1. */
void pareto_draw_curves(const struct pareto *pareto, uint32_t first, const struct pareto_rows *rows,
                        const struct pareto_plot *plot, const struct pareto_axis *latency,
                        const struct pareto_axis *rate);
/* What the latency of each batch goes to: figure 8.2. */
void pareto_draw_shares(const struct pareto *pareto, const struct pareto_curve *curve,
                        const struct pareto_plot *plot, double latency_most_s);

#endif
