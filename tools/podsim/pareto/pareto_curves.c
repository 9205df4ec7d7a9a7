/* Throughput against latency: the book's figure 8.1, simulated. */
#include <math.h>
#include <stdio.h>

#include "sim/base/strbuf.h"
#include "sim/report/frontier.h"
#include "tools/podsim/pareto/pareto_svg.h"

enum { NAME_ROW = 15, POINT_RADIUS = 4, KNEE_RADIUS = 8 };

/* Colours that are far from each other first. */
static uint32_t series_of(uint32_t place)
{
    static const uint32_t order[] = {5, 6, 2, 3, 1, 0, 7, 4};
    enum { COUNT = sizeof order / sizeof *order };
    return order[place % COUNT] + place / COUNT * COUNT;
}

struct curves {
    const struct pareto *pareto;
    uint32_t first;
    const struct pareto_rows *rows;
    const struct pareto_plot *plot;
    const struct pareto_axis *latency, *rate;
};

static const struct pareto_curve *curve_at(const struct curves *curves, uint32_t i)
{
    return &curves->pareto->curve[curves->first + curves->rows->row[i]];
}

static double x_of(const struct curves *curves, double latency_s)
{
    return pareto_at(curves->latency, latency_s);
}

static double y_of(const struct curves *curves, double rate)
{
    return pareto_at(curves->rate, rate);
}

/* The next point of the frontier in the order of latency; NULL: there is none. */
static const struct pareto_point *frontier_next(const struct curves *curves, double behind_s)
{
    const struct pareto_point *next = NULL;
    for (uint32_t i = 0; i < curves->rows->count; i++)
        for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
            const struct pareto_point *point = &curve_at(curves, i)->point[b];
            if (!point->is_on_frontier || point->latency_s <= behind_s) continue;
            if (next == NULL || point->latency_s < next->latency_s) next = point;
        }
    return next;
}

static void draw_frontier(const struct curves *curves)
{
    struct strbuf *text = curves->plot->text;
    const struct pareto_point *point = frontier_next(curves, 0);
    if (point == NULL) return;
    svg_path_begin(text, "frontier");
    for (; point != NULL; point = frontier_next(curves, point->latency_s))
        svg_path_to(text, x_of(curves, point->latency_s),
                    y_of(curves, point->tokens_per_s_per_chip));
    svg_path_end(text);
}

/* What the formula says of the batches that it says do fit; one alone is a ring. */
static void draw_formula(const struct curves *curves, const struct pareto_curve *curve,
                         const char *style)
{
    struct strbuf *text = curves->plot->text;
    uint32_t count = 0;
    double x = 0, y = 0;
    for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state == PARETO_REFUSED || point->batch > curve->book_wall) continue;
        if (count++ == 0) svg_path_begin(text, style);
        x = x_of(curves, point->book.step_s);
        y = y_of(curves, point->book_tokens_per_s_per_chip);
        svg_path_to(text, x, y);
    }
    if (count > 0) svg_path_end(text);
    if (count == 1) svg_circle(text, x, y, POINT_RADIUS, style);
}

static void draw_line(const struct curves *curves, const struct pareto_curve *curve,
                      const char *style)
{
    struct strbuf *text = curves->plot->text;
    svg_path_begin(text, style);
    for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state == PARETO_PLAYED)
            svg_path_to(text, x_of(curves, point->latency_s),
                        y_of(curves, point->tokens_per_s_per_chip));
    }
    svg_path_end(text);
}

/* The knee has a ring, and its batch where no curve goes: on the left above. */
static void draw_points(const struct curves *curves, const struct pareto_curve *curve,
                        const char *fill)
{
    struct strbuf *text = curves->plot->text;
    for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state != PARETO_PLAYED) continue;
        double const x = x_of(curves, point->latency_s);
        double const y = y_of(curves, point->tokens_per_s_per_chip);
        if (point->is_knee) svg_circle(text, x, y, KNEE_RADIUS, "knee");
        svg_circle(text, x, y, POINT_RADIUS, fill);
        if (point->is_knee) svg_say(text, x - 10, y - 8, "tiny end halo", "%u", point->batch);
    }
}

static const struct pareto_point *last_played(const struct pareto *pareto,
                                              const struct pareto_curve *curve)
{
    const struct pareto_point *last = NULL;
    for (uint32_t b = 0; b < pareto->batch_count; b++)
        if (curve->point[b].state == PARETO_PLAYED) last = &curve->point[b];
    return last;
}

/* The name of each curve right of its end; where ends lie close together, names move apart. */
static void draw_names(const struct curves *curves)
{
    double const bottom = curves->plot->top + curves->plot->height;
    uint32_t order[SVG_SERIES_MAX], count = 0;
    double ends[SVG_SERIES_MAX], at = curves->plot->top - NAME_ROW;
    for (uint32_t i = 0; i < curves->rows->count; i++) {
        const struct pareto_point *point = last_played(curves->pareto, curve_at(curves, i));
        if (point == NULL) continue;
        uint32_t place = count++;
        ends[i] = y_of(curves, point->tokens_per_s_per_chip);
        for (; place > 0 && ends[order[place - 1]] > ends[i]; place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        char name[PARETO_NAME_BYTES];
        const struct pareto_curve *curve = curve_at(curves, order[i]);
        double const x = x_of(curves, last_played(curves->pareto, curve)->latency_s);
        at = fmin(fmax(ends[order[i]], at + NAME_ROW), bottom - (count - 1 - i) * NAME_ROW);
        svg_words(curves->plot->text, x + 12, at + 4, "head halo",
                  pareto_name(name, curves->pareto, curve));
    }
}

void pareto_draw_curves(const struct pareto *pareto, uint32_t first, const struct pareto_rows *rows,
                        const struct pareto_plot *plot, const struct pareto_axis *latency,
                        const struct pareto_axis *rate)
{
    struct curves const curves = {pareto, first, rows, plot, latency, rate};
    pareto_draw_x(plot, latency, PARETO_SECONDS);
    pareto_draw_y(plot, rate, PARETO_NUMBERS);
    draw_frontier(&curves);
    for (uint32_t i = 0; i < rows->count; i++) {
        char stroke[SVG_CLASS_BYTES], fill[SVG_CLASS_BYTES], style[SVG_CLASS_BYTES + 8];
        const struct pareto_curve *curve = curve_at(&curves, i);
        (void)svg_stroke(stroke, series_of(i));
        (void)snprintf(style, sizeof style, "%s formula", stroke);
        draw_formula(&curves, curve, style);
        if (last_played(pareto, curve) == NULL) continue;
        (void)snprintf(style, sizeof style, "%s solid", stroke);
        draw_line(&curves, curve, style);
        draw_points(&curves, curve, svg_fill(fill, series_of(i)));
    }
    draw_names(&curves);
}
