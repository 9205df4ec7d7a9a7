/*
 * Kernels between matmuls: the share of HBM's rate that a large kernel of a kind reaches, and what
 * the least kernel takes. Which kernels there are, only a stack knows, so that without a base rows
 * of such kernels are left out.
 */
#include "sim/base/arena.h"
#include "sim/base/ranked.h"
#include "sim/base/units.h"
#include "tools/podsim/calibrate/calibrate.h"

/* The rows of a kind; of kernels between matmuls, the rows of one function. */
static uint32_t rows_take(const struct rows *rows, enum row_what what, enum work_function function,
                          const struct row **taken)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (row->what != what || (what == ROW_BETWEEN && row->function != function)) continue;
        taken[count++] = row;
    }
    return count;
}

/* Takes rows that would be faster than HBM out of the list. */
static enum status fast_drop(struct arena *arena, struct calibration *calibration,
                             const struct row **taken, uint32_t *count, struct error *reterr)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const struct row *row = taken[i];
        int64_t const least_ps =
            units_duration_ps(row->moved_bytes, calibration->chip->hbm_bytes_per_s);
        if (least_ps <= row->median_ps) {
            taken[kept++] = row;
            continue;
        }
        STATUS_TRY(calibrate_leave_out(
            arena, calibration, row->line, reterr, "%s of %llu bytes: faster than HBM, %.4g times",
            work_function_name(row->function), (unsigned long long)row->moved_bytes,
            (double)least_ps / (double)row->median_ps));
    }
    *count = kept;
    return STATUS_OK;
}

static enum status function_make(struct arena *arena, struct calibration *calibration,
                                 enum work_function which, const struct row **taken,
                                 uint64_t *numbers, struct error *reterr)
{
    struct calibrate_function *function = &calibration->function[which];
    uint32_t count = rows_take(calibration->rows, ROW_BETWEEN, which, taken);
    function->row_count = count;
    STATUS_TRY(fast_drop(arena, calibration, taken, &count, reterr));
    if (count == 0) return STATUS_OK;
    STATUS_TRY(calibrate_spread(arena, taken, count, &function->spread, reterr));
    for (uint32_t i = 0; i < count; i++)
        function->largest_bytes = units_larger(function->largest_bytes, taken[i]->moved_bytes);
    uint64_t const least = units_smaller(function->largest_bytes, CALIBRATE_LARGE_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        if (taken[i]->moved_bytes < least) continue;
        int64_t const least_ps =
            units_duration_ps(taken[i]->moved_bytes, calibration->chip->hbm_bytes_per_s);
        units_wide const scaled = (units_wide)(uint64_t)least_ps * PPM_ONE;
        numbers[function->large_count++] = (uint64_t)(scaled / (uint64_t)taken[i]->median_ps);
    }
    uint64_t const ppm = ranked_number(numbers, function->large_count, function->large_count / 2);
    function->share_ppm = ppm == 0 ? 1 : (uint32_t)ppm;
    return STATUS_OK;
}

enum status calibrate_between(struct arena *arena, struct calibration *calibration,
                              struct error *reterr)
{
    const struct rows *rows = calibration->rows;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, rows->count, sizeof(const struct row *), &memory, reterr));
    const struct row **taken = memory;
    STATUS_TRY(arena_try(arena, rows->count, sizeof(uint64_t), &memory, reterr));
    uint64_t *numbers = memory;
    if (calibration->base == NULL || calibration->base->between.fusion == NULL) {
        for (uint32_t i = 0; i < rows->count; i++)
            if (rows->row[i].what == ROW_BETWEEN || rows->row[i].what == ROW_LAUNCH)
                STATUS_TRY(calibrate_leave_out(arena, calibration, rows->row[i].line, reterr,
                                               "no base says which kernels are between matmuls"));
        return STATUS_OK;
    }
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++)
        STATUS_TRY(
            function_make(arena, calibration, (enum work_function)f, taken, numbers, reterr));
    uint32_t const count = rows_take(rows, ROW_LAUNCH, WORK_FUNCTION_REST, taken);
    for (uint32_t i = 0; i < count; i++) numbers[i] = (uint64_t)taken[i]->median_ps;
    if (count > 0) calibration->launch_ps = (int64_t)ranked_number(numbers, count, count / 2);
    return STATUS_OK;
}
