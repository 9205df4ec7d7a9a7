/*
 * The look-up of a share. A kernel of tiles computes 128 x 128 of the result in each core at a
 * time, by steps of 64 of k (CUTLASS, "Efficient GEMM in CUDA"; cuBLAS' kernels of tensor cores
 * have tiles of 64 to 256): its time is that of whole waves of tiles over the cores.
 */
#include <stddef.h>

#include "sim/base/logarithm.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"

enum { TILE_ROWS = 128, TILE_COLUMNS = 128, TILE_INNER = 64, RESULT_BYTES = 2, CORNERS = 8 };

/* A side among the edges: between the one at `low` and the next, `part` of the way there in
 * logarithms, in units of 2^-32. */
struct place {
    uint32_t low;
    uint64_t part;
};

const struct kernel_table *kernel_table_of(const struct kernel_stack *stack, enum format format,
                                           enum kernel_layout layout)
{
    const struct kernel_table *like = NULL;
    for (uint32_t i = 0; i < stack->table_count; i++) {
        const struct kernel_table *table = &stack->table[i];
        if (table->format != format) continue;
        if (table->layout == layout) return table;
        if (table->layout == KERNEL_TN) like = table;
    }
    return like;
}

static uint64_t saturated(units_wide amount)
{
    return amount > UINT64_MAX ? UINT64_MAX : (uint64_t)amount;
}

int64_t kernel_roofline_ps(const struct kernel_table *table, const uint64_t side[KERNEL_SIDES])
{
    uint64_t const m = side[KERNEL_M], n = side[KERNEL_N], k = side[KERNEL_K];
    units_wide const flop = (units_wide)2 * m * n * k;
    units_wide const operands =
        ((units_wide)m * k + (units_wide)n * k) * format_bits(table->format);
    units_wide const bytes = operands / 8 + (units_wide)m * n * RESULT_BYTES;
    int64_t const math_ps = units_duration_ps(saturated(flop), table->flop_per_s);
    int64_t const move_ps = units_duration_ps(saturated(bytes), table->bytes_per_s);
    return math_ps > move_ps ? math_ps : move_ps;
}

static struct place place_of(const struct kernel_table *table, enum kernel_side which,
                             uint64_t side)
{
    const uint32_t *edge = table->edge[which];
    struct place place = {.low = 0};
    while (place.low + 2 < table->edge_count[which] && edge[place.low + 1] <= side) place.low++;
    int64_t const low = logarithm_2(edge[place.low]);
    uint64_t const whole = (uint64_t)(logarithm_2(edge[place.low + 1]) - low);
    uint64_t const way = (uint64_t)(logarithm_2(side) - low);
    place.part = (uint64_t)(((units_wide)way << LOGARITHM_BITS) / whole);
    return place;
}

/* Of sides within the grid. */
static uint32_t inner_share_ppm(const struct kernel_table *table, const uint64_t side[KERNEL_SIDES])
{
    struct place place[KERNEL_SIDES];
    units_wide sum = 0;
    for (enum kernel_side s = 0; s < KERNEL_SIDES; s++) place[s] = place_of(table, s, side[s]);
    for (uint32_t corner = 0; corner < CORNERS; corner++) {
        uint64_t weight = UINT64_C(1) << LOGARITHM_BITS, at = 0;
        for (enum kernel_side s = 0; s < KERNEL_SIDES; s++) {
            bool const is_high = (corner >> s & 1) != 0;
            uint64_t const part = is_high ? place[s].part : (uint64_t)LOGARITHM_ONE - place[s].part;
            weight = (uint64_t)((units_wide)weight * part >> LOGARITHM_BITS);
            at = at * table->edge_count[s] + place[s].low + is_high;
        }
        if (weight != 0) sum += (units_wide)weight * (uint64_t)logarithm_2(table->share_ppm[at]);
    }
    return (uint32_t)logarithm_times_power_2(1, (int64_t)(sum >> LOGARITHM_BITS));
}

/* What the time of a kernel of tiles grows with. */
static uint64_t tile_steps(const uint64_t side[KERNEL_SIDES], uint32_t core_count)
{
    units_wide const tiles = (units_wide)units_ceil_divide(side[KERNEL_M], TILE_ROWS) *
                             units_ceil_divide(side[KERNEL_N], TILE_COLUMNS);
    units_wide const waves = (tiles + core_count - 1) / core_count;
    units_wide const steps = waves * units_ceil_divide(side[KERNEL_K], TILE_INNER);
    return saturated(steps);
}

struct kernel_share kernel_table_share(const struct kernel_table *table,
                                       const uint64_t side[KERNEL_SIDES], uint32_t core_count)
{
    uint64_t nearest[KERNEL_SIDES];
    struct kernel_share share = {.is_outside = false};
    for (enum kernel_side s = 0; s < KERNEL_SIDES; s++) {
        uint64_t const least = table->edge[s][0], most = table->edge[s][table->edge_count[s] - 1];
        nearest[s] = side[s] < least ? least : side[s] > most ? most : side[s];
        share.is_outside = share.is_outside || nearest[s] != side[s];
    }
    share.ppm = inner_share_ppm(table, nearest);
    if (!share.is_outside) return share;
    /* share = roofline / time, and time is the nearest's by as many more steps. */
    units_wide const nearest_ps =
        (units_wide)kernel_roofline_ps(table, nearest) * PPM_ONE / share.ppm;
    units_wide const ps =
        nearest_ps * tile_steps(side, core_count) / tile_steps(nearest, core_count);
    units_wide const ppm = (units_wide)kernel_roofline_ps(table, side) * PPM_ONE / (ps + (ps == 0));
    share.ppm = ppm > PPM_ONE ? PPM_ONE : ppm == 0 ? 1 : (uint32_t)ppm;
    return share;
}
