#include "tests/oracle/plan_cost.h"

#include <stddef.h>

#include "sim/base/units.h"
#include "sim/machine/machine.h"

static uint64_t lane_units(const struct plan *plan, const struct plan_lane *lane, uint32_t position)
{
    const struct plan_item *item = &plan->item[lane->item];
    uint64_t units = 0;
    for (uint32_t s = 0; s < lane->send_count[position]; s++)
        units += plan_step(plan, item, lane->lane, position, s).units;
    return units;
}

static void place_of(const struct plan *plan, const uint32_t digit[GROUP_DIMENSIONS_MAX],
                     uint32_t ret_at[MACHINE_AXES_MAX])
{
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) ret_at[axis] = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        ret_at[plan->group.dimension[d].axis] += digit[d] * plan->group.dimension[d].stride;
}

/* Of the messages of all pieces that a chip names receivers for, the units of those that differ
 * from it along an axis: they take links of it, or a level's cables. */
static uint64_t routed_units(const struct plan *plan, const struct plan_lane *lane, uint32_t axis,
                             const uint32_t digit[GROUP_DIMENSIONS_MAX])
{
    const struct plan_item *item = &plan->item[lane->item];
    uint32_t at[MACHINE_AXES_MAX], peer[MACHINE_AXES_MAX];
    uint64_t units = 0;
    place_of(plan, digit, at);
    uint32_t const position = plan_item_seat(plan, item, at);
    for (uint32_t s = 0; s < lane->send_count[position]; s++) {
        struct primitive_step const step = plan_step(plan, item, lane->lane, position, s);
        plan_item_peer(plan, item, at, step.peer, peer);
        /* What switches copy or add leaves the chip once, whoever gets it. */
        bool const network = item->primitive->network != PRIMITIVE_NETWORK_NONE;
        if (!network && peer[axis] == at[axis]) continue;
        if (item->ragged_units == NULL) units += (uint64_t)step.units * item->piece_count;
        for (uint32_t p = 0; item->ragged_units != NULL && p < item->piece_count; p++)
            units += plan_ragged_units(plan, item, &step, at, p);
    }
    return units;
}

uint64_t plan_sent_bytes(const struct plan *plan, uint32_t dimension,
                         const uint32_t position[GROUP_DIMENSIONS_MAX])
{
    SIM_ASSERT(dimension < plan->group.dimension_count);
    uint32_t const axis = plan->group.dimension[dimension].axis;
    uint32_t at[MACHINE_AXES_MAX];
    uint64_t bytes = 0;
    place_of(plan, position, at);
    for (uint32_t l = 0; l < plan->lane_count; l++) {
        const struct plan_lane *lane = &plan->lane[l];
        const struct plan_item *item = &plan->item[lane->item];
        bool crosses = false;
        if (item->primitive->routed) {
            bytes += routed_units(plan, lane, axis, position) * plan_item_unit_bytes(item) /
                     item->piece_count;
            continue;
        }
        for (uint32_t g = 0; g < lane->leg_count; g++)
            crosses = crosses || lane->leg[g].port / 2 == axis;
        if (!crosses) continue;
        bytes +=
            lane_units(plan, lane, plan_item_seat(plan, item, at)) * plan_item_unit_bytes(item);
    }
    return bytes;
}

static int64_t permute_ps(const struct plan *plan, uint64_t bytes_per_s, int64_t hop_ps)
{
    int64_t hops = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        int64_t const members =
            plan->permute.offset[d] < 0 ? -plan->permute.offset[d] : plan->permute.offset[d];
        hops += members * plan->group.dimension[d].stride;
    }
    return hops == 0 ? 0 : units_duration_ps(plan->size_bytes, bytes_per_s) + hops * hop_ps;
}

/*
 * For an array of V bytes on N ranks:
 *   AllGather, ReduceScatter   V(N-1)/(N·w·ports); a dimension has 2 ports where it is a ring both
 *                              ways, 1 where it is one way or a line, whose end has one link
 *   AllToAll                   the dimension that takes longest: a ring of n carries V·n/(8·N·w),
 *                              n odd: V·(n²-1)/(8·n·N·w). A line alone V(n-1)/(2·N·w), for bundles
 *                              are stored and forwarded; with other dimensions, where pieces
 *                              follow one another, what its middle link carries: twice a ring's
 * and the hops of all dimensions in series: floor(n/2) on a ring both ways, else n-1, each as many
 * links as the members are apart.
 */
struct form {
    units_wide numerator, denominator; /* Seconds = V · numerator / (denominator · w). */
    int64_t hops;
};

static bool is_both_ways(const struct plan *plan, uint32_t dimension)
{
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->item[i].dimension == dimension)
            return plan->item[i].primitive->ring && plan->item[i].primitive->lane_count == 2;
    SIM_ASSERT(false);
    return false;
}

static struct form form_of(const struct plan *plan)
{
    uint64_t const rank_count = group_rank_count(&plan->group);
    struct form form = {0, 1, 0};
    uint32_t ports = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        bool const both_ways = is_both_ways(plan, d);
        units_wide const n = at->size;
        units_wide const bisection = (n * n - n % 2) * (both_ways ? 1 : 2);
        bool const is_alone = !both_ways && plan->group.dimension_count == 1;
        units_wide const numerator = is_alone ? 4 * (n - 1) * n : bisection;
        units_wide const denominator = 8 * n * rank_count;
        ports += both_ways ? 2 : 1;
        form.hops += (int64_t)(both_ways ? at->size / 2 : at->size - 1) * at->stride;
        if (plan->kind == COLLECTIVE_ALL_TO_ALL &&
            numerator * form.denominator > form.numerator * denominator) {
            form.numerator = numerator;
            form.denominator = denominator;
        }
    }
    if (plan->kind != COLLECTIVE_ALL_TO_ALL) {
        form.numerator = rank_count - 1;
        form.denominator = (units_wide)rank_count * ports;
    }
    return form;
}

int64_t plan_closed_form_ps(const struct plan *plan, uint64_t bytes_per_s, int64_t hop_ps)
{
    if (plan->kind == COLLECTIVE_PERMUTE) return permute_ps(plan, bytes_per_s, hop_ps);
    if (plan->group.dimension_count == 0) return 0;
    struct form const form = form_of(plan);
    units_wide const divisor = form.denominator * bytes_per_s;
    units_wide const bytes = plan->size_bytes * form.numerator; /* Below 2^56 · 2^40. */
    /* Whole seconds and the rest apart: bytes · 10^12 would not fit. */
    units_wide const rest = bytes % divisor * (uint64_t)TIME_PS_PER_S;
    units_wide const ps =
        bytes / divisor * (uint64_t)TIME_PS_PER_S + (rest + divisor - 1) / divisor;
    SIM_ASSERT(ps < (units_wide)(TIME_PS_NEVER / 4));
    int64_t const once = (int64_t)ps + form.hops * hop_ps;
    return plan->kind == COLLECTIVE_ALL_REDUCE ? 2 * once : once;
}
