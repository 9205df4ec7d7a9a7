#include "tools/podsim/pipeline/lanes_svg.h"

#include <math.h>
#include <stdio.h>

#include "sim/base/svg.h"

enum {
    LEFT = 64,
    RIGHT = 24, /* Room for half of the last number of the axis. */
    WIDTH_LEAST = 1280 - LEFT - RIGHT,
    WIDTH_MOST = 2800,
    LANE = 20,
    GAP = 2,
    HEAD = 64,
    LEGEND_ROW = 16,
    LEGEND_MAX = 6, /* Sentences, and the NULL behind them. */
    TITLE = 26,
    AXIS = 20,
    AXIS_PITCH = 90, /* At least between two numbers of the axis. */
    CURVE = 48,
    BELOW = 40,
    DIGIT = 5,
    NUMBERED_EVERY = 4, /* Of passes too narrow for a number. */
    NUMBER_DIGITS_MAX = 16,
};

/* Of a digit in the smaller letters, and what a number keeps clear. */
static const double small_digit = 4.2, small_line = 7.5, clear = 1;
/* The narrowest pass, while the page may become wider, and the narrowest that has one digit above
 * the other: digits of the next pass stand apart by half of one. */
static const double narrow = 5, stacked_width = 6.5;

static const char classes[] =
    ".p0 { fill: #7aa6f0 } .p1 { fill: #8fce9a } .p2 { fill: #6cc5c1 } .p3 { fill: #f3b562 }\n"
    ".p0.pale { fill: #c1d5f9 } .p1.pale { fill: #cbe9d0 } .p2.pale { fill: #b9e3e1 }\n"
    ".p3.pale { fill: #fadcb4 } .n { font-size: 9px; text-anchor: middle; fill: #111 }\n"
    ".d { font-size: 7.5px; text-anchor: middle; fill: #111 }\n"
    ".e { font-size: 7.5px; text-anchor: start; fill: #111 }\n"
    ".held { fill: #ddd; stroke: #888 }\n";

static double scale_of(const struct lanes_page *page)
{
    double const wanted = narrow * page->longest_units / page->narrowest_units;
    return fmin(fmax(wanted, WIDTH_LEAST), WIDTH_MOST) / page->longest_units;
}

void lanes_page_add(struct lanes_page *page, const struct schedule *schedule,
                    const struct schedule_played *played, double ticks_per_unit)
{
    bool const is_first = page->lanes_height == 0;
    bool const has_copies = schedule->copy_count > 1;
    page->has_copies = page->has_copies || has_copies;
    page->has_chunks = page->has_chunks || (!has_copies && schedule->chunk_count > 1);
    page->lanes_height += TITLE + schedule->rank_count * (LANE + GAP) + AXIS + CURVE + BELOW;
    double const makespan = fmax((double)played->makespan, 1) / ticks_per_unit;
    if (is_first || makespan > page->longest_units) page->longest_units = makespan;
    if (is_first) page->narrowest_units = makespan;
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < schedule->rank[r].count; i++) {
            const struct schedule_pass *pass = &schedule->rank[r].pass[i];
            double const width =
                (double)(played->lane[r].end[i] - played->lane[r].begin[i]) / ticks_per_unit;
            page->has_kind[pass->kind] = true;
            page->has_pairs = page->has_pairs || pass->paired;
            if (width > 0 && width < page->narrowest_units) page->narrowest_units = width;
        }
}

/* 1, 2 or 5 times a power of ten, so that numbers of the axis stand apart. */
static double axis_step(double scale)
{
    double const least = AXIS_PITCH / scale;
    double const power = pow(10, floor(log10(least)));
    return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

static void draw_axis(const struct lanes_page *page, double end_units, double top, double height,
                      struct strbuf *text)
{
    double const scale = scale_of(page), step = axis_step(scale);
    for (uint32_t i = 0; i * step <= end_units * 1.0001; i++) {
        double const x = LEFT + scale * step * i;
        svg_line(text, x, top, x, top + height + 4, "grid");
        svg_say(text, x, top + height + 15, "tiny mid", "%.6g%s%s", step * i,
                *page->unit == '\0' ? "" : " ", page->unit);
    }
}

/* Memory up to the end of the passes; the update behind them is not drawn. */
static void draw_curve(const struct lanes_picture *picture, double scale, double top,
                       struct strbuf *text)
{
    double const bottom = top + CURVE;
    double const end = (double)picture->played->makespan, right = LEFT + scale * end;
    double y = bottom;
    svg_line(text, LEFT, top, right, top, "grid dashed");
    svg_path_begin(text, "held");
    svg_path_to(text, LEFT, bottom);
    for (uint64_t i = 0; i < picture->curve_count && picture->curve_at[i] <= end; i++) {
        double const x = LEFT + scale * picture->curve_at[i];
        svg_path_to(text, x, y);
        y = bottom - CURVE * picture->curve_share[i];
        svg_path_to(text, x, y);
    }
    svg_path_to(text, right, y);
    svg_path_to(text, right, bottom);
    svg_path_end(text);
    svg_words(text, LEFT - 6, top + 5, "tiny end", picture->curve_most);
    svg_words(text, LEFT - 6, bottom, "tiny end", "0");
}

/* Every second of the stages that a rank holds, by their numbers, wherever they lie. */
struct second_stages {
    bool is_second[SCHEDULE_STAGES_MAX];
};

static void second_stages_find(const struct schedule *schedule, struct second_stages *ret_seconds)
{
    bool next_is_second[SCHEDULE_RANKS_MAX] = {false};
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        uint32_t const rank = schedule->rank_of[s];
        ret_seconds->is_second[s] = next_is_second[rank];
        next_is_second[rank] = !next_is_second[rank];
    }
}

/* A rank's stages can be told apart, and of two copies of the model the ways they go. */
static bool is_pale(const struct schedule *schedule, const struct second_stages *seconds,
                    const struct schedule_pass *pass)
{
    if (schedule->copy_count > 1) return pass->microbatch >= schedule->microbatch_count / 2;
    return seconds->is_second[pass->stage];
}

/* The microbatch where there is room for it, which is how much a number takes. */
struct number {
    char words[NUMBER_DIGITS_MAX];
    int digits;
    double width, small_width, stacked_height;
};

static struct number number_of(const struct schedule_pass *pass)
{
    struct number number;
    number.digits = snprintf(number.words, sizeof number.words, "%u", pass->microbatch);
    number.width = DIGIT * number.digits + 3;
    number.small_width = small_digit * number.digits + clear;
    number.stacked_height = small_line * number.digits + clear;
    return number;
}

static void draw_stacked(const struct number *number, double middle, double base,
                         struct strbuf *text)
{
    double const first = base - small_line * (number->digits - 1) / 2;
    for (int i = 0; i < number->digits; i++)
        svg_say(text, middle, first + small_line * i, "d", "%c", number->words[i]);
}

static void draw_pass(const struct lanes_picture *picture, const struct second_stages *seconds,
                      double scale, uint32_t rank, uint32_t index, double y, double height,
                      struct strbuf *text)
{
    const struct schedule *schedule = picture->schedule;
    const struct schedule_pass *pass = &schedule->rank[rank].pass[index];
    const struct schedule_lane *lane = &picture->played->lane[rank];
    double const x = LEFT + scale * (double)lane->begin[index];
    double const width = scale * (double)(lane->end[index] - lane->begin[index]);
    double const edge = width > 3 ? 0.5 : 0;
    char style[16], title[48];
    (void)snprintf(style, sizeof style, "p%u%s", pass->kind,
                   is_pale(schedule, seconds, pass) ? " pale" : "");
    (void)snprintf(title, sizeof title, "%u%s%u", pass->stage,
                   schedule_kind_letter((enum schedule_kind)pass->kind), pass->microbatch);
    svg_titled_box(text, x, y, width - edge, height, style, title);
}

/* The number of a pass, in it, its digits one above the other if they have to be; else, of every
 * fourth microbatch, from where the pass begins on over passes that have none either. `free_x`:
 * where the lane's last number ends. */
static void draw_number(const struct lanes_picture *picture, double scale, uint32_t rank,
                        uint32_t index, double y, double height, double *free_x,
                        struct strbuf *text)
{
    const struct schedule_rank *list = &picture->schedule->rank[rank];
    const struct schedule_lane *lane = &picture->played->lane[rank];
    struct number const number = number_of(&list->pass[index]);
    double const x = LEFT + scale * (double)lane->begin[index];
    double const width = scale * (double)(lane->end[index] - lane->begin[index]);
    double const middle = x + width / 2, base = y + height / 2 + 3;
    if (width >= number.small_width) {
        svg_words(text, middle, base, width >= number.width ? "n" : "d", number.words);
        *free_x = x + width;
        return;
    }
    if (width >= stacked_width && height >= number.stacked_height) {
        draw_stacked(&number, middle, base, text);
        *free_x = x + width;
        return;
    }
    if (list->pass[index].microbatch % NUMBERED_EVERY != 0 || x < *free_x) return;
    double const end = x + number.small_width + DIGIT / 2.0;
    for (uint32_t i = index + 1; i < list->count; i++) {
        if (LEFT + scale * (double)lane->begin[i] >= end) break;
        double const next = scale * (double)(lane->end[i] - lane->begin[i]);
        if (next >= number_of(&list->pass[i]).small_width) return;
    }
    svg_words(text, x + clear / 2, base, "e", number.words);
    *free_x = end;
}

static void draw_lane(const struct lanes_picture *picture, const struct second_stages *seconds,
                      double scale, uint32_t rank, double top, struct strbuf *text)
{
    const struct schedule_rank *list = &picture->schedule->rank[rank];
    svg_say(text, LEFT - 6, top + LANE / 2.0 + 3.5, "tiny end", "%u", rank);
    /* Numbers lie over the passes behind theirs. */
    double free_x[2] = {0, 0};
    for (uint32_t numbers = 0; numbers < 2; numbers++)
        for (uint32_t i = 0; i < list->count; i++) {
            bool const first = list->pass[i].paired, second = i > 0 && list->pass[i - 1].paired;
            double const y = second ? top + LANE / 2.0 : top;
            double const height = first || second ? LANE / 2.0 : LANE;
            if (numbers == 0)
                draw_pass(picture, seconds, scale, rank, i, y, height, text);
            else
                draw_number(picture, scale, rank, i, y, height, &free_x[second], text);
        }
}

double lanes_svg_draw(const struct lanes_page *page, const struct lanes_picture *picture,
                      double top, struct strbuf *text)
{
    const struct schedule *schedule = picture->schedule;
    double const scale = scale_of(page) / picture->ticks_per_unit;
    double const end = (double)picture->played->makespan;
    double const height = schedule->rank_count * (LANE + GAP);
    struct second_stages seconds;
    second_stages_find(schedule, &seconds);
    svg_words(text, LEFT, top + 16, "head", picture->name);
    svg_words(text, LEFT + 160, top + 16, "small", picture->caption);
    top += TITLE;
    svg_box(text, LEFT, top, scale * end, height - GAP, "faint");
    draw_axis(page, end / picture->ticks_per_unit, top, height, text);
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        draw_lane(picture, &seconds, scale, r, top + r * (LANE + GAP), text);
    top += height + AXIS;
    draw_curve(picture, scale, top, text);
    svg_words(text, LEFT, top + CURVE + 14, "tiny", picture->curve_caption);
    svg_words(text, LEFT + scale * end, top + CURVE + 14, "tiny end", picture->end_caption);
    return top + CURVE + BELOW;
}

/* What colours and places mean, in sentences; NULL ends them. */
static void legend_find(const struct lanes_page *page, const char *ret_sentence[LEGEND_MAX])
{
    uint32_t count = 0;
    if (page->has_best)
        ret_sentence[count++] =
            "*: best, the shortest period of the rows that fit; of equal ones the least memory";
    if (page->has_chunks && page->has_copies)
        ret_sentence[count++] =
            "paler: every second stage of a rank; in a schedule with two copies "
            "of the model, the second copy, from the other end";
    else if (page->has_chunks)
        ret_sentence[count++] = "paler: every second stage of a rank";
    else if (page->has_copies)
        ret_sentence[count++] = "paler: the second copy of the model, from the other end";
    double const narrowest = page->narrowest_units * scale_of(page);
    if (narrowest < stacked_width)
        ret_sentence[count++] = "numbers: microbatches; of narrow passes every fourth, from where "
                                "it begins";
    else if (narrowest < 2 * small_digit + clear)
        ret_sentence[count++] = "numbers: microbatches; in narrow passes from top to bottom";
    if (page->has_pairs) ret_sentence[count++] = "one above the other: two passes at the same time";
    ret_sentence[count] = NULL;
}

double lanes_svg_begin(const struct lanes_page *page, struct strbuf *text)
{
    const char *sentence[LEGEND_MAX];
    legend_find(page, sentence);
    double top = HEAD;
    for (uint32_t i = 0; sentence[i] != NULL; i++) top += LEGEND_ROW;
    svg_begin(text, &(struct svg_page){
                        .width = LEFT + ceil(scale_of(page) * page->longest_units) + RIGHT,
                        .height = top + page->lanes_height,
                        .title = "Pipeline schedules",
                        .classes = classes,
                        .dark = ".held { fill: #3a414c; stroke: #9aa3b0 }\n",
                    });
    svg_words(text, 20, 26, "title", page->title);
    svg_words(text, 440, 26, "small", page->subtitle);
    double at = LEFT;
    for (uint32_t i = 0; i < SCHEDULE_KIND_COUNT; i++) {
        char style[16];
        if (!page->has_kind[i]) continue;
        (void)snprintf(style, sizeof style, "p%u", i);
        svg_box(text, at, 38, 14, 14, style);
        svg_words(text, at + 20, 49, "small", schedule_kind_name((enum schedule_kind)i));
        at += 150;
    }
    for (uint32_t i = 0; sentence[i] != NULL; i++)
        svg_words(text, LEFT, HEAD + 4 + LEGEND_ROW * i, "small", sentence[i]);
    return top;
}

void lanes_svg_end(struct strbuf *text)
{
    svg_end(text);
}
