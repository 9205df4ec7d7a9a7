/* svg.c: predicted against measured time, a mark for each row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/base/svg.h"
#include "sim/report/table.h"
#include "tools/podsim/validate/validate.h"

enum {
    MARGIN = 24,
    LEFT = 90,
    TOP = 76,
    SIDE = 560,
    LEGEND_LEFT = LEFT + SIDE + 28,
    WIDTH = LEGEND_LEFT + 240,
    HEIGHT = TOP + SIDE + 60,
    LINE = 18,
};
static const double RADIUS = 3.5;

/* Of marks, by test. */
enum { COLOURS = 12, COLOUR_BYTES = 16 };
static const char colours[] =
    ".c0 { fill: #56b4e9 } .c1 { fill: #e69f00 } .c2 { fill: #009e73 } .c3 { fill: #cc79a7 }\n"
    ".c4 { fill: #d4c21a } .c5 { fill: #0072b2 } .c6 { fill: #d55e00 } .c7 { fill: #7f7f7f }\n"
    ".c8 { fill: #7b4fb5 } .c9 { fill: #7a5230 } .c10 { fill: #2ca02c } .c11 { fill: #e377c2 }\n";

static const char *colour(char buffer[COLOUR_BYTES], uint32_t series)
{
    (void)snprintf(buffer, COLOUR_BYTES, "c%u", series % COLOURS);
    return buffer;
}

struct picture {
    const struct validate *validate;
    struct strbuf *text;
    double least, most; /* Seconds. */
};

static bool is_shown(const struct picture *picture, uint32_t s)
{
    return picture->validate->wanted[s] && picture->validate->score[s].played > 0;
}

/* Of both axes, from 0 to SIDE. */
static double at(const struct picture *picture, double seconds)
{
    return SIDE * log(seconds / picture->least) / log(picture->most / picture->least);
}

static void range_add(struct picture *picture, double seconds)
{
    if (picture->least == 0 || seconds < picture->least) picture->least = seconds;
    if (seconds > picture->most) picture->most = seconds;
}

static void range_find(struct picture *picture)
{
    const struct published *published = &picture->validate->published;
    for (uint32_t s = 0; s < published->set_count; s++)
        for (uint32_t r = 0; is_shown(picture, s) && r < published->set[s].row_count; r++) {
            const struct published_row *row = published->set[s].row[r];
            const struct validate_result *result = validate_result_of(picture->validate, row);
            if (result->state != VALIDATE_PLAYED) continue;
            range_add(picture, row->seconds);
            range_add(picture, result->predicted_s);
        }
    if (picture->most == 0) picture->least = picture->most = 1;
    picture->least = pow(10, floor(log10(picture->least)));
    picture->most = pow(10, ceil(log10(picture->most) + 1e-9));
}

static void axes_draw(const struct picture *picture)
{
    for (double tick = picture->least; tick < 1.001 * picture->most; tick *= 10) {
        double const place = at(picture, tick);
        struct table_figure const words = table_seconds(tick);
        svg_line(picture->text, LEFT + place, TOP, LEFT + place, TOP + SIDE, "grid");
        svg_line(picture->text, LEFT, TOP + SIDE - place, LEFT + SIDE, TOP + SIDE - place, "grid");
        svg_words(picture->text, LEFT + place, TOP + SIDE + 18, "small mid", words.text);
        svg_words(picture->text, LEFT - 8, TOP + SIDE - place + 4, "small end", words.text);
    }
    svg_words(picture->text, LEFT + SIDE / 2.0, TOP + SIDE + 40, "mid", "measured");
    svg_words(picture->text, LEFT, TOP - 10, "", "predicted");
}

/* Equal times, and where one is 20 % more than the other. */
static void diagonals_draw(const struct picture *picture)
{
    static const double factors[] = {1, 1.2, 1 / 1.2};
    for (uint32_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        double const shift = SIDE * log(factors[i]) / log(picture->most / picture->least);
        double const from = shift < 0 ? -shift : 0, to = shift > 0 ? SIDE - shift : SIDE;
        svg_line(picture->text, LEFT + from, TOP + SIDE - from - shift, LEFT + to,
                 TOP + SIDE - to - shift, i == 0 ? "axis" : "grid dashed");
    }
}

static void marks_draw(const struct picture *picture, uint32_t s, uint32_t series)
{
    const struct published_set *set = &picture->validate->published.set[s];
    char style[COLOUR_BYTES];
    for (uint32_t r = 0; r < set->row_count; r++) {
        const struct validate_result *result = validate_result_of(picture->validate, set->row[r]);
        if (result->state != VALIDATE_PLAYED) continue;
        svg_circle(picture->text, LEFT + at(picture, set->row[r]->seconds),
                   TOP + SIDE - at(picture, result->predicted_s), RADIUS,
                   set->learned ? "soft" : colour(style, series));
    }
}

static void legend_draw(const struct picture *picture, uint32_t s, uint32_t series, double y)
{
    const struct published_set *set = &picture->validate->published.set[s];
    char style[COLOUR_BYTES];
    svg_circle(picture->text, LEGEND_LEFT, y - 4, RADIUS + 1, colour(style, series));
    svg_say(picture->text, LEGEND_LEFT + 12, y, "small", "%s: %u rows, %+.0f %%", set->name,
            picture->validate->score[s].played, 100 * picture->validate->score[s].mean);
}

void validate_write_svg(const struct validate *validate, struct strbuf *text)
{
    struct picture picture = {.validate = validate, .text = text};
    uint32_t series = 0;
    bool has_learned = false;
    range_find(&picture);
    svg_begin(text, &(struct svg_page){
                        .width = WIDTH,
                        .height = HEIGHT,
                        .title = "predicted against measured time of published steps",
                        .classes = colours,
                    });
    svg_words(text, MARGIN, 30, "title", "Published steps: predicted against measured");
    svg_words(text, MARGIN, 50, "small",
              "both axes logarithmic; dashed: 20 % more or less than measured");
    axes_draw(&picture);
    diagonals_draw(&picture);
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        if (!is_shown(&picture, s) || !validate->published.set[s].learned) continue;
        marks_draw(&picture, s, 0);
        has_learned = true;
    }
    for (uint32_t s = 0; s < validate->published.set_count; s++) {
        if (!is_shown(&picture, s) || validate->published.set[s].learned) continue;
        marks_draw(&picture, s, series);
        legend_draw(&picture, s, series, TOP + 12 + LINE * series);
        series++;
    }
    if (has_learned) {
        svg_circle(text, LEGEND_LEFT, TOP + 8 + LINE * series, RADIUS + 1, "soft");
        svg_words(text, LEGEND_LEFT + 12, TOP + 12 + LINE * series, "small", "learned from");
    }
    svg_end(text);
}
