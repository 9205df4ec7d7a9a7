/* Axes of the plots of `podsim pareto`. */
#include <math.h>
#include <stdio.h>

#include "tools/podsim/pareto/pareto_svg.h"

enum { TICKS_MAX = 64, TICKS_LEAST = 3, TICKS_WANTED = 5, BATCH_TICKS = 12 };

double pareto_at(const struct pareto_axis *axis, double value)
{
    double const span = axis->is_linear ? axis->most - axis->least : log(axis->most / axis->least);
    double const part = axis->is_linear ? value - axis->least : log(value / axis->least);
    return axis->from + (span > 0 ? part / span : 0.5) * (axis->to - axis->from);
}

static const char *tick_text(char buffer[PARETO_TICK_BYTES], double value, enum pareto_ticks ticks)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    uint32_t unit = 0;
    if (ticks == PARETO_NUMBERS) {
        (void)snprintf(buffer, PARETO_TICK_BYTES, "%g", value);
        return buffer;
    }
    while (unit < 2 && value < 0.9999 * units[unit].unit) unit++;
    if (value == 0) unit = 0;
    (void)snprintf(buffer, PARETO_TICK_BYTES, "%.4g %s", value / units[unit].unit,
                   value == 0 ? "" : units[unit].name);
    return buffer;
}

/* Multiples of 1, 2 or 5 times a power of ten. */
static uint32_t multiples_find(const struct pareto_axis *axis, double ticks[TICKS_MAX])
{
    double const wanted = (axis->most - axis->least) / TICKS_WANTED;
    double const power = pow(10, floor(log10(wanted)));
    double const step = power * (wanted > 5 * power ? 10 : wanted > 2 * power ? 5 : 2);
    uint32_t count = 0;
    for (double at = ceil(axis->least / step); at * step <= axis->most && count < TICKS_MAX; at++)
        ticks[count++] = at * step;
    return count;
}

/* On a logarithmic axis 1, 2 and 5 times powers of ten, unless it is too short for these. */
static uint32_t ticks_find(const struct pareto_axis *axis, double ticks[TICKS_MAX])
{
    static const double steps[] = {1, 2, 5};
    uint32_t const step_count = axis->most / axis->least > 1e4 ? 1 : 3;
    uint32_t count = 0;
    if (axis->is_linear) return multiples_find(axis, ticks);
    for (double power = floor(log10(axis->least)); power <= log10(axis->most); power++)
        for (uint32_t i = 0; i < step_count; i++) {
            double const at = steps[i] * pow(10, power);
            if (at >= axis->least && at <= axis->most && count < TICKS_MAX) ticks[count++] = at;
        }
    return count < TICKS_LEAST ? multiples_find(axis, ticks) : count;
}

/* A line across the plot at a pixel, with words at its end: below the plot, or to its left. */
typedef void line_fn(const struct pareto_plot *plot, double at, const char *words);

static void upright_draw(const struct pareto_plot *plot, double x, const char *words)
{
    svg_line(plot->text, x, plot->top, x, plot->top + plot->height, "grid");
    svg_words(plot->text, x, plot->top + plot->height + 16, "mid", words);
}

static void level_draw(const struct pareto_plot *plot, double y, const char *words)
{
    svg_line(plot->text, plot->left, y, plot->left + plot->width, y, "grid");
    svg_words(plot->text, plot->left - 8, y + 4, "end", words);
}

static void ticks_draw(const struct pareto_plot *plot, const struct pareto_axis *axis,
                       enum pareto_ticks kind, line_fn *draw)
{
    double ticks[TICKS_MAX];
    char text[PARETO_TICK_BYTES];
    uint32_t const count = ticks_find(axis, ticks);
    for (uint32_t i = 0; i < count; i++)
        draw(plot, pareto_at(axis, ticks[i]), tick_text(text, ticks[i], kind));
}

void pareto_draw_x(const struct pareto_plot *plot, const struct pareto_axis *axis,
                   enum pareto_ticks kind)
{
    ticks_draw(plot, axis, kind, upright_draw);
}

void pareto_draw_y(const struct pareto_plot *plot, const struct pareto_axis *axis,
                   enum pareto_ticks kind)
{
    ticks_draw(plot, axis, kind, level_draw);
}

void pareto_draw_batches(const struct pareto_plot *plot, const struct pareto_axis *axis)
{
    int const first = (int)floor(log2(axis->least)), last = (int)ceil(log2(axis->most));
    int const step = (last - first) / BATCH_TICKS + 1;
    for (int power = first; power <= last; power += step) {
        double const batch = pow(2, power);
        char text[PARETO_TICK_BYTES];
        if (batch < axis->least || batch > axis->most) continue;
        (void)snprintf(text, sizeof text, "%.0f", batch);
        upright_draw(plot, pareto_at(axis, batch), text);
    }
}
