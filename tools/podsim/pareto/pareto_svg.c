/* The picture of `podsim pareto`: a column a length of sequences; above, throughput against
 * latency; below, for each slice and mesh, what the latency goes to. */
#include "tools/podsim/pareto/pareto_svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/report/frontier.h"

enum {
    MARGIN = 20,
    AXIS = 72, /* Words left of a plot. */
    HEAD = 92,
    SIGNS_AT = 72,
    COLUMN_HEAD = 22,
    CURVES_HEIGHT = 340,
    LEGEND = 150, /* From the curves to the plots of their latencies. */
    LEGEND_AT = 62,
    ROW_HEIGHT = 180,
    ROW_GAP = 74,
    WIDE = 620,
    NARROW = 420,
};

struct page {
    const struct pareto *pareto;
    struct strbuf *text;
    uint32_t column_count, per_column;
    double plot_width;
    double row_top;
    struct pareto_rows rows;
};

/* Whether only one mesh has points that were simulated, and needs no letter. */
static bool one_mesh(const struct pareto *pareto)
{
    const struct pareto_value *mesh = NULL;
    for (uint32_t i = 0; i < pareto->curve_count * pareto->batch_count; i++) {
        const struct pareto_curve *curve = &pareto->curve[i / pareto->batch_count];
        if (curve->point[i % pareto->batch_count].state != PARETO_PLAYED) continue;
        if (mesh != NULL && curve->mesh != mesh) return false;
        mesh = curve->mesh;
    }
    return true;
}

const char *pareto_name(char buffer[PARETO_NAME_BYTES], const struct pareto *pareto,
                        const struct pareto_curve *curve)
{
    uint32_t const mesh = (uint32_t)(curve->mesh - pareto->meshes.value);
    struct counted const gpus = counted(curve->chip_count, "GPU");
    (void)snprintf(buffer, PARETO_NAME_BYTES, "%.40s",
                   pareto->chip.kind == CHIP_GPU ? gpus.text : pareto_shape(curve));
    size_t const used = strlen(buffer);
    if (!one_mesh(pareto))
        (void)snprintf(buffer + used, PARETO_NAME_BYTES - used, " %c", (char)('A' + mesh));
    return buffer;
}

static double column_left(const struct page *page, uint32_t column)
{
    return MARGIN + AXIS + column * (page->plot_width + AXIS + PARETO_NAMES_WIDTH);
}

static double page_width(const struct page *page)
{
    return column_left(page, page->column_count) - AXIS;
}

static void range_take(struct pareto_axis *axis, double value)
{
    axis->least = fmin(axis->least, value);
    axis->most = fmax(axis->most, value);
}

/* Of all points that are drawn, with some room at both ends. */
static void ranges_find(const struct pareto *pareto, struct pareto_axis *latency,
                        struct pareto_axis *rate)
{
    *latency = *rate = (struct pareto_axis){.least = INFINITY};
    for (uint32_t c = 0; c < pareto->curve_count; c++)
        for (uint32_t b = 0; b < pareto->batch_count; b++) {
            const struct pareto_point *point = &pareto->curve[c].point[b];
            if (point->state == PARETO_PLAYED) {
                range_take(latency, point->latency_s);
                range_take(rate, point->tokens_per_s_per_chip);
            }
            if (point->state == PARETO_REFUSED || point->batch > pareto->curve[c].book_wall)
                continue;
            range_take(latency, point->book.step_s);
            range_take(rate, point->book_tokens_per_s_per_chip);
        }
    latency->least /= 1.1;
    latency->most *= 1.1;
    rate->least /= 1.15;
    rate->most *= 1.15;
}

static double latency_most_s(const struct pareto *pareto, uint32_t row, uint32_t per_column)
{
    double most_s = 0;
    for (uint32_t c = row; c < pareto->curve_count; c += per_column)
        for (uint32_t b = 0; b < pareto->batch_count; b++) {
            const struct pareto_point *point = &pareto->curve[c].point[b];
            if (point->state == PARETO_PLAYED) most_s = fmax(most_s, point->latency_s);
        }
    return most_s * 1.05;
}

static void draw_head(const struct page *page, double height)
{
    const struct pareto *pareto = page->pareto;
    const struct workload_plan *plan = &pareto->base.scenario.workload;
    struct strbuf title = {0};
    strbuf_add(&title, "%s, %s on %s, profile %s", plan->model.name, inference_phase(plan),
               pareto->chip.name, pareto->chip.profile);
    svg_begin(page->text,
              &(struct svg_page){
                  .width = page_width(page),
                  .height = height,
                  .title = title.bytes,
                  .classes =
                      ".solid { fill: none; stroke-width: 2.5px }\n"
                      ".formula { fill: none; stroke-width: 1.2px; stroke-dasharray: 5 4; "
                      "opacity: 0.8 }\n"
                      ".frontier { fill: none; stroke: #ffdf80; stroke-width: 11px; "
                      "stroke-linecap: round; stroke-linejoin: round }\n"
                      ".halo { stroke: #fff; stroke-width: 3px; stroke-linejoin: round; "
                      "paint-order: stroke }\n"
                      ".knee { fill: none; stroke: #222; stroke-width: 1.5px }\n"
                      ".bound { fill: none; stroke: #222; stroke-width: 2px; "
                      "stroke-dasharray: 6 4 }\n"
                      ".math-bound { fill: #fbe3dc } .unfit { fill: #888; opacity: 0.25 }\n"
                      "path.part0, .part0 { fill: #56b4e9 } path.part1, .part1 { fill: #e69f00 }\n"
                      "path.part2, .part2 { fill: #009e73 } path.part3, .part3 { fill: #b8548f }\n"
                      "path.part4, .part4 { fill: #e0a9c9 } path.part5, .part5 { fill: #f0e442 }\n"
                      "path.part6, .part6 { fill: #bbb }\n",
                  .dark = ".frontier { stroke: #5e5020 } .halo { stroke: #14171c } .knee { stroke: "
                          "#e6e6e6 }\n"
                          ".bound { stroke: #fff } .math-bound { fill: #3a2522 }\n"
                          ".l5 { stroke: #4aa3df } .f5 { fill: #4aa3df }\n",
                  .series_count = SVG_SERIES_MAX,
              });
    svg_words(page->text, MARGIN, 30, "title", title.bytes);
    page->text->failed = page->text->failed || title.failed;
    strbuf_free(&title);
    svg_say(page->text, MARGIN, 50, "small",
            "tokens/s a chip against latency, batches from %u to %u; both axes logarithmic",
            pareto->batch[0], pareto->batch[pareto->batch_count - 1]);
}

/* What the signs of the curves are. */
static void draw_signs(const struct page *page, double y)
{
    struct strbuf *text = page->text;
    double const x = MARGIN;
    svg_line(text, x, y - 4, x + 26, y - 4, "axis solid");
    svg_circle(text, x + 13, y - 4, 4, "ink");
    svg_words(text, x + 34, y, "small", "simulated");
    svg_line(text, x + 110, y - 4, x + 136, y - 4, "axis formula");
    svg_words(text, x + 144, y, "small", "the book's formula");
    svg_line(text, x + 284, y - 4, x + 306, y - 4, "frontier");
    svg_words(text, x + 320, y, "small", "frontier");
    svg_circle(text, x + 398, y - 4, 8, "knee");
    svg_circle(text, x + 398, y - 4, 4, "ink");
    svg_words(text, x + 414, y, "small", "knee, and its batch");
}

static void draw_column(const struct page *page, uint32_t column)
{
    const struct pareto *pareto = page->pareto;
    uint32_t const first = column * page->per_column;
    struct pareto_plot const plot = {page->text, column_left(page, column), HEAD + COLUMN_HEAD,
                                     page->plot_width, CURVES_HEIGHT};
    struct pareto_axis latency, rate;
    ranges_find(pareto, &latency, &rate);
    latency.from = plot.left;
    latency.to = plot.left + plot.width;
    rate.from = plot.top + plot.height;
    rate.to = plot.top;
    const struct pareto_curve *named = &pareto->curve[first + page->rows.row[0]];
    struct strbuf length = {0};
    pareto_add_length(pareto, named, &length);
    svg_words(page->text, plot.left, plot.top - 12, "head", length.bytes);
    page->text->failed = page->text->failed || length.failed;
    strbuf_free(&length);
    pareto_draw_curves(pareto, first, &page->rows, &plot, &latency, &rate);
    svg_words(page->text, plot.left + plot.width, plot.top + plot.height + 34, "small end",
              pareto_part(pareto) == INFERENCE_DECODES ? "latency of a token" : "latency");
}

static void draw_legend(const struct page *page, double y)
{
    double x = MARGIN;
    svg_words(page->text, x, y, "small", "parts of each batch's latency:");
    y += 22;
    for (uint32_t share = 0; share < INFERENCE_SHARE_COUNT; share++) {
        char style[SVG_CLASS_BYTES];
        (void)snprintf(style, sizeof style, "part%u", share);
        svg_box(page->text, x, y - 10, 14, 12, style);
        svg_words(page->text, x + 19, y, "small",
                  inference_share_word((enum inference_share)share));
        x += 86;
    }
    svg_line(page->text, x, y - 4, x + 24, y - 4, "bound");
    svg_words(page->text, x + 30, y, "small", "formula");
}

static void draw_row(const struct page *page, uint32_t place)
{
    const struct pareto *pareto = page->pareto;
    uint32_t const row = page->rows.row[place];
    double const most_s = latency_most_s(pareto, row, page->per_column);
    for (uint32_t column = 0; column < page->column_count; column++) {
        const struct pareto_curve *curve = &pareto->curve[column * page->per_column + row];
        struct pareto_plot const plot = {page->text, column_left(page, column),
                                         page->row_top + place * (ROW_HEIGHT + ROW_GAP),
                                         page->plot_width, ROW_HEIGHT};
        char name[PARETO_NAME_BYTES], knee[PARETO_NAME_BYTES] = "";
        if (curve->chip_count == 0) continue;
        svg_say(page->text, plot.left, plot.top - 24, "head", "%s: %s",
                pareto_name(name, pareto, curve), curve->mesh_text);
        if (curve->knee != frontier_none)
            (void)snprintf(knee, sizeof knee, "knee at batch %u; ",
                           curve->point[curve->knee].batch);
        svg_say(page->text, plot.left, plot.top - 8, "small", "%sB_crit %s tokens; %s", knee,
                table_count((uint64_t)curve->critical_tokens).text, pareto_wall(curve).text);
        pareto_draw_shares(pareto, curve, &plot, most_s);
    }
}

static void rows_find(struct page *page)
{
    for (uint32_t row = 0; row < page->per_column; row++)
        if (latency_most_s(page->pareto, row, page->per_column) > 0)
            page->rows.row[page->rows.count++] = row;
}

void pareto_write_svg(const struct pareto *pareto, struct strbuf *text)
{
    struct page page = {
        .pareto = pareto,
        .text = text,
        .column_count = pareto->lengths.count,
        .per_column = pareto->shapes.count * pareto->meshes.count,
        .plot_width = pareto->lengths.count == 1 ? WIDE : NARROW,
        .row_top = HEAD + COLUMN_HEAD + CURVES_HEIGHT + LEGEND,
    };
    rows_find(&page);
    double const height = page.row_top + page.rows.count * (ROW_HEIGHT + ROW_GAP);
    draw_head(&page, height);
    draw_signs(&page, SIGNS_AT);
    for (uint32_t column = 0; column < page.column_count; column++) draw_column(&page, column);
    draw_legend(&page, page.row_top - LEGEND + LEGEND_AT);
    for (uint32_t place = 0; place < page.rows.count; place++) draw_row(&page, place);
    svg_words(text, MARGIN, height - 14, "small",
              "x: sequences. Tinted: products are bound by math, says the formula. Grey: more than "
              "memory holds.");
    svg_end(text);
}
