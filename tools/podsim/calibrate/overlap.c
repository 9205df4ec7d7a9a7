/*
 * Products at the same time as a copy that holds cores, compared with the model of them: as many
 * more steps of tiles as fewer cores need, and HBM less what the copy moves. They set no constant.
 */
#include "sim/base/arena.h"
#include "sim/base/ranked.h"
#include "sim/base/units.h"
#include "tools/podsim/calibrate/calibrate.h"

static bool is_same_product(const struct row *row, const struct row *other)
{
    bool is_same = row->format == other->format && row->layout == other->layout &&
                   row->result == other->result && row->cast == other->cast;
    for (uint32_t s = 0; s < kernel_side_count(KERNEL_MATMUL); s++)
        is_same = is_same && row->side[s] == other->side[s];
    return is_same;
}

/* The product without a copy; NULL: no row is of it. */
static const struct row *alone_find(const struct rows *rows, const struct row *row)
{
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->row[i].what == ROW_OVERLAP && rows->row[i].cores == 0 &&
            is_same_product(&rows->row[i], row))
            return &rows->row[i];
    return NULL;
}

/* What a row's product asks of all of the chip. */
static struct kernel_demand demand_of(const struct chip *chip, const struct row *row)
{
    struct kernel_table const table = {.family = KERNEL_MATMUL,
                                       .format = row->format,
                                       .flop_per_s = chip->math_peak_flop_per_s[row->format],
                                       .bytes_per_s = chip->hbm_bytes_per_s};
    uint64_t const side[KERNEL_SIDES_MAX] = {row->side[KERNEL_M], row->side[KERNEL_N],
                                             row->side[KERNEL_K]};
    return kernel_demand(&table, side);
}

/* Whether a product is faster than all of the chip. */
static bool is_beyond_roofline(const struct chip *chip, const struct row *row)
{
    struct kernel_demand const of = demand_of(chip, row);
    return row->median_ps < of.math_ps || row->median_ps < of.move_ps;
}

/* Why a row cannot be compared; NULL: it can. */
static const char *refusal_of(const struct chip *chip, const struct row *row,
                              const struct row *alone)
{
    if (alone == NULL) return "a product during a copy, which no row has without one (cores=0)";
    if (chip->math_peak_flop_per_s[row->format] == 0)
        return "a product during a copy, of a format that the chip's file has no rate for";
    if (row->cores >= chip_cores_apart(chip))
        return "a product during a copy, which leaves it no core of the chip";
    if (row->copied_bytes_per_s >= chip->hbm_bytes_per_s)
        return "a product during a copy that is faster than HBM";
    if (is_beyond_roofline(chip, row))
        return "a product during a copy, faster than the roofline of the whole chip";
    if (is_beyond_roofline(chip, alone))
        return "a product during a copy, whose time without one is faster than the roofline";
    return NULL;
}

/* How much longer the product takes by the model, in millionths of its time alone. */
static uint64_t modelled_ppm(const struct chip *chip, const struct row *row,
                             const struct row *alone)
{
    uint64_t side[KERNEL_SIDES_MAX] = {row->side[KERNEL_M], row->side[KERNEL_N],
                                       row->side[KERNEL_K]};
    uint32_t const cores = chip_cores_apart(chip);
    uint64_t const own_ps = (uint64_t)alone->median_ps;
    struct kernel_demand const of = demand_of(chip, row);
    units_wide math_ps = (units_wide)own_ps *
                         kernel_tile_steps(KERNEL_MATMUL, side, cores - row->cores) /
                         kernel_tile_steps(KERNEL_MATMUL, side, cores);
    if (of.math_ps < of.move_ps) math_ps = math_ps * (uint64_t)of.math_ps / (uint64_t)of.move_ps;
    units_wide const move_ps = (units_wide)(uint64_t)of.move_ps * chip->hbm_bytes_per_s /
                               (chip->hbm_bytes_per_s - row->copied_bytes_per_s);
    units_wide slower_ps = math_ps > move_ps ? math_ps : move_ps;
    if (slower_ps < own_ps) slower_ps = own_ps;
    return (uint64_t)(slower_ps * PPM_ONE / own_ps);
}

/* The middle of what rows of some cores have, or of all rows (0). */
static uint64_t rank_of(const struct calibrate_overlap *of, const uint64_t *number, uint32_t cores,
                        uint64_t *taken, uint32_t tenths)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->row_count; i++)
        if (cores == 0 || of->row[i]->cores == cores) taken[count++] = number[i];
    return ranked_number(taken, count, (uint32_t)((uint64_t)count * tenths / 10));
}

static void part_fill(const struct calibrate_overlap *of, uint64_t *const number[3],
                      uint64_t *taken, struct calibrate_overlap_part *part)
{
    for (uint32_t i = 0; i < of->row_count; i++)
        part->error.count += part->cores == 0 || of->row[i]->cores == part->cores;
    part->measured_ppm = rank_of(of, number[0], part->cores, taken, 5);
    part->modelled_ppm = rank_of(of, number[1], part->cores, taken, 5);
    part->error.median_ppm = rank_of(of, number[2], part->cores, taken, 5);
    part->error.ninetieth_ppm = rank_of(of, number[2], part->cores, taken, 9);
}

/* A part for each number of cores, as many as there is room for, in their order. */
static void parts_find(struct calibrate_overlap *of)
{
    for (uint32_t least = 1; of->part_count < CALIBRATE_OVERLAP_PARTS;) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < of->row_count; i++)
            if (of->row[i]->cores >= least && of->row[i]->cores < next) next = of->row[i]->cores;
        if (next == UINT32_MAX) return;
        of->part[of->part_count++].cores = next;
        least = next + 1;
    }
}

enum status calibrate_overlap(struct arena *arena, struct calibration *calibration,
                              struct error *reterr)
{
    struct calibrate_overlap *of = &calibration->overlap;
    const struct rows *rows = calibration->rows;
    uint64_t *number[3] = {NULL};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, rows->count, sizeof(const struct row *), &memory, reterr));
    of->row = memory;
    for (uint32_t i = 0; i < 3; i++) {
        STATUS_TRY(arena_try(arena, rows->count, sizeof(uint64_t), &memory, reterr));
        number[i] = memory;
    }
    STATUS_TRY(arena_try(arena, rows->count, sizeof(uint64_t), &memory, reterr));
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (row->what != ROW_OVERLAP || row->cores == 0) continue;
        const struct row *alone = alone_find(rows, row);
        const char *refusal = refusal_of(calibration->chip, row, alone);
        if (refusal != NULL) {
            STATUS_TRY(calibrate_leave_out(arena, calibration, row->line, reterr, "%s", refusal));
            continue;
        }
        units_wide const scaled = (units_wide)(uint64_t)row->median_ps * PPM_ONE;
        uint64_t const found = (uint64_t)(scaled / (uint64_t)alone->median_ps);
        uint64_t const model = modelled_ppm(calibration->chip, row, alone);
        uint64_t const measured = found == 0 ? 1 : found;
        uint64_t const apart = model > measured ? model - measured : measured - model;
        number[0][of->row_count] = measured;
        number[1][of->row_count] = model;
        number[2][of->row_count] = (uint64_t)((units_wide)apart * PPM_ONE / measured);
        of->row[of->row_count++] = row;
    }
    if (of->row_count == 0) return STATUS_OK;
    STATUS_TRY(calibrate_spread(arena, of->row, of->row_count, &of->spread, reterr));
    part_fill(of, number, memory, &of->all);
    parts_find(of);
    for (uint32_t i = 0; i < of->part_count; i++) part_fill(of, number, memory, &of->part[i]);
    return STATUS_OK;
}
