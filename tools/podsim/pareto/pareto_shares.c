/* What the latency of each batch goes to: the book's figure 8.2, simulated. */
#include <math.h>
#include <stdio.h>

#include "sim/base/strbuf.h"
#include "tools/podsim/pareto/pareto_svg.h"

enum { BAR_WIDTH = 24 };

struct shares {
    const struct pareto *pareto;
    const struct pareto_curve *curve;
    const struct pareto_plot *plot;
    struct pareto_axis batch, latency;
};

static double x_of(const struct shares *shares, double batch)
{
    return pareto_at(&shares->batch, batch);
}

static double y_of(const struct shares *shares, double latency_s)
{
    return pareto_at(&shares->latency, latency_s);
}

/* Seconds of the shares below one. */
static double below(const struct pareto_point *point, uint32_t share)
{
    double sum_s = 0;
    for (uint32_t i = 0; i < share; i++) sum_s += point->shares.s[i];
    return sum_s;
}

static const char *share_style(char buffer[SVG_CLASS_BYTES], uint32_t share)
{
    (void)snprintf(buffer, SVG_CLASS_BYTES, "part%u", share);
    return buffer;
}

/* From point to point along the upper edge, back along the lower one. */
static void draw_area(const struct shares *shares, uint32_t share)
{
    char style[SVG_CLASS_BYTES];
    uint32_t const count = shares->pareto->batch_count;
    const struct pareto_point *point = shares->curve->point;
    svg_path_begin(shares->plot->text, share_style(style, share));
    for (uint32_t b = 0; b < count; b++)
        if (point[b].state == PARETO_PLAYED)
            svg_path_to(shares->plot->text, x_of(shares, point[b].batch),
                        y_of(shares, below(&point[b], share + 1)));
    for (uint32_t b = count; b-- > 0;)
        if (point[b].state == PARETO_PLAYED)
            svg_path_to(shares->plot->text, x_of(shares, point[b].batch),
                        y_of(shares, below(&point[b], share)));
    svg_path_end(shares->plot->text);
}

/* One point alone has no area. */
static void draw_bar(const struct shares *shares, const struct pareto_point *point, uint32_t share)
{
    char style[SVG_CLASS_BYTES];
    double const top = y_of(shares, below(point, share + 1));
    svg_box(shares->plot->text, x_of(shares, point->batch) - BAR_WIDTH / 2.0, top, BAR_WIDTH,
            y_of(shares, below(point, share)) - top, share_style(style, share));
}

static void draw_formula(const struct shares *shares)
{
    struct strbuf *text = shares->plot->text;
    uint32_t count = 0;
    double x = 0, y = 0;
    for (uint32_t b = 0; b < shares->pareto->batch_count; b++) {
        const struct pareto_point *point = &shares->curve->point[b];
        if (point->state == PARETO_REFUSED || point->book.step_s > shares->latency.most) continue;
        if (count++ == 0) svg_path_begin(text, "bound");
        x = x_of(shares, point->batch);
        y = y_of(shares, point->book.step_s);
        svg_path_to(text, x, y);
    }
    if (count > 0) svg_path_end(text);
    if (count == 1) svg_line(text, x - BAR_WIDTH, y, x + BAR_WIDTH, y, "bound");
}

/* From a batch on to the right edge. */
static void draw_region(const struct shares *shares, double from, const char *style,
                        const char *words)
{
    const struct pareto_plot *plot = shares->plot;
    double const first = fmax(from, shares->batch.least), right = plot->left + plot->width;
    double const x = x_of(shares, first);
    if (x >= right) return;
    svg_box(plot->text, x, plot->top, right - x, plot->height, style);
    if (right - x >= 40) svg_words(plot->text, right - 6, plot->top + 14, "tiny end", words);
}

void pareto_draw_shares(const struct pareto *pareto, const struct pareto_curve *curve,
                        const struct pareto_plot *plot, double latency_most_s)
{
    uint32_t const count = pareto->batch_count;
    const struct pareto_point *played = NULL;
    uint32_t played_count = 0;
    struct shares const shares = {
        .pareto = pareto,
        .curve = curve,
        .plot = plot,
        .batch = {pareto->batch[0] / (count == 1 ? 2.0 : 1.0),
                  pareto->batch[count - 1] * (count == 1 ? 2.0 : 1.0), plot->left,
                  plot->left + plot->width, false},
        .latency = {0, latency_most_s, plot->top + plot->height, plot->top, true},
    };
    for (uint32_t b = 0; b < count; b++) {
        if (curve->point[b].state != PARETO_PLAYED) continue;
        played = &curve->point[b];
        played_count++;
    }
    draw_region(&shares, curve->critical_batch, "math-bound", "");
    pareto_draw_batches(plot, &shares.batch);
    pareto_draw_y(plot, &shares.latency, PARETO_SECONDS);
    for (uint32_t share = 0; share < INFERENCE_SHARE_COUNT; share++) {
        if (played_count > 1) draw_area(&shares, share);
        if (played_count == 1) draw_bar(&shares, played, share);
    }
    draw_region(&shares, (double)curve->wall + 0.5, "unfit",
                curve->refused.batch != 0 ? "refused" : "does not fit");
    draw_formula(&shares);
}
