/* The look-up of a share. */
#include <stddef.h>

#include "sim/base/logarithm.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"

/* A side among the edges: between the one at `low` and the next, `part` of the way there in
 * logarithms, in units of 2^-32. */
struct edge_position {
    uint32_t low;
    uint64_t part;
};

static const struct kernel_table *table_cast_so(const struct kernel_stack *stack,
                                                enum format format, enum kernel_layout layout,
                                                enum format result, enum work_cast cast)
{
    const struct kernel_table *like = NULL;
    for (uint32_t i = 0; i < stack->table_count; i++) {
        const struct kernel_table *table = &stack->table[i];
        if (table->family != KERNEL_MATMUL || table->format != format) continue;
        if (table->cast != cast) continue;
        if (table->layout == layout && table->result == result) return table;
        bool const is_nearer = like == NULL || like->layout != layout;
        if (table->layout == layout || (table->layout == KERNEL_TN && is_nearer)) like = table;
    }
    return like;
}

const struct kernel_table *kernel_table_of(const struct kernel_stack *stack, enum format format,
                                           enum kernel_layout layout, enum format result,
                                           enum work_cast cast)
{
    const struct kernel_table *table = table_cast_so(stack, format, layout, result, cast);
    if (table != NULL || cast == WORK_CAST_WITHIN) return table;
    return table_cast_so(stack, format, layout, result, WORK_CAST_TENSOR);
}

const struct kernel_table *kernel_grouped_of(const struct kernel_stack *stack, enum format format,
                                             enum kernel_layout layout, enum format result,
                                             enum work_cast cast)
{
    for (uint32_t i = 0; i < stack->table_count; i++) {
        const struct kernel_table *table = &stack->table[i];
        if (table->family == KERNEL_GROUPED && table->format == format && table->layout == layout &&
            table->result == result && table->cast == cast)
            return table;
    }
    return NULL;
}

const struct kernel_table *kernel_other_of(const struct kernel_stack *stack,
                                           enum kernel_family family, enum format format,
                                           enum format stored)
{
    for (uint32_t i = 0; i < stack->table_count; i++) {
        const struct kernel_table *table = &stack->table[i];
        if (table->family == family && table->format == format && table->stored == stored)
            return table;
    }
    return NULL;
}

static struct edge_position edge_position_of(const struct kernel_table *table, uint32_t which,
                                             uint64_t side)
{
    const uint32_t *edge = table->edge[which];
    struct edge_position position = {.low = 0};
    if (table->edge_count[which] == 1) return position;
    while (position.low + 2 < table->edge_count[which] && edge[position.low + 1] <= side)
        position.low++;
    int64_t const low = logarithm_2(edge[position.low]);
    uint64_t const whole = (uint64_t)(logarithm_2(edge[position.low + 1]) - low);
    uint64_t const way = (uint64_t)(logarithm_2(side) - low);
    position.part = (uint64_t)(((units_wide)way << LOGARITHM_BITS) / whole);
    return position;
}

/* Of sides within the grid. */
static uint32_t inner_share_ppm(const struct kernel_table *table,
                                const uint64_t side[KERNEL_SIDES_MAX])
{
    uint32_t const sides = kernel_side_count(table->family);
    struct edge_position position[KERNEL_SIDES_MAX];
    units_wide sum = 0;
    for (uint32_t s = 0; s < sides; s++) position[s] = edge_position_of(table, s, side[s]);
    for (uint32_t corner = 0; corner >> sides == 0; corner++) {
        uint64_t weight = UINT64_C(1) << LOGARITHM_BITS, at = 0;
        for (uint32_t s = 0; s < sides; s++) {
            bool const is_high = (corner >> s & 1) != 0;
            uint64_t const part =
                is_high ? position[s].part : (uint64_t)LOGARITHM_ONE - position[s].part;
            weight = (uint64_t)((units_wide)weight * part >> LOGARITHM_BITS);
            at = at * table->edge_count[s] + position[s].low + is_high;
        }
        if (weight != 0) sum += (units_wide)weight * (uint64_t)logarithm_2(table->share_ppm[at]);
    }
    return (uint32_t)logarithm_times_power_2(1, (int64_t)(sum >> LOGARITHM_BITS));
}

uint32_t kernel_table_inside_ppm(const struct kernel_table *table,
                                 const uint64_t side[KERNEL_SIDES_MAX])
{
    uint64_t nearest[KERNEL_SIDES_MAX];
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint64_t const least = table->edge[s][0], most = table->edge[s][table->edge_count[s] - 1];
        nearest[s] = side[s] < least ? least : side[s] > most ? most : side[s];
    }
    return inner_share_ppm(table, nearest);
}

/* A share outside, by the factors there in place of the nearest sides' own. */
static units_wide factored_ppm(const struct kernel_table *table, units_wide ppm,
                               const uint64_t *side, const uint64_t *nearest)
{
    for (const struct kernel_table *factor = table->factor; factor != NULL; factor = factor->factor)
        ppm =
            ppm * kernel_table_inside_ppm(factor, side) / kernel_table_inside_ppm(factor, nearest);
    return ppm;
}

struct kernel_share kernel_table_share(const struct kernel_table *table,
                                       const uint64_t side[KERNEL_SIDES_MAX], uint32_t core_count)
{
    uint64_t nearest[KERNEL_SIDES_MAX];
    struct kernel_share share = {.is_outside = false};
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint64_t const least = table->edge[s][0], most = table->edge[s][table->edge_count[s] - 1];
        nearest[s] = side[s] < least ? least : side[s] > most ? most : side[s];
        share.is_outside = share.is_outside || nearest[s] != side[s];
    }
    share.ppm = inner_share_ppm(table, nearest);
    if (!share.is_outside) return share;
    /* share = roofline / time, and time is the nearest's by as many more steps. */
    units_wide const nearest_ps =
        (units_wide)kernel_roofline_ps(table, nearest) * PPM_ONE / share.ppm;
    units_wide const ps = nearest_ps * kernel_tile_steps(table->family, side, core_count) /
                          kernel_tile_steps(table->family, nearest, core_count);
    units_wide const ppm = factored_ppm(
        table, (units_wide)kernel_roofline_ps(table, side) * PPM_ONE / (ps + (ps == 0)), side,
        nearest);
    share.ppm = ppm > PPM_ONE ? PPM_ONE : ppm == 0 ? 1 : (uint32_t)ppm;
    return share;
}

void kernel_table_edges(const struct kernel_table *table, uint32_t which, uint64_t side,
                        uint32_t *ret_low, uint32_t *ret_high)
{
    const uint32_t *edge = table->edge[which];
    uint32_t const last = table->edge_count[which] - 1;
    uint32_t low = 0;
    while (low < last && edge[low + 1] <= side) low++;
    *ret_low = edge[low];
    *ret_high = low < last && edge[low] < side ? edge[low + 1] : edge[low];
}
