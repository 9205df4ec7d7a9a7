/* The rows of `podsim pipeline FILE` as a picture. */
#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "tools/podsim/pipeline/lanes_svg.h"
#include "tools/podsim/pipeline/pipeline_run.h"

static enum status curve_fill(const struct pipeline_run *staged, const struct pipeline_run_row *row,
                              double most, struct lanes_picture *picture, struct error *reterr)
{
    void *at = NULL, *share = NULL;
    STATUS_TRY(arena_try(staged->of->arena, row->curve.count, sizeof(double), &at, reterr));
    STATUS_TRY(arena_try(staged->of->arena, row->curve.count, sizeof(double), &share, reterr));
    for (uint64_t i = 0; i < row->curve.count; i++) {
        ((double *)at)[i] = (double)row->curve.at_ps[i];
        ((double *)share)[i] = (double)row->curve.bytes[i] / most;
    }
    picture->curve_at = at;
    picture->curve_share = share;
    picture->curve_count = row->curve.count;
    return STATUS_OK;
}

static double peak_bytes(const struct pipeline_run_row *row)
{
    return (double)row->role[row->fullest].memory.peak_bytes;
}

static enum status draw_row(const struct pipeline_run *staged, const struct lanes_page *page,
                            const struct pipeline_run_row *row, double most, double ps_per_unit,
                            double *top, struct strbuf *text, struct error *reterr)
{
    struct arena *arena = staged->of->arena;
    struct lanes_picture picture = {
        .name = comparison_heading(arena, row->of),
        .caption = arena_format(
            arena,
            "%s: period %s, MFU %s; a step of %s, its update of %s not drawn; bubble "
            "%s",
            counted(row->of->microbatch_count, "microbatch").text,
            table_duration(pipeline_run_period_ps(row)).text, table_percent(row->mfu, 1).text,
            table_duration(row->step_ps).text, table_duration(row->step_ps - row->span_ps).text,
            table_duration(row->bubble.makespan_ps).text),
        .schedule = &row->of->schedule,
        .played = &row->played,
        .ticks_per_unit = ps_per_unit,
        .curve_caption = arena_format(arena, "a chip of rank %u holds up to %s", row->fullest,
                                      table_bytes(peak_bytes(row)).text),
        .curve_most = arena_format(arena, "%s", table_bytes(most).text),
        .end_caption = arena_format(arena, "%s", table_duration(row->played.makespan).text),
    };
    if (picture.name == NULL || picture.caption == NULL || picture.curve_caption == NULL ||
        picture.curve_most == NULL || picture.end_caption == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "--svg", "there is no memory for a caption");
    STATUS_TRY(curve_fill(staged, row, most, &picture, reterr));
    *top = lanes_svg_draw(page, &picture, *top, text);
    return STATUS_OK;
}

/* The unit in which the longest row has at most four digits before the point. */
static const char *unit_choose(const struct comparison *comparison, double *ret_ps_per_unit)
{
    const struct pipeline_run *staged = comparison->owner;
    int64_t longest_ps = 0;
    for (uint32_t i = 0; i < comparison->done_count; i++)
        if (comparison->row[i].refused.status == STATUS_OK &&
            staged->row[i].played.makespan > longest_ps)
            longest_ps = staged->row[i].played.makespan;
    bool const seconds = longest_ps >= 10 * TIME_PS_PER_S, us = longest_ps < TIME_PS_PER_S / 100;
    *ret_ps_per_unit = (double)TIME_PS_PER_S / (seconds ? 1 : us ? 1e6 : 1e3);
    return seconds ? "s" : us ? "us" : "ms";
}

enum status pipeline_run_write_svg(const struct comparison *comparison, struct strbuf *text,
                                   struct error *reterr)
{
    const struct pipeline_run *staged = comparison->owner;
    double ps_per_unit = 1, most = 0;
    struct lanes_page page = {.title = staged->title, .subtitle = ""};
    page.unit = unit_choose(comparison, &ps_per_unit);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct pipeline_run_row *row = &staged->row[i];
        if (comparison->row[i].refused.status != STATUS_OK) continue;
        most = peak_bytes(row) > most ? peak_bytes(row) : most;
        page.has_best = page.has_best || row->of->best;
        lanes_page_add(&page, &row->of->schedule, &row->played, ps_per_unit);
    }
    double top = lanes_svg_begin(&page, text);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        uint32_t const row = comparison->order[i];
        if (comparison->row[row].refused.status == STATUS_OK)
            STATUS_TRY(
                draw_row(staged, &page, &staged->row[row], most, ps_per_unit, &top, text, reterr));
    }
    lanes_svg_end(text);
    return STATUS_OK;
}
