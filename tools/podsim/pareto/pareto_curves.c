/* Throughput against latency: the book's figure 8.1, simulated. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/frontier.h"
#include "tools/podsim/pareto/pareto_labels.h"
#include "tools/podsim/pareto/pareto_svg.h"

enum {
    NAME_HEIGHT = 11,
    NAME_WIDTH = 9, /* Of a letter of 13 pixels in bold, at most. */
    POINT_RADIUS = 4,
    KNEE_RADIUS = 8,
    DIGIT_WIDTH = 7,
    DIGIT_HEIGHT = 8,
    BATCH_BYTES = 16,
};

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
    struct pareto_obstacles *obstacles;
    double last_x, last_y; /* Of the path that is drawn. */
};

static void line_begin(struct curves *curves, const char *style)
{
    svg_path_begin(curves->plot->text, style);
    curves->last_x = curves->last_y = NAN;
}

static void line_to(struct curves *curves, double x, double y)
{
    svg_path_to(curves->plot->text, x, y);
    if (!isnan(curves->last_x))
        pareto_obstacles_add(curves->obstacles,
                             (struct pareto_segment){curves->last_x, curves->last_y, x, y});
    curves->last_x = x;
    curves->last_y = y;
}

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

static void draw_frontier(struct curves *curves)
{
    const struct pareto_point *point = frontier_next(curves, 0);
    if (point == NULL) return;
    line_begin(curves, "frontier");
    for (; point != NULL; point = frontier_next(curves, point->latency_s))
        line_to(curves, x_of(curves, point->latency_s), y_of(curves, point->tokens_per_s_per_chip));
    svg_path_end(curves->plot->text);
}

/* What the formula says of the batches that it says do fit; one alone is a ring. */
static void draw_formula(struct curves *curves, const struct pareto_curve *curve, const char *style)
{
    struct strbuf *text = curves->plot->text;
    uint32_t count = 0;
    double x = 0, y = 0;
    for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state == PARETO_REFUSED || point->batch > curve->book_wall) continue;
        if (count++ == 0) line_begin(curves, style);
        x = x_of(curves, point->book.step_s);
        y = y_of(curves, point->book_tokens_per_s_per_chip);
        line_to(curves, x, y);
    }
    if (count > 0) svg_path_end(text);
    if (count == 1) svg_circle(text, x, y, POINT_RADIUS, style);
}

static void draw_line(struct curves *curves, const struct pareto_curve *curve, const char *style)
{
    line_begin(curves, style);
    for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state == PARETO_PLAYED)
            line_to(curves, x_of(curves, point->latency_s),
                    y_of(curves, point->tokens_per_s_per_chip));
    }
    svg_path_end(curves->plot->text);
}

/* The knee has a ring. */
static void draw_points(struct curves *curves, const struct pareto_curve *curve, const char *fill)
{
    struct strbuf *text = curves->plot->text;
    for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
        const struct pareto_point *point = &curve->point[b];
        if (point->state != PARETO_PLAYED) continue;
        double const x = x_of(curves, point->latency_s);
        double const y = y_of(curves, point->tokens_per_s_per_chip);
        double const radius = point->is_knee ? KNEE_RADIUS : POINT_RADIUS;
        if (point->is_knee) svg_circle(text, x, y, KNEE_RADIUS, "knee");
        svg_circle(text, x, y, POINT_RADIUS, fill);
        pareto_obstacles_add_box(
            curves->obstacles, (struct pareto_box){x - radius / 2, y - radius / 2, radius, radius});
    }
}

/* The batch of each knee, where no line and no name is. */
static void draw_knees(struct curves *curves)
{
    const struct pareto_plot *plot = curves->plot;
    struct pareto_box const within = {plot->left, plot->top, plot->width, plot->height};
    for (uint32_t i = 0; i < curves->rows->count; i++) {
        const struct pareto_curve *curve = curve_at(curves, i);
        for (uint32_t b = 0; b < curves->pareto->batch_count; b++) {
            const struct pareto_point *point = &curve->point[b];
            char batch[BATCH_BYTES];
            if (point->state != PARETO_PLAYED || !point->is_knee) continue;
            int const digits = snprintf(batch, sizeof batch, "%u", point->batch);
            struct pareto_box const box =
                pareto_label_place(curves->obstacles, x_of(curves, point->latency_s),
                                   y_of(curves, point->tokens_per_s_per_chip), KNEE_RADIUS,
                                   digits * DIGIT_WIDTH, DIGIT_HEIGHT, within);
            pareto_obstacles_add_box(curves->obstacles, box);
            svg_words(plot->text, box.left + box.width / 2, box.top + box.height, "tiny mid halo",
                      batch);
        }
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

/* The name of each curve beside its end, in its colour, where no line, ring or other name is. */
static void draw_names(struct curves *curves)
{
    const struct pareto_plot *plot = curves->plot;
    struct pareto_box const within = {plot->left, plot->top, plot->width + PARETO_NAMES_WIDTH,
                                      plot->height};
    for (uint32_t i = 0; i < curves->rows->count; i++) {
        char name[PARETO_NAME_BYTES], fill[SVG_CLASS_BYTES], style[SVG_CLASS_BYTES + 16];
        const struct pareto_curve *curve = curve_at(curves, i);
        const struct pareto_point *point = last_played(curves->pareto, curve);
        if (point == NULL) continue;
        const char *const words = pareto_name(name, curves->pareto, curve);
        struct pareto_box const box = pareto_name_place(
            curves->obstacles, x_of(curves, point->latency_s),
            y_of(curves, point->tokens_per_s_per_chip), point->is_knee ? KNEE_RADIUS : POINT_RADIUS,
            (double)strlen(words) * NAME_WIDTH, NAME_HEIGHT, within);
        pareto_obstacles_add_box(curves->obstacles, box);
        (void)snprintf(style, sizeof style, "head halo %s", svg_fill(fill, series_of(i)));
        svg_words(plot->text, box.left, box.top + box.height, style, words);
    }
}

void pareto_draw_curves(const struct pareto *pareto, uint32_t first, const struct pareto_rows *rows,
                        const struct pareto_plot *plot, const struct pareto_axis *latency,
                        const struct pareto_axis *rate)
{
    struct pareto_obstacles obstacles;
    struct curves curves = {pareto, first, rows, plot, latency, rate, &obstacles, NAN, NAN};
    /* Formula, simulation and frontier, and two for the box of each point and each word. */
    pareto_obstacles_begin(&obstacles, pareto->arena, rows->count * (5 * pareto->batch_count + 4));
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
    draw_knees(&curves);
}
