/* Plays the rows of `podsim pipeline`. */
#include <math.h>
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pipeline/formula.h"
#include "tools/podsim/pipeline/schedules.h"
#include "tools/podsim/pipeline/schedules_trace.h"

double schedules_units(const struct schedules_row *row, int64_t ticks)
{
    return (double)ticks / row->ticks_per_unit;
}

double schedules_peak(const struct schedules *schedules, const struct schedules_row *row,
                      uint32_t rank)
{
    uint64_t const ppm = schedule_peak_ppm(&row->of->schedule, rank, schedules->kept_ppm);
    return (double)ppm / PPM_ONE / schedule_rank_chunks(&row->of->schedule, rank);
}

double schedules_peak_most(const struct schedules *schedules, const struct schedules_row *row)
{
    double most = 0;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++) {
        double const peak = schedules_peak(schedules, row, r);
        most = peak > most ? peak : most;
    }
    return most;
}

double schedules_measured(const struct schedules_row *row)
{
    return schedules_units(row, formula_measured(&row->of->formula, &row->played));
}

/* Of passes that are `ticks` long for each part of a unit, a hop `parts`. */
static struct schedule_times times_of(const struct schedules *schedules, int64_t ticks,
                                      int64_t parts)
{
    return (struct schedule_times){
        .forward = schedules->forward * ticks,
        .input = schedules->input * ticks,
        .weight = schedules->weight * ticks,
        .pair = schedules->pair * ticks,
        .hop = schedules->hop * parts,
    };
}

/* Ranks of a file may hold unlike numbers of stages: a tick is a part of a unit divided by what all
 * of these divide, and a rank's passes take its whole share divided by its own. */
static enum status times_given(const struct schedules *schedules, const struct comparison_row *of,
                               struct schedule_times *ret_times, uint64_t *ret_parts,
                               struct error *reterr)
{
    const struct schedule *given = of->given;
    const int64_t each[] = {schedules->forward, schedules->input, schedules->weight,
                            schedules->pair, schedules->hop};
    uint64_t parts = 1, fewest = given->chunk_count;
    int64_t longest = 1;
    void *memory = NULL;
    for (uint32_t i = 0; i < sizeof each / sizeof *each; i++)
        longest = each[i] > longest ? each[i] : longest;
    for (uint32_t r = 0; r < given->rank_count; r++) {
        uint32_t const chunks = schedule_rank_chunks(given, r);
        uint64_t const new_factor = chunks / units_common_divisor(parts, chunks);
        fewest = chunks < fewest ? chunks : fewest;
        if (parts > (uint64_t)(INT64_MAX / longest) / new_factor)
            return error_set(reterr, STATUS_LIMIT, given->name,
                             "its ranks hold too many unlike numbers of stages to divide such long "
                             "times exactly by all of them");
        parts *= new_factor;
    }
    *ret_parts = parts;
    *ret_times = times_of(schedules, (int64_t)(parts / fewest), (int64_t)parts);
    if (fewest == given->chunk_count) return STATUS_OK;
    STATUS_TRY(arena_try(of->arena, given->rank_count, sizeof *ret_times, &memory, reterr));
    struct schedule_times *of_rank = memory;
    for (uint32_t r = 0; r < given->rank_count; r++)
        of_rank[r] =
            times_of(schedules, (int64_t)(parts / schedule_rank_chunks(given, r)), (int64_t)parts);
    ret_times->of_rank = of_rank;
    return STATUS_OK;
}

enum status schedules_play(struct comparison *comparison, uint32_t index, uint32_t thread,
                           struct error *reterr)
{
    struct schedules *schedules = comparison->owner;
    struct schedules_row *row = &schedules->row[index];
    struct comparison_row *of = &comparison->row[index];
    struct cancel const cancel = {.stops = worker_stops, .owner = comparison->worker};
    uint64_t parts = of->chunk_count;
    struct schedule_request request = {.rank_count = of->rank_count,
                                       .microbatch_count = of->microbatch_count,
                                       .chunk_count = of->chunk_count,
                                       .times = times_of(schedules, 1, of->chunk_count),
                                       .held_max = schedules->held_max,
                                       .kept_ppm = schedules->kept_ppm,
                                       .cancel = &cancel};
    if (of->given != NULL) STATUS_TRY(times_given(schedules, of, &request.times, &parts, reterr));
    struct schedule_times without = request.times;
    without.hop = 0;
    row->of = of;
    row->ticks_per_unit = (double)SCHEDULES_UNIT * (double)parts;
    if (of->form != NULL) {
        STATUS_TRY(
            schedule_build(of->arena, of->form, &request, "--schedules", &of->schedule, reterr));
        of->formula = of->form->formula(&request);
    } else {
        of->schedule = *of->given;
    }
    STATUS_TRY(schedule_play(of->arena, &of->schedule, &without, &cancel, of->name,
                             &row->without_hops, reterr));
    STATUS_TRY(schedule_play(of->arena, &of->schedule, &request.times, &cancel, of->name,
                             &row->played, reterr));
    STATUS_TRY(
        schedule_period(&of->schedule, &request.times, &cancel, of->name, &row->period, reterr));
    uint64_t passes = 0;
    for (uint32_t r = 0; r < of->rank_count; r++) passes += of->schedule.rank[r].count;
    (void)pool_progress(&comparison->pool, thread, 1, passes);
    if (!comparison->traces) return STATUS_OK;
    return schedules_write_trace(comparison->arena, comparison->options, row, &comparison->timeline,
                                 reterr);
}

/* Ticks differ with the chunks; a common measure of all rows is whole parts of a unit. */
static double parts_of(const struct schedules_row *row, int64_t ticks)
{
    return round(schedules_units(row, ticks) * (double)SCHEDULES_UNIT);
}

void schedules_rank(struct comparison *comparison, uint32_t index)
{
    const struct schedules *schedules = comparison->owner;
    const struct schedules_row *row = &schedules->row[index];
    struct comparison_row *of = &comparison->row[index];
    of->fits = true;
    of->figure[COMPARISON_PERIOD] = parts_of(row, row->period.time);
    of->figure[COMPARISON_STEP] = parts_of(row, row->played.makespan);
    of->figure[COMPARISON_BUBBLE] = parts_of(row, row->played.bubble_makespan);
    of->figure[COMPARISON_MEMORY] = schedules_peak_most(schedules, row);
}

bool schedules_are_together(const struct comparison_row *row, const struct comparison_row *other)
{
    return row->rank_count == other->rank_count && row->microbatch_count == other->microbatch_count;
}

const struct comparison_way schedules_way = {
    .read = schedules_read,
    .play = schedules_play,
    .rank = schedules_rank,
    .are_compared = schedules_are_together,
    .write_text = schedules_write_text,
    .put_head = schedules_put_head,
    .put_row = schedules_put_row,
    .write_svg = schedules_write_svg,
    .cells = &schedules_cells,
    .find = schedules_find,
};
