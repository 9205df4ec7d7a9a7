/* The map of `podsim regimes` as a picture: above, who wins at which size and ranks, with the exact
 * places of the changes; below, the times on the largest group. Letters say what colours say. */
#include <math.h>
#include <stdio.h>

#include "sim/base/quantity.h"
#include "sim/base/svg.h"
#include "sim/base/units.h"
#include "tools/podsim/regimes/regimes.h"

enum {
    WIDTH = 1180,
    LEFT = 150,
    RIGHT = 1100, /* Letters of the curves stand right of it. */
    TOP = 84,
    ROW = 24,
    GAP = 84,
    PLOT = 360,
    MARK_APART = 12, /* A letter and a mark. */
    LETTER = 16,     /* From one letter next to the curves to the next. */
    LEGEND_COLUMNS = 3,
    LEGEND_COLUMN = 316, /* The longest name, in bold. */
    LEGEND_ROW = 22,
    SEGMENT_LEAST = 4, /* Pixels of a part of the map that can be seen. */
};

struct picture {
    const struct regimes *regimes;
    struct strbuf *text;
    double size_least, size_most; /* Logarithms. */
    uint32_t map_bottom, plot_top;
    double time_least, time_most; /* Logarithms to base 10 of seconds. */
    bool wins[REGIMES_ALGORITHMS_MAX];
    uint32_t series[REGIMES_ALGORITHMS_MAX]; /* Colour and pattern of each algorithm. */
};

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

/* A part of a row of the map. */
struct segment {
    uint8_t algorithm;
    double from, to; /* Pixels. */
};

/* The winners of a group, from small sizes to large ones. Parts too narrow to be seen go to the
 * winner before them, or at the left end to the one behind. */
static uint32_t segments_find(const struct picture *picture, const struct regimes_group *group,
                              struct segment ret_segment[REGIMES_CROSSOVERS_MAX + 1])
{
    const struct regimes *regimes = picture->regimes;
    uint32_t count = 0;
    uint64_t from = regimes->size_bytes[0];
    uint8_t winner = group->winner[0];
    for (uint32_t c = 0; c <= group->crossover_count; c++) {
        bool const is_last = c == group->crossover_count;
        uint64_t const to =
            is_last ? regimes->size_bytes[regimes->size_count - 1] : group->crossover[c].size_bytes;
        double const left = x_of(picture, from), right = x_of(picture, to);
        bool const is_seen = right - left >= SEGMENT_LEAST || regimes->size_count == 1;
        struct segment *before = count > 0 ? &ret_segment[count - 1] : NULL;
        if (before != NULL && (!is_seen || before->algorithm == winner))
            before->to = right;
        else if (is_seen)
            ret_segment[count++] = (struct segment){winner, before == NULL ? LEFT : left, right};
        if (is_last) break;
        from = to;
        winner = group->crossover[c].to;
    }
    return count;
}

/* Winners take the colours first, which are easier to tell apart than patterns. */
static void series_choose(struct picture *picture)
{
    const struct regimes *regimes = picture->regimes;
    uint32_t next = 0;
    for (uint32_t g = 0; g < regimes->group_count; g++) {
        struct segment segment[REGIMES_CROSSOVERS_MAX + 1];
        if (regimes->group[g].winner[0] == REGIMES_NONE) continue;
        uint32_t const count = segments_find(picture, &regimes->group[g], segment);
        for (uint32_t i = 0; i < count; i++) picture->wins[segment[i].algorithm] = true;
    }
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (picture->wins[a]) picture->series[a] = next++;
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (!picture->wins[a]) picture->series[a] = next++;
}

static uint32_t legend_rows(const struct picture *picture)
{
    uint32_t const rows = (picture->regimes->algorithm_count + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;
    return rows > 4 ? rows : 4; /* The marks' column has four. */
}

static void draw_head(const struct picture *picture, const struct collective_args *args)
{
    struct strbuf *text = picture->text;
    struct strbuf title = {0};
    strbuf_add(&title, "%s on %s, profile %s", measure_op_name(args->row.operation),
               args->machine_text, args->machine.chip.profile);
    svg_begin(text, &(struct svg_page){
                        .width = WIDTH,
                        .height = picture->plot_top + PLOT + 70 + legend_rows(picture) * LEGEND_ROW,
                        .title = title.bytes,
                        .classes = ".thick { fill: none; stroke-width: 3px }\n"
                                   ".thin { fill: none; stroke-width: 1px; opacity: 0.8 }\n"
                                   ".bound { stroke: #222; stroke-width: 2px }\n"
                                   ".mark { fill: #fff; stroke: #222 }\n",
                        .dark = ".bound { stroke: #e6e6e6 }\n",
                        .series_count = picture->regimes->algorithm_count,
                    });
    svg_words(text, 20, 28, "title", title.bytes);
    text->failed = text->failed || title.failed;
    strbuf_free(&title);
    svg_say(text, 20, 48, "small", "size: %s", measure_op_size_text(args->row.operation));
    svg_words(text, 20, TOP - 12, "small",
              "ranks (axes): the fastest algorithm at each size; changes less than four pixels "
              "apart are one");
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
        svg_line(picture->text, x, top, x, bottom, "grid");
        svg_words(picture->text, x, bottom + 16, "mid", regimes_size(label, bytes));
    }
    svg_words(picture->text, RIGHT, bottom + 32, "end", "size (bytes, K = 1024)");
}

/* Where half (a circle) and 95 % (a square) of the peak are reached; NAN: not among the sizes. */
struct marks {
    double half, most;
};

static struct marks marks_find(const struct picture *picture, const struct regimes_group *group)
{
    const struct regimes *regimes = picture->regimes;
    uint64_t const least = regimes->size_bytes[0];
    uint64_t const most = regimes->size_bytes[regimes->size_count - 1];
    bool const has_half = group->best.half_bytes >= least && group->best.half_bytes <= most;
    bool const has_most = group->best.most_bytes >= least && group->best.most_bytes <= most;
    return (struct marks){has_half ? x_of(picture, group->best.half_bytes) : (double)NAN,
                          has_most ? x_of(picture, group->best.most_bytes) : (double)NAN};
}

/* The place next to the middle of a part of the map where no mark lies on its letter; the middle if
 * there is none. */
static double letter_place(const struct segment *segment, const struct marks *marks)
{
    double const middle = (segment->from + segment->to) / 2;
    for (int step = 0; step < 16; step++) {
        double const x = middle + (step % 2 == 0 ? -1 : 1) * (step + 1) / 2 * 4.0;
        bool const is_inside = x >= segment->from + 7 && x <= segment->to - 7;
        /* Nothing is near to NAN. */
        if (is_inside && !(fabs(x - marks->half) < MARK_APART) &&
            !(fabs(x - marks->most) < MARK_APART))
            return x;
    }
    return middle;
}

static void draw_segment(const struct picture *picture, uint32_t row, const struct segment *segment,
                         const struct marks *marks)
{
    char style[SVG_CLASS_BYTES];
    double const width = segment->to - segment->from, y = TOP + (double)row * ROW;
    svg_box(picture->text, segment->from, y + 2, width > 2 ? width - 1 : width, ROW - 4,
            svg_fill(style, picture->series[segment->algorithm]));
    if (width >= 14)
        svg_say(picture->text, letter_place(segment, marks), y + ROW / 2 + 4, "on mid", "%c",
                regimes_letter(segment->algorithm));
}

static void draw_marks(const struct picture *picture, uint32_t row, const struct marks *marks)
{
    double const y = TOP + (double)row * ROW + ROW / 2;
    if (!isnan(marks->half)) svg_circle(picture->text, marks->half, y, 5, "mark");
    if (!isnan(marks->most)) svg_box(picture->text, marks->most - 4, y - 4, 8, 8, "mark");
}

static void draw_map(const struct picture *picture)
{
    const struct regimes *regimes = picture->regimes;
    draw_size_axis(picture, TOP, picture->map_bottom);
    for (uint32_t g = 0; g < regimes->group_count; g++) {
        uint32_t const row = regimes->group_count - 1 - g; /* The largest on top. */
        const struct regimes_group *group = &regimes->group[g];
        struct segment segment[REGIMES_CROSSOVERS_MAX + 1];
        svg_say(picture->text, LEFT - 8, TOP + row * ROW + ROW / 2 + 4, "end", "%llu (%s)",
                (unsigned long long)group->ranks, group->args.axes);
        if (group->winner[0] == REGIMES_NONE) continue;
        uint32_t const count = segments_find(picture, group, segment);
        struct marks const marks = marks_find(picture, group);
        for (uint32_t i = 0; i < count; i++) draw_segment(picture, row, &segment[i], &marks);
        draw_marks(picture, row, &marks);
    }
}

static void draw_time_axis(const struct picture *picture)
{
    for (int power = (int)floor(picture->time_least); power <= (int)ceil(picture->time_most);
         power++) {
        char label[QUANTITY_TEXT_BYTES];
        double const y = y_of(picture, pow(10, power));
        if (y < picture->plot_top - 1 || y > picture->plot_top + PLOT + 1) continue;
        svg_line(picture->text, LEFT, y, RIGHT, y, "grid");
        svg_words(picture->text, LEFT - 8, y + 4, "end",
                  quantity_text_seconds(label, pow(10, power)));
    }
}

enum { LINE_STYLE_BYTES = SVG_CLASS_BYTES + 6 };

static const char *line_style(char buffer[LINE_STYLE_BYTES], const struct picture *picture,
                              uint32_t algorithm)
{
    char series[SVG_CLASS_BYTES];
    (void)snprintf(buffer, LINE_STYLE_BYTES, "%s %s",
                   svg_stroke(series, picture->series[algorithm]),
                   picture->wins[algorithm] ? "thick" : "thin");
    return buffer;
}

static void draw_curve(const struct picture *picture, const struct regimes_group *group,
                       uint32_t algorithm)
{
    const struct regimes *regimes = picture->regimes;
    char style[LINE_STYLE_BYTES];
    svg_path_begin(picture->text, line_style(style, picture, algorithm));
    for (uint32_t s = 0; s < regimes->size_count; s++)
        svg_path_to(picture->text, x_of(picture, regimes->size_bytes[s]),
                    y_of(picture, units_seconds(group->curve[algorithm].time_ps[s])));
    svg_path_end(picture->text);
}

static void draw_bound(const struct picture *picture, const struct regimes_group *group)
{
    const struct regimes *regimes = picture->regimes;
    svg_path_begin(picture->text, "bound dashed");
    for (uint32_t s = 0; s < regimes->size_count; s++)
        svg_path_to(picture->text, x_of(picture, regimes->size_bytes[s]),
                    y_of(picture, group->strict_s[s]));
    svg_path_end(picture->text);
}

/* The letter of each curve right of its end; where ends lie close together, letters move apart and
 * a thin line leads to each. */
static void draw_letters(const struct picture *picture, const struct regimes_group *group)
{
    const struct regimes *regimes = picture->regimes;
    uint32_t order[REGIMES_ALGORITHMS_MAX], count = 0;
    double end[REGIMES_ALGORITHMS_MAX], at = picture->plot_top - LETTER;
    for (uint32_t a = 0; a < regimes->algorithm_count; a++) {
        if (!group->curve[a].applies) continue;
        end[a] = y_of(picture, units_seconds(group->curve[a].time_ps[regimes->size_count - 1]));
        uint32_t i = count++;
        for (; i > 0 && end[order[i - 1]] > end[a]; i--) order[i] = order[i - 1];
        order[i] = a;
    }
    for (uint32_t i = 0; i < count; i++) {
        char style[SVG_CLASS_BYTES];
        double const room = picture->plot_top + PLOT - (double)(count - 1 - i) * LETTER;
        double const y = fmin(fmax(end[order[i]], at + LETTER), room);
        svg_line(picture->text, RIGHT + 2, end[order[i]], RIGHT + 28, y,
                 svg_stroke(style, picture->series[order[i]]));
        svg_say(picture->text, RIGHT + 32, y + 4, picture->wins[order[i]] ? "head" : "small", "%c",
                regimes_letter(order[i]));
        at = y;
    }
}

static void draw_curves(const struct picture *picture, const struct regimes_group *group)
{
    svg_say(picture->text, 20, picture->plot_top - 12, "small",
            "time on %llu ranks (%s): winners of the map thick, the others thin; dashed and "
            "without colour: what the fabric allows",
            (unsigned long long)group->ranks, group->args.axes);
    draw_size_axis(picture, picture->plot_top, picture->plot_top + PLOT);
    draw_time_axis(picture);
    for (uint32_t strong = 0; strong < 2; strong++)
        for (uint32_t a = 0; a < picture->regimes->algorithm_count; a++)
            if (group->curve[a].applies && picture->wins[a] == (strong == 1))
                draw_curve(picture, group, a);
    draw_bound(picture, group);
    draw_letters(picture, group);
}

static void draw_legend(const struct picture *picture)
{
    struct strbuf *text = picture->text;
    double const top = picture->plot_top + PLOT + 56, marks = 20 + LEGEND_COLUMNS * LEGEND_COLUMN;
    for (uint32_t a = 0; a < picture->regimes->algorithm_count; a++) {
        char fill[SVG_CLASS_BYTES], style[LINE_STYLE_BYTES];
        double const x = 20 + (double)(a % LEGEND_COLUMNS) * LEGEND_COLUMN;
        double const y = top + (double)(a / LEGEND_COLUMNS) * LEGEND_ROW;
        svg_box(text, x, y - 9, 16, 11, svg_fill(fill, picture->series[a]));
        svg_line(text, x + 20, y - 4, x + 48, y - 4, line_style(style, picture, a));
        svg_say(text, x + 54, y, picture->wins[a] ? "head" : "small", "%c  %s", regimes_letter(a),
                picture->regimes->algorithm_name[a]);
    }
    svg_circle(text, marks + 8, top - 4, 5, "mark");
    svg_words(text, marks + 22, top, "small", "half of the peak");
    svg_box(text, marks + 4, top + LEGEND_ROW - 8, 8, 8, "mark");
    svg_words(text, marks + 22, top + LEGEND_ROW, "small", "95 % of the peak");
    svg_line(text, marks, top + 2 * LEGEND_ROW - 4, marks + 18, top + 2 * LEGEND_ROW - 4,
             "bound dashed");
    svg_words(text, marks + 22, top + 2 * LEGEND_ROW, "small", "what the fabric allows");
}

/* The range of all times and bounds of the group that is drawn. */
static void range_find(struct picture *picture, const struct regimes_group *group)
{
    const struct regimes *regimes = picture->regimes;
    double least = INFINITY, most = 0;
    for (uint32_t s = 0; s < regimes->size_count; s++) {
        double const bound = group->strict_s[s];
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

void regimes_write_svg(const struct collective_args *args, const struct regimes *regimes,
                       struct strbuf *text)
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
    series_choose(&picture);
    draw_head(&picture, args);
    draw_map(&picture);
    draw_curves(&picture, largest);
    draw_legend(&picture);
    svg_end(text);
}
