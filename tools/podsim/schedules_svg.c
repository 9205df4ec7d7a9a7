/* The rows of `podsim pipeline` as a picture: a lane a rank, passes in the papers' colours, and
 * beneath it what the fullest rank holds. */
#include <stdio.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/schedules.h"

enum {
    LEFT = 60,
    WIDTH = 1400,
    LANE = 18,
    GAP = 2,
    HEAD = 60,
    TITLE = 26,
    CURVE = 48,
    BELOW = 34,
    PASSES_MAX = 200000,
};

static const char *const colours[] = {"#7aa6f0", "#8fce9a", "#6cc5c1", "#f3b562"};

/* What a rank holds of its activations, step by step; the highest decides the scale. */
static void draw_curve(const struct schedules *schedules, const struct schedules_row *row,
                       uint32_t rank, double top, double scale, double most, struct text *text)
{
    const struct schedule_rank *list = &row->schedule.rank[rank];
    const struct schedule_lane *lane = &row->played.lane[rank];
    uint64_t held = 0;
    double const unit = (double)PPM_ONE * row->schedule.chunk_count;
    text_add(text, "<path fill=\"#ddd\" stroke=\"#888\" d=\"M%d %.1f", LEFT, top + CURVE);
    for (uint32_t i = 0; i < list->count; i++) {
        bool const begins = list->pass[i].kind == SCHEDULE_FORWARD;
        double const x =
            LEFT + scale * schedules_units(row, begins ? lane->begin[i] : lane->end[i]);
        switch ((enum schedule_kind)list->pass[i].kind) {
        case SCHEDULE_FORWARD:
            held += PPM_ONE;
            break;
        case SCHEDULE_BACKWARD:
            held -= PPM_ONE;
            break;
        case SCHEDULE_INPUT:
            held -= PPM_ONE - schedules->kept_ppm;
            break;
        case SCHEDULE_WEIGHT:
            held -= schedules->kept_ppm;
            break;
        case SCHEDULE_KIND_COUNT:
            break;
        }
        text_add(text, "H%.1fV%.1f", x, top + CURVE - CURVE * ((double)held / unit) / most);
    }
    text_add(text, "Z\"/>\n");
}

static void draw_pass(const struct schedules_row *row, uint32_t rank, uint32_t index, double y,
                      double height, double scale, struct text *text)
{
    const struct schedule_pass *pass = &row->schedule.rank[rank].pass[index];
    const struct schedule_lane *lane = &row->played.lane[rank];
    double const x = LEFT + scale * schedules_units(row, lane->begin[index]);
    double const width = scale * schedules_units(row, lane->end[index] - lane->begin[index]);
    /* Odd chunks are darker, so that the ways down and up can be told apart. */
    bool const dark = pass->stage / row->schedule.rank_count % 2 == 1;
    text_add(text,
             "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s "
             "stroke=\"#fff\" stroke-width=\"0.5\"><title>%u%s%u</title></rect>\n",
             x, y, width, height, colours[pass->kind], dark ? " opacity=\"0.7\"" : "", pass->stage,
             schedule_kind_letter((enum schedule_kind)pass->kind), pass->microbatch);
    if (width >= 9)
        text_add(text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%u</text>\n",
                 x + width / 2, y + height / 2 + 3.5, pass->microbatch);
}

/* Returns where the next one begins. */
static double draw_row(const struct schedules *schedules, const struct schedules_row *row,
                       double top, double scale, struct text *text)
{
    double const peak = schedules_peak_most(schedules, row);
    uint32_t fullest = 0;
    text_add(text,
             "<text x=\"%d\" y=\"%.1f\" font-size=\"14\" font-weight=\"bold\">%s</text>\n"
             "<text x=\"%d\" y=\"%.1f\" font-size=\"12\">%u microbatches: %.6g, of which %.6g "
             "bubble; %.4g held</text>\n",
             LEFT, top + 16, row->form == NULL ? "from a file" : row->name, LEFT + 160, top + 16,
             row->request.microbatch_count, schedules_units(row, row->played.makespan),
             schedules_units(row, row->played.bubble_makespan), peak);
    top += TITLE;
    for (uint32_t r = 0; r < row->schedule.rank_count; r++, top += LANE + GAP) {
        const struct schedule_rank *list = &row->schedule.rank[r];
        text_add(text, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%u</text>\n", LEFT - 6,
                 top + LANE / 2.0 + 3.5, r);
        text_add(text,
                 "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"#f4f4f4\"/>\n",
                 LEFT, top, scale * schedules_units(row, row->played.makespan), LANE);
        for (uint32_t i = 0; i < list->count; i++) {
            bool const first = list->pass[i].paired, second = i > 0 && list->pass[i - 1].paired;
            draw_pass(row, r, i, second ? top + LANE / 2.0 : top,
                      first || second ? LANE / 2.0 : LANE, scale, text);
        }
        if (schedules_peak(schedules, row, r) > schedules_peak(schedules, row, fullest))
            fullest = r;
    }
    top += 6;
    draw_curve(schedules, row, fullest, top, scale, peak, text);
    text_add(text, "<text x=\"%d\" y=\"%.1f\">rank %u holds up to %.4g microbatches</text>\n", LEFT,
             top + CURVE + 14, fullest, peak);
    return top + CURVE + BELOW;
}

static void draw_legend(const struct schedules *schedules, struct text *text)
{
    text_add(text,
             "<text x=\"20\" y=\"26\" font-size=\"18\" font-weight=\"bold\">Pipeline schedules"
             "</text>\n<text x=\"220\" y=\"26\" font-size=\"12\">F %.9g, I %.9g, W %.9g, a hop "
             "%.9g</text>\n",
             (double)schedules->forward / SCHEDULES_UNIT, (double)schedules->input / SCHEDULES_UNIT,
             (double)schedules->weight / SCHEDULES_UNIT, (double)schedules->hop / SCHEDULES_UNIT);
    for (uint32_t i = 0; i < SCHEDULE_KIND_COUNT; i++)
        text_add(text,
                 "<rect x=\"%u\" y=\"36\" width=\"14\" height=\"14\" fill=\"%s\"/>\n"
                 "<text x=\"%u\" y=\"47\" font-size=\"12\">%s</text>\n",
                 LEFT + 150 * i, colours[i], LEFT + 20 + 150 * i,
                 schedule_kind_name((enum schedule_kind)i));
}

enum status schedules_write_svg(const struct schedules *schedules, struct text *text,
                                struct error *reterr)
{
    double longest = 0, height = HEAD;
    uint64_t passes = 0;
    for (uint32_t i = 0; i < schedules->done_count; i++) {
        const struct schedules_row *row = &schedules->row[i];
        if (row->refused.status != STATUS_OK) continue;
        double const makespan = schedules_units(row, row->played.makespan);
        longest = makespan > longest ? makespan : longest;
        for (uint32_t r = 0; r < row->schedule.rank_count; r++)
            passes += row->schedule.rank[r].count;
        height += TITLE + row->schedule.rank_count * (LANE + GAP) + 6 + CURVE + BELOW;
    }
    if (passes > PASSES_MAX)
        return error_set(reterr, STATUS_LIMIT, "--svg",
                         "%llu passes are too many for a picture (%d); name fewer schedules",
                         (unsigned long long)passes, PASSES_MAX);
    text_add(text,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
             "height=\"%.0f\" role=\"img\" font-family=\"sans-serif\" font-size=\"10\" "
             "fill=\"#222\">\n<title>Pipeline schedules</title>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
             LEFT + WIDTH + 20, height, LEFT + WIDTH + 20, height);
    draw_legend(schedules, text);
    double top = HEAD;
    for (uint32_t i = 0; i < schedules->done_count; i++)
        if (schedules->row[i].refused.status == STATUS_OK)
            top = draw_row(schedules, &schedules->row[i], top, WIDTH / longest, text);
    text_add(text, "</svg>\n");
    return STATUS_OK;
}
