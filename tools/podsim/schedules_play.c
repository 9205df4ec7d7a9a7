/* Plays the rows of `podsim pipeline`. */
#include <string.h>

#include "sim/base/arena.h"
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
    uint64_t const ppm = schedule_peak_ppm(&row->schedule, rank, schedules->kept_ppm);
    return (double)ppm / PPM_ONE / row->schedule.chunk_count;
}

double schedules_peak_most(const struct schedules *schedules, const struct schedules_row *row)
{
    double most = 0;
    for (uint32_t r = 0; r < row->schedule.rank_count; r++) {
        double const peak = schedules_peak(schedules, row, r);
        most = peak > most ? peak : most;
    }
    return most;
}

double schedules_measured(const struct schedules_row *row)
{
    return schedules_units(row, formula_measured(&row->formula, &row->played));
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

static enum status row_play(struct schedules *schedules, struct schedules_row *row,
                            struct shell *shell, struct error *reterr)
{
    struct schedule_watch const watch = {.stops = stops, .owner = shell};
    row->request.times = times_of(schedules, row->request.chunk_count);
    row->ticks_per_unit = (double)SCHEDULES_UNIT * row->request.chunk_count;
    struct schedule_request request = row->request;
    struct schedule_times without = request.times;
    request.watch = &watch;
    without.hop = 0;
    if (row->form != NULL) {
        STATUS_TRY(schedule_build(schedules->arena, row->form, &request, "--schedules",
                                  &row->schedule, reterr));
        row->formula = row->form->formula(&request);
    }
    row->name = row->schedule.name;
    STATUS_TRY(schedule_play(schedules->arena, &row->schedule, &without, &watch, row->name,
                             &row->without_hops, reterr));
    return schedule_play(schedules->arena, &row->schedule, &request.times, &watch, row->name,
                         &row->played, reterr);
}

enum status schedules_play(struct schedules *schedules, struct shell *shell, struct error *reterr)
{
    const char *asked = options_value(schedules->options, "--schedules");
    bool const all = asked == NULL || strcmp(asked, "all") == 0;
    uint64_t passes = 0;
    for (uint32_t i = 0; i < schedules->row_count; i++) {
        struct schedules_row *row = &schedules->row[i];
        enum status status = row_play(schedules, row, shell, &row->refused);
        bool const may_pass_over = all && row->form != NULL && status == STATUS_INVALID;
        if (may_pass_over)
            row->name = row->form->name;
        else if (status != STATUS_OK) {
            *reterr = row->refused;
            return status;
        }
        schedules->done_count = i + 1;
        for (uint32_t r = 0; status == STATUS_OK && r < row->schedule.rank_count; r++)
            passes += row->schedule.rank[r].count;
        double const share = (double)(i + 1) / schedules->row_count;
        if (!shell_progress(shell, share, passes)) return STATUS_INTERRUPTED;
    }
    return STATUS_OK;
}
