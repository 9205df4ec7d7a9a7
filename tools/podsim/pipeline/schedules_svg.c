/* The rows of `podsim pipeline` as a picture. */
#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "tools/podsim/pipeline/lanes_svg.h"
#include "tools/podsim/pipeline/schedules.h"

/* What the rank holds of its activations, pass by pass, as a share of `most`. */
static enum status curve_fill(const struct schedules *schedules, const struct schedules_row *row,
                              uint32_t rank, double most, struct lanes_picture *picture,
                              struct error *reterr)
{
    const struct schedule_rank *list = &row->of->schedule.rank[rank];
    const struct schedule_lane *lane = &row->played.lane[rank];
    double const unit = (double)PPM_ONE * schedule_rank_chunks(&row->of->schedule, rank) * most;
    int64_t held_ppm = 0;
    void *at = NULL, *share = NULL;
    STATUS_TRY(arena_try(schedules->of->arena, list->count, sizeof(double), &at, reterr));
    STATUS_TRY(arena_try(schedules->of->arena, list->count, sizeof(double), &share, reterr));
    for (uint32_t i = 0; i < list->count; i++) {
        bool const begins = list->pass[i].kind == SCHEDULE_FORWARD;
        held_ppm +=
            schedule_pass_change_ppm((enum schedule_kind)list->pass[i].kind, schedules->kept_ppm);
        ((double *)at)[i] = (double)(begins ? lane->begin[i] : lane->end[i]);
        ((double *)share)[i] = (double)held_ppm / unit;
    }
    picture->curve_at = at;
    picture->curve_share = share;
    picture->curve_count = list->count;
    return STATUS_OK;
}

/* The rank that holds the most. */
static uint32_t fullest_rank(const struct schedules *schedules, const struct schedules_row *row)
{
    uint32_t fullest = 0;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++)
        if (schedules_peak(schedules, row, r) > schedules_peak(schedules, row, fullest))
            fullest = r;
    return fullest;
}

static enum status draw_row(const struct schedules *schedules, const struct lanes_page *page,
                            const struct schedules_row *row, double most, double *top,
                            struct strbuf *text, struct error *reterr)
{
    uint32_t const fullest = fullest_rank(schedules, row);
    double const peak = schedules_peak(schedules, row, fullest);
    struct arena *arena = schedules->of->arena;
    struct lanes_picture picture = {
        .name = comparison_heading(arena, row->of),
        .caption = arena_format(
            arena, "%s: period %.6g; makespan %.6g, of which %.6g bubble; %.4g held",
            counted(row->of->microbatch_count, "microbatch").text,
            schedules_units(row, row->period.time), schedules_units(row, row->played.makespan),
            schedules_units(row, row->played.bubble_makespan), peak),
        .schedule = &row->of->schedule,
        .played = &row->played,
        .ticks_per_unit = row->ticks_per_unit,
        .curve_caption =
            arena_format(arena, "rank %u holds up to %.4g microbatches", fullest, peak),
        .curve_most = arena_format(arena, "%.4g", most),
        .end_caption = arena_format(arena, "%.6g", schedules_units(row, row->played.makespan)),
    };
    if (picture.name == NULL || picture.caption == NULL || picture.curve_caption == NULL ||
        picture.curve_most == NULL || picture.end_caption == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "--svg", "there is no memory for a caption");
    STATUS_TRY(curve_fill(schedules, row, fullest, most, &picture, reterr));
    *top = lanes_svg_draw(page, &picture, *top, text);
    return STATUS_OK;
}

enum status schedules_write_svg(const struct comparison *comparison, struct strbuf *text,
                                struct error *reterr)
{
    const struct schedules *schedules = comparison->owner;
    struct lanes_page page = {.title = "Pipeline schedules", .unit = ""};
    double most = 0;
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct schedules_row *row = &schedules->row[i];
        if (comparison->row[i].refused.status != STATUS_OK) continue;
        double const peak = schedules_peak(schedules, row, fullest_rank(schedules, row));
        most = peak > most ? peak : most;
        page.has_best = page.has_best || row->of->best;
        lanes_page_add(&page, &row->of->schedule, &row->played, row->ticks_per_unit);
    }
    page.subtitle = arena_format(
        schedules->of->arena, "F %.9g, I %.9g, W %.9g, a hop %.9g",
        (double)schedules->forward / SCHEDULES_UNIT, (double)schedules->input / SCHEDULES_UNIT,
        (double)schedules->weight / SCHEDULES_UNIT, (double)schedules->hop / SCHEDULES_UNIT);
    if (page.subtitle == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "--svg", "there is no memory for a title");
    double top = lanes_svg_begin(&page, text);
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        uint32_t const row = comparison->order[i];
        if (comparison->row[row].refused.status == STATUS_OK)
            STATUS_TRY(draw_row(schedules, &page, &schedules->row[row], most, &top, text, reterr));
    }
    lanes_svg_end(text);
    return STATUS_OK;
}
