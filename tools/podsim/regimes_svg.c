/* The map of `podsim regimes` as a picture: above, who wins at which size and ranks, with the exact
 * places of the changes; below, the times on the largest group. Letters say what colours say. */
#include <math.h>
#include <stdio.h>

#include "sim/base/quantity.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/regimes.h"

enum {
    WIDTH = 960,
    LEFT = 150,
    RIGHT = 930,
    TOP = 84,
    ROW = 24,
    GAP = 84,
    PLOT = 320,
    LEGEND_COLUMN = 190,
    LEGEND_ROW = 22,
};

/* Okabe and Ito's colours, which the colour-blind can tell apart. */
static const char *const colours[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                      "#f0e442", "#0072b2", "#d55e00", "#999999"};
enum { COLOUR_COUNT = sizeof colours / sizeof *colours };

struct picture {
    const struct regimes *regimes;
    struct text *text;
    double size_least, size_most; /* Logarithms. */
    uint32_t map_bottom, plot_top;
    double time_least, time_most; /* Logarithms to base 10 of seconds. */
};

static const char *colour_of(uint32_t algorithm)
{
    return colours[algorithm % COLOUR_COUNT];
}

/* Where colours come again, lines are dotted. */
static const char *dashes_of(uint32_t algorithm)
{
    return algorithm < COLOUR_COUNT ? "" : " stroke-dasharray=\"2 3\"";
}

static void add_escaped(struct text *text, const char *plain)
{
    for (; *plain != '\0'; plain++) {
        if (*plain == '&')
            text_add(text, "&amp;");
        else if (*plain == '<')
            text_add(text, "&lt;");
        else if (*plain == '>')
            text_add(text, "&gt;");
        else
            text_add_bytes(text, plain, 1);
    }
}

static double x_of(const struct picture *picture, uint64_t bytes)
{
    double const span = picture->size_most - picture->size_least;
    double const share = span > 0 ? (log2((double)bytes) - picture->size_least) / span : 0.5;
    return LEFT + share * (RIGHT - LEFT);
}

static double y_of(const struct picture *picture, double seconds)
{
    double const span = picture->time_most - picture->time_least;
    double const share = span > 0 ? (log10(seconds) - picture->time_least) / span : 0.5;
    return picture->plot_top + PLOT - share * PLOT;
}

static void add_label(struct text *text, double x, double y, const char *anchor, const char *label)
{
    text_add(text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    add_escaped(text, label);
    text_add(text, "</text>\n");
}

static void draw_head(const struct picture *picture, const struct question *question)
{
    struct text *text = picture->text;
    uint32_t const legend_rows = (picture->regimes->algorithm_count + 3) / 4;
    uint32_t const height = picture->plot_top + PLOT + 70 + legend_rows * LEGEND_ROW;
    text_add(text,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" "
             "height=\"%u\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" "
             "fill=\"#222\">\n<title>Latency regimes of ",
             WIDTH, height, WIDTH, height);
    text_add(text, "%s on ", operation_name(question->row.operation));
    add_escaped(text, question->machine_text);
    text_add(text,
             "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
             "<text x=\"20\" y=\"28\" font-size=\"18\" font-weight=\"bold\">%s on ",
             operation_name(question->row.operation));
    add_escaped(text, question->machine_text);
    text_add(text, ", profile %s</text>\n<text x=\"20\" y=\"48\">size: %s</text>\n",
             question->machine.chip.profile, operation_size_text(question->row.operation));
    add_label(text, 20, TOP - 12, "start", "ranks (axes): the fastest algorithm at each size");
}

/* Lines and labels at sizes that are far enough apart. */
static void draw_size_axis(const struct picture *picture, double top, double bottom)
{
    char label[REGIMES_SIZE_BYTES];
    uint32_t const first = (uint32_t)floor(picture->size_least);
    uint32_t const last = (uint32_t)ceil(picture->size_most);
    uint32_t const step = (last - first + 11) / 12 > 0 ? (last - first + 11) / 12 : 1;
    for (uint32_t power = first; power <= last && power < 63; power += step) {
        uint64_t const bytes = UINT64_C(1) << power;
        double const x = x_of(picture, bytes);
        if (x < LEFT - 1 || x > RIGHT + 1) continue;
        text_add(picture->text,
                 "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", x,
                 top, x, bottom);
        add_label(picture->text, x, bottom + 16, "middle", regimes_size(label, bytes));
    }
    add_label(picture->text, RIGHT, bottom + 32, "end", "size (bytes, K = 1024)");
}

static void draw_segment(const struct picture *picture, uint32_t row, uint8_t algorithm,
                         uint64_t from, uint64_t to)
{
    double const x = x_of(picture, from), width = x_of(picture, to) - x;
    double const y = TOP + (double)row * ROW;
    text_add(picture->text,
             "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\" "
             "stroke=\"#fff\"/>\n",
             x, y + 2, width > 1 ? width : 1, ROW - 4, colour_of(algorithm));
    if (width < 14) return;
    text_add(picture->text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%c</text>\n",
             x + width / 2, y + ROW / 2 + 4, regimes_letter(algorithm));
}

/* Where half (a circle) and 95 % (a square) of the peak are reached. */
static void draw_marks(const struct picture *picture, uint32_t row,
                       const struct regimes_group *group)
{
    double const y = TOP + (double)row * ROW + ROW / 2;
    const struct regimes *regimes = picture->regimes;
    uint64_t const least = regimes->size_bytes[0];
    uint64_t const most = regimes->size_bytes[regimes->size_count - 1];
    if (group->best.half_bytes >= least && group->best.half_bytes <= most)
        text_add(picture->text,
                 "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#fff\" stroke=\"#222\"/>\n",
                 x_of(picture, group->best.half_bytes), y);
    if (group->best.most_bytes >= least && group->best.most_bytes <= most)
        text_add(picture->text,
                 "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"#fff\" "
                 "stroke=\"#222\"/>\n",
                 x_of(picture, group->best.most_bytes) - 4, y - 4);
}

static void draw_map(const struct picture *picture)
{
    const struct regimes *regimes = picture->regimes;
    draw_size_axis(picture, TOP, picture->map_bottom);
    for (uint32_t g = 0; g < regimes->group_count; g++) {
        uint32_t const row = regimes->group_count - 1 - g; /* The largest on top. */
        const struct regimes_group *group = &regimes->group[g];
        char label[MEASURE_AXES_BYTES + 32];
        (void)snprintf(label, sizeof label, "%llu (%s)", (unsigned long long)group->ranks,
                       group->question.axes);
        add_label(picture->text, LEFT - 8, TOP + row * ROW + ROW / 2 + 4, "end", label);
        if (group->winner[0] == REGIMES_NONE) continue;
        uint64_t from = regimes->size_bytes[0];
        uint8_t winner = group->winner[0];
        for (uint32_t c = 0; c < group->crossover_count; c++) {
            draw_segment(picture, row, winner, from, group->crossover[c].size_bytes);
            from = group->crossover[c].size_bytes;
            winner = group->crossover[c].to;
        }
        draw_segment(picture, row, winner, from, regimes->size_bytes[regimes->size_count - 1]);
        draw_marks(picture, row, group);
    }
}

static void draw_time_axis(const struct picture *picture)
{
    for (int power = (int)floor(picture->time_least); power <= (int)ceil(picture->time_most);
         power++) {
        char label[QUANTITY_TEXT_BYTES];
        double const y = y_of(picture, pow(10, power));
        if (y < picture->plot_top - 1 || y > picture->plot_top + PLOT + 1) continue;
        text_add(picture->text,
                 "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", LEFT, y,
                 RIGHT, y);
        add_label(picture->text, LEFT - 8, y + 4, "end",
                  quantity_text_seconds(label, pow(10, power)));
    }
}

static double bound_s(const struct regimes_group *group, uint64_t bytes)
{
    return fmax(group->bound_alpha_s, group->bound_beta_s_per_byte * (double)bytes);
}

static void draw_curves(const struct picture *picture, const struct regimes_group *group)
{
    const struct regimes *regimes = picture->regimes;
    struct text *text = picture->text;
    char title[MEASURE_AXES_BYTES + 64];
    (void)snprintf(title, sizeof title, "time on %llu ranks (%s); dashed: what the fabric allows",
                   (unsigned long long)group->ranks, group->question.axes);
    add_label(text, 20, picture->plot_top - 12, "start", title);
    draw_size_axis(picture, picture->plot_top, picture->plot_top + PLOT);
    draw_time_axis(picture);
    for (uint32_t a = 0; a <= regimes->algorithm_count; a++) {
        bool const is_bound = a == regimes->algorithm_count;
        if (!is_bound && !group->curve[a].applies) continue;
        text_add(text, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\"%s points=\"",
                 is_bound ? "#222" : colour_of(a),
                 is_bound ? " stroke-dasharray=\"6 4\"" : dashes_of(a));
        for (uint32_t s = 0; s < regimes->size_count; s++) {
            double const seconds = is_bound ? bound_s(group, regimes->size_bytes[s])
                                            : units_seconds(group->curve[a].time_ps[s]);
            text_add(text, "%s%.1f,%.1f", s == 0 ? "" : " ", x_of(picture, regimes->size_bytes[s]),
                     y_of(picture, seconds));
        }
        text_add(text, "\"/>\n");
    }
}

static void draw_legend(const struct picture *picture)
{
    double const top = picture->plot_top + PLOT + 56;
    for (uint32_t a = 0; a < picture->regimes->algorithm_count; a++) {
        double const x = 20 + (double)(a % 4) * LEGEND_COLUMN;
        double const y = top + (double)(a / 4) * LEGEND_ROW;
        text_add(picture->text, "<path d=\"M%.1f %.1fh18\" stroke-width=\"8\" stroke=\"%s\"%s/>\n",
                 x, y - 4, colour_of(a), dashes_of(a));
        text_add(picture->text, "<text x=\"%.1f\" y=\"%.1f\">%c  ", x + 22, y, regimes_letter(a));
        add_escaped(picture->text, picture->regimes->algorithm[a]);
        text_add(picture->text, "</text>\n");
    }
    text_add(picture->text,
             "<circle cx=\"790\" cy=\"%.1f\" r=\"5\" fill=\"#fff\" stroke=\"#222\"/>\n", top - 4);
    add_label(picture->text, 800, top, "start", "half of the peak");
    text_add(picture->text,
             "<rect x=\"786\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"#fff\" "
             "stroke=\"#222\"/>\n",
             top + LEGEND_ROW - 8);
    add_label(picture->text, 800, top + LEGEND_ROW, "start", "95 % of the peak");
}

/* The range of all times and bounds of the group that is drawn. */
static void range_find(struct picture *picture, const struct regimes_group *group)
{
    const struct regimes *regimes = picture->regimes;
    double least = INFINITY, most = 0;
    for (uint32_t s = 0; s < regimes->size_count; s++) {
        double const bound = bound_s(group, regimes->size_bytes[s]);
        if (bound > 0) least = fmin(least, bound);
        most = fmax(most, bound);
        for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
            if (!group->curve[a].applies) continue;
            least = fmin(least, units_seconds(group->curve[a].time_ps[s]));
            most = fmax(most, units_seconds(group->curve[a].time_ps[s]));
        }
    }
    picture->time_least = floor(log10(least));
    picture->time_most = ceil(log10(most));
}

void regimes_write_svg(const struct question *question, const struct regimes *regimes,
                       struct text *text)
{
    uint32_t const map_bottom = TOP + regimes->group_count * ROW;
    const struct regimes_group *largest = &regimes->group[regimes->group_count - 1];
    struct picture picture = {
        .regimes = regimes,
        .text = text,
        .size_least = log2((double)regimes->size_bytes[0]),
        .size_most = log2((double)regimes->size_bytes[regimes->size_count - 1]),
        .map_bottom = map_bottom,
        .plot_top = map_bottom + GAP,
    };
    range_find(&picture, largest);
    draw_head(&picture, question);
    draw_map(&picture);
    draw_curves(&picture, largest);
    draw_legend(&picture);
    text_add(text, "</svg>\n");
}
