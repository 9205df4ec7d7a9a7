/* Plays the rows of `podsim pipeline`. */
#include <stddef.h>

#include "sim/base/units.h"
#include "tools/podsim/formula.h"
#include "tools/podsim/schedules.h"
#include "tools/podsim/shell.h"

double schedules_units(const struct schedules_row *row, int64_t ticks)
{
    return (double)ticks / row->ticks_per_unit;
}

double schedules_peak(const struct schedules *schedules, const struct schedules_row *row,
                      uint32_t rank)
{
    uint64_t const ppm = schedule_peak_ppm(&row->of->schedule, rank, schedules->kept_ppm);
    return (double)ppm / PPM_ONE / row->of->schedule.chunk_count;
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

static struct schedule_times times_of(const struct schedules *schedules, uint32_t chunks)
{
    return (struct schedule_times){
        .forward = schedules->forward,
        .input = schedules->input,
        .weight = schedules->weight,
        .pair = schedules->pair,
        .hop = schedules->hop * chunks,
    };
}

static bool stops(void *owner)
{
    struct error unused;
    return shell_check(owner, &unused) != STATUS_OK;
}

enum status schedules_play(struct comparison *comparison, uint32_t index, struct error *reterr)
{
    struct schedules *schedules = comparison->owner;
    struct schedules_row *row = &schedules->row[index];
    struct comparison_row *of = &comparison->row[index];
    struct schedule_watch const watch = {.stops = stops, .owner = comparison->shell};
    struct schedule_request const request = {.rank_count = of->rank_count,
                                             .microbatch_count = of->microbatch_count,
                                             .chunk_count = of->chunk_count,
                                             .times = times_of(schedules, of->chunk_count),
                                             .held_max = schedules->held_max,
                                             .watch = &watch};
    struct schedule_times without = request.times;
    without.hop = 0;
    row->of = of;
    row->ticks_per_unit = (double)SCHEDULES_UNIT * of->chunk_count;
    if (of->form != NULL) {
        STATUS_TRY(schedule_build(comparison->arena, of->form, &request, "--schedules",
                                  &of->schedule, reterr));
        of->formula = of->form->formula(&request);
    } else {
        of->schedule = *of->given;
    }
    STATUS_TRY(schedule_play(comparison->arena, &of->schedule, &without, &watch, of->name,
                             &row->without_hops, reterr));
    STATUS_TRY(schedule_play(comparison->arena, &of->schedule, &request.times, &watch, of->name,
                             &row->played, reterr));
    for (uint32_t r = 0; r < of->rank_count; r++) comparison->events += of->schedule.rank[r].count;
    return STATUS_OK;
}

const struct comparison_way schedules_way = {
    .read = schedules_read,
    .play = schedules_play,
    .write_text = schedules_write_text,
    .write_json = schedules_write_json,
    .write_svg = schedules_write_svg,
};
