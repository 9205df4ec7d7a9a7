#include "tools/podsim/lanes_svg.h"

#include "sim/base/text.h"

enum {
    LEFT = 60,
    WIDTH = 1400,
    LANE = 18,
    GAP = 2,
    HEAD = 60,
    TITLE = 26,
    CURVE = 48,
    BELOW = 34,
    DIGIT = 6,
};

static const char *const colours[] = {"#7aa6f0", "#8fce9a", "#6cc5c1", "#f3b562"};

double lanes_svg_width(void)
{
    return WIDTH;
}

double lanes_svg_head_height(void)
{
    return HEAD;
}

double lanes_svg_height(uint32_t rank_count)
{
    return TITLE + rank_count * (LANE + GAP) + 6 + CURVE + BELOW;
}

/* Titles of scenarios are a user's text. */
static void add_escaped(struct text *text, const char *plain)
{
    for (const char *c = plain; *c != '\0'; c++) {
        if (*c == '&')
            text_add(text, "&amp;");
        else if (*c == '<')
            text_add(text, "&lt;");
        else
            text_add(text, "%c", *c);
    }
}

void lanes_legend_add(struct lanes_legend *legend, const struct schedule *schedule)
{
    legend->has_chunks = legend->has_chunks || schedule->chunk_count > 1;
    legend->has_copies = legend->has_copies || schedule->copy_count > 1;
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < schedule->rank[r].count; i++) {
            const struct schedule_pass *pass = &schedule->rank[r].pass[i];
            legend->has_kind[pass->kind] = true;
            legend->has_pairs = legend->has_pairs || pass->paired;
        }
}

static void draw_curve(const struct lanes_picture *picture, double top, struct text *text)
{
    text_add(text, "<path fill=\"#ddd\" stroke=\"#888\" d=\"M%d %.1f", LEFT, top + CURVE);
    for (uint64_t i = 0; i < picture->curve_count; i++)
        text_add(text, "H%.1fV%.1f", LEFT + picture->scale * picture->curve_at[i],
                 top + CURVE - CURVE * picture->curve_share[i]);
    text_add(text, "V%.1fZ\"/>\n", top + CURVE);
}

/* Every second of the stages that a rank holds, by their numbers, wherever they lie. */
struct odd_stages {
    bool is_odd[SCHEDULE_STAGES_MAX];
};

static void odd_stages_find(const struct schedule *schedule, struct odd_stages *ret_odd)
{
    bool next_is_odd[SCHEDULE_RANKS_MAX] = {false};
    for (uint32_t s = 0; s < schedule->stage_count; s++) {
        uint32_t const rank = schedule->rank_of[s];
        ret_odd->is_odd[s] = next_is_odd[rank];
        next_is_odd[rank] = !next_is_odd[rank];
    }
}

/* So that a rank's stages can be told apart, and of two copies of the model the ways they go. */
static bool is_pale(const struct schedule *schedule, const struct odd_stages *odd,
                    const struct schedule_pass *pass)
{
    if (schedule->copy_count > 1) return pass->microbatch >= schedule->microbatch_count / 2;
    return odd->is_odd[pass->stage];
}

static void draw_pass(const struct lanes_picture *picture, const struct odd_stages *odd,
                      uint32_t rank, uint32_t index, double y, double height, struct text *text)
{
    const struct schedule *schedule = picture->schedule;
    const struct schedule_pass *pass = &schedule->rank[rank].pass[index];
    const struct schedule_lane *lane = &picture->played->lane[rank];
    double const x = LEFT + picture->scale * (double)lane->begin[index];
    double const width = picture->scale * (double)(lane->end[index] - lane->begin[index]);
    text_add(text,
             "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s "
             "stroke=\"#fff\" stroke-width=\"0.5\"><title>%u%s%u</title></rect>\n",
             x, y, width, height, colours[pass->kind],
             is_pale(schedule, odd, pass) ? " opacity=\"0.7\"" : "", pass->stage,
             schedule_kind_letter((enum schedule_kind)pass->kind), pass->microbatch);
    uint32_t digits = 1;
    for (uint32_t m = pass->microbatch; m > 9; m /= 10) digits++;
    if (width >= DIGIT * digits + 3)
        text_add(text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%u</text>\n",
                 x + width / 2, y + height / 2 + 3.5, pass->microbatch);
}

double lanes_svg_draw(const struct lanes_picture *picture, double top, struct text *text)
{
    const struct schedule *schedule = picture->schedule;
    struct odd_stages odd;
    odd_stages_find(schedule, &odd);
    text_add(text, "<text x=\"%d\" y=\"%.1f\" font-size=\"14\" font-weight=\"bold\">", LEFT,
             top + 16);
    add_escaped(text, picture->name);
    text_add(text, "</text>\n<text x=\"%d\" y=\"%.1f\" font-size=\"12\">%s</text>\n", LEFT + 160,
             top + 16, picture->caption);
    top += TITLE;
    for (uint32_t r = 0; r < schedule->rank_count; r++, top += LANE + GAP) {
        const struct schedule_rank *list = &schedule->rank[r];
        text_add(text, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%u</text>\n", LEFT - 6,
                 top + LANE / 2.0 + 3.5, r);
        text_add(text,
                 "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"#f4f4f4\"/>\n",
                 LEFT, top, picture->scale * (double)picture->played->makespan, LANE);
        for (uint32_t i = 0; i < list->count; i++) {
            bool const first = list->pass[i].paired, second = i > 0 && list->pass[i - 1].paired;
            draw_pass(picture, &odd, r, i, second ? top + LANE / 2.0 : top,
                      first || second ? LANE / 2.0 : LANE, text);
        }
    }
    top += 6;
    draw_curve(picture, top, text);
    text_add(text, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT, top + CURVE + 14,
             picture->curve_caption);
    text_add(text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
             LEFT + picture->scale * (double)picture->played->makespan, top + CURVE + 14,
             picture->end_caption);
    return top + CURVE + BELOW;
}

void lanes_svg_begin(const char *title, const char *subtitle, double height,
                     const struct lanes_legend *legend, struct text *text)
{
    text_add(text,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
             "height=\"%.0f\" role=\"img\" font-family=\"sans-serif\" font-size=\"10\" "
             "fill=\"#222\">\n<title>Pipeline schedules</title>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
             "<text x=\"20\" y=\"26\" font-size=\"18\" font-weight=\"bold\">",
             LEFT + WIDTH + 20, height, LEFT + WIDTH + 20, height);
    add_escaped(text, title);
    text_add(text, "<tspan dx=\"20\" font-size=\"12\" font-weight=\"normal\">");
    add_escaped(text, subtitle);
    text_add(text, "</tspan></text>\n");
    uint32_t at = LEFT;
    for (uint32_t i = 0; i < SCHEDULE_KIND_COUNT; i++) {
        if (!legend->has_kind[i]) continue;
        text_add(text,
                 "<rect x=\"%u\" y=\"36\" width=\"14\" height=\"14\" fill=\"%s\"/>\n"
                 "<text x=\"%u\" y=\"47\" font-size=\"12\">%s</text>\n",
                 at, colours[i], at + 20, schedule_kind_name((enum schedule_kind)i));
        at += 150;
    }
    const char *const sentences[] = {
        legend->has_chunks ? "paler: every second stage of a rank" : NULL,
        legend->has_copies ? "paler: the second copy of the model, from the other end" : NULL,
        legend->has_pairs ? "one above the other: a pair, side by side" : NULL,
    };
    const char *between = "";
    text_add(text, "<text x=\"%u\" y=\"47\" font-size=\"12\">", at);
    for (uint32_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        if (sentences[i] == NULL) continue;
        text_add(text, "%s%s", between, sentences[i]);
        between = "; ";
    }
    text_add(text, "</text>\n");
}

void lanes_svg_end(struct text *text)
{
    text_add(text, "</svg>\n");
}
