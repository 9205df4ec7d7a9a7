/* The rows of `podsim pipeline FILE` as a picture. */
#include "sim/base/arena.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "tools/podsim/lanes_svg.h"
#include "tools/podsim/staged.h"

static enum status curve_fill(const struct staged *staged, const struct staged_row *row,
                              struct lanes_picture *picture, struct error *reterr)
{
    double const most = (double)row->role[row->fullest].memory_peak_bytes;
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

static enum status draw_row(const struct staged *staged, const struct staged_row *row, double scale,
                            double *top, struct text *text, struct error *reterr)
{
    struct lanes_picture picture = {
        .name = row->of->name,
        .caption =
            arena_format(staged->of->arena, "%u microbatch%s: a step of %s, MFU %s; bubble %s",
                         row->of->microbatch_count, row->of->microbatch_count == 1 ? "" : "es",
                         table_duration(row->step_ps).text, table_percent(row->mfu, 1).text,
                         table_duration(row->bubble.makespan_ps).text),
        .schedule = &row->of->schedule,
        .played = &row->played,
        .scale = scale,
        .curve_caption =
            arena_format(staged->of->arena, "a chip of rank %u holds up to %s", row->fullest,
                         table_bytes((double)row->role[row->fullest].memory_peak_bytes).text),
    };
    picture.end_caption =
        arena_format(staged->of->arena, "%s", table_duration(row->played.makespan).text);
    if (picture.caption == NULL || picture.curve_caption == NULL || picture.end_caption == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "--svg", "there is no memory for a caption");
    STATUS_TRY(curve_fill(staged, row, &picture, reterr));
    *top = lanes_svg_draw(&picture, *top, text);
    return STATUS_OK;
}

enum status staged_write_svg(const struct comparison *comparison, struct text *text,
                             struct error *reterr)
{
    const struct staged *staged = comparison->owner;
    double height = lanes_svg_head_height(), top = height;
    int64_t longest_ps = 1;
    struct lanes_legend legend = {.has_chunks = false};
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct staged_row *row = &staged->row[i];
        if (row->of->refused.status != STATUS_OK) continue;
        longest_ps = row->step_ps > longest_ps ? row->step_ps : longest_ps;
        height += lanes_svg_height(row->of->schedule.rank_count);
        lanes_legend_add(&legend, &row->of->schedule);
    }
    lanes_svg_begin(staged->title, "", height, &legend, text);
    for (uint32_t i = 0; i < comparison->done_count; i++)
        if (comparison->row[i].refused.status == STATUS_OK)
            STATUS_TRY(draw_row(staged, &staged->row[i], lanes_svg_width() / (double)longest_ps,
                                &top, text, reterr));
    lanes_svg_end(text);
    return STATUS_OK;
}
