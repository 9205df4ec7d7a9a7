/* Where a chip stands in an item of a plan, whom it talks to, and what it sends. */
#include <stddef.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/collective/msccl.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

/* The root's member number along a dimension; 0 for items that do not depend on it. */
static inline uint32_t root_digit(const struct plan *plan, bool rooted, uint32_t dimension)
{
    return rooted ? plan->rooted.digit[dimension] : 0;
}

/* As group_position(), where mostly nothing is to be divided: members are neighbours, and one group
 * spans the axis. The replay asks for every message. */
static inline uint32_t digit_of(const struct group_dimension *dimension, uint32_t coordinate)
{
    if (dimension->stride != 1) coordinate /= dimension->stride;
    return coordinate < dimension->size ? coordinate : coordinate % dimension->size;
}

/* Positions are counted digit by digit from the root, so that it stands at 0. */
uint32_t plan_item_position(const struct plan *plan, const struct plan_item *item,
                            const uint32_t *at)
{
    const uint8_t *digits = NULL;
    uint32_t const count = plan_item_digits(plan, item, &digits);
    bool const rooted = collective_is_rooted(item->primitive->kind);
    uint32_t position = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct group_dimension *dimension = &plan->group.dimension[digits[i]];
        uint32_t const root = root_digit(plan, rooted, digits[i]);
        uint32_t digit = digit_of(dimension, at[dimension->axis]);
        digit += digit < root ? dimension->size - root : 0 - root;
        position = position * dimension->size + digit;
    }
    return position;
}

/* Whether it stands where the root does along all of these dimensions. */
static bool stands_at_root(const struct plan *plan, uint32_t dimensions, const uint32_t *at)
{
    for (; dimensions != 0; dimensions &= dimensions - 1) {
        uint32_t const d = (uint32_t)__builtin_ctz(dimensions);
        const struct group_dimension *dimension = &plan->group.dimension[d];
        if (digit_of(dimension, at[dimension->axis]) != plan->rooted.digit[d]) return false;
    }
    return true;
}

uint32_t plan_item_seat(const struct plan *plan, const struct plan_item *item, const uint32_t *at)
{
    if (!stands_at_root(plan, item->at_root, at)) return item->size;
    if (item->off_root != 0 && stands_at_root(plan, item->off_root, at)) return item->size;
    return plan_item_position(plan, item, at);
}

uint32_t plan_item_displaced(const struct plan *plan, const struct plan_item *item,
                             uint32_t position, uint32_t displacement)
{
    if (!item->flat || item->cyclic) return (position + displacement) % item->size;
    uint32_t displaced = 0, unit = 1;
    for (uint32_t i = plan->group.dimension_count; i-- > 0;) {
        uint32_t const size = plan->group.dimension[plan->flat_dimension[i]].size;
        displaced += (position % size + displacement % size) % size * unit;
        position /= size;
        displacement /= size;
        unit *= size;
    }
    return displaced;
}

void plan_item_peer(const struct plan *plan, const struct plan_item *item, const uint32_t *at,
                    uint32_t peer, uint32_t *ret_at)
{
    bool const displaces = item->primitive->translates && !item->cyclic;
    bool const rooted = collective_is_rooted(item->primitive->kind);
    const uint8_t *digits = NULL;
    uint32_t const count = plan_item_digits(plan, item, &digits);
    if (item->cyclic) peer = (plan_item_position(plan, item, at) + peer) % item->size;
    memcpy(ret_at, at, MACHINE_AXES_MAX * sizeof *at);
    for (uint32_t i = count; i-- > 0;) {
        const struct group_dimension *dimension = &plan->group.dimension[digits[i]];
        uint32_t const own = digit_of(dimension, at[dimension->axis]);
        uint32_t const upper = i == 0 ? 0 : peer / dimension->size; /* The last is the rest. */
        uint32_t digit = peer - upper * dimension->size;
        peer = upper;
        digit += displaces ? own : root_digit(plan, rooted, digits[i]);
        if (digit >= dimension->size) digit %= dimension->size;
        ret_at[dimension->axis] += digit * dimension->stride;
        ret_at[dimension->axis] -= own * dimension->stride;
    }
}

uint32_t plan_item_shift(const struct plan *plan, const struct plan_item *item, uint32_t dimension)
{
    const struct group_dimension *at = &plan->group.dimension[dimension];
    if (!at->ring && !at->switched) return at->size;
    if (((item->at_root | item->off_root) >> dimension & 1) != 0) return at->size;
    if (plan_item_is_uniform(plan, item)) return 1;
    if (!item->primitive->routed || plan->ragged_units != NULL || plan->script != NULL)
        return at->size;
    /* Of a ring through all positions the slowest digit has nobody to carry to. */
    bool const carries = item->cyclic && dimension != plan->flat_dimension[0];
    if (item->primitive->translates && !carries) return 1;
    return item->primitive->partners ? at->size / 2 : at->size;
}

/* Rings of the grid, whole and of an even number of members, along which a routed item sends. */
static uint32_t antipodal_axes(const struct machine *machine, const struct plan *plan,
                               const struct plan_item *item)
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count && item->primitive->routed; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        bool const takes = item->flat || item->dimension == d;
        if (takes && at->axis < machine->grid_axis_count && machine->wrap[at->axis] &&
            at->size % 2 == 0 && at->size * at->stride == machine->shape[at->axis])
            axes |= 1u << at->axis;
    }
    return axes;
}

struct path_balance plan_item_balance(const struct machine *machine, const struct plan *plan,
                                      const struct plan_item *item)
{
    struct path_balance balance = {.by_sender = 0};
    uint32_t const axes = antipodal_axes(machine, plan, item);
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) balance.stride[axis] = 1;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if (item->flat || item->dimension == d)
            balance.stride[plan->group.dimension[d].axis] = plan->group.dimension[d].stride;
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        uint32_t const others = axes & ~(1u << axis);
        if ((axes >> axis & 1) == 0) continue;
        if (others == 0) {
            balance.by_sender |= (uint8_t)(1u << axis);
            continue;
        }
        balance.by_other |= (uint8_t)(1u << axis);
        balance.other[axis] = (uint8_t)__builtin_ctz(others);
    }
    return balance;
}

struct primitive_step plan_step(const struct plan *plan, const struct plan_item *item,
                                uint32_t lane, uint32_t position, uint32_t step)
{
    if (plan->script != NULL) return msccl_message(plan->script, lane, position, step);
    struct primitive_step content = item->primitive->step(item->size, lane, position, step);
    if (item->primitive->kind == COLLECTIVE_PERMUTE && !plan->permute.mirrors)
        content.peer = plan->permute.peer;
    return content;
}

uint32_t plan_rank(const struct plan *plan, const uint32_t *at)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < plan->group.dimension_count; i++) {
        const struct group_dimension *dimension = &plan->group.dimension[plan->flat_dimension[i]];
        rank = rank * dimension->size + digit_of(dimension, at[dimension->axis]);
    }
    return rank;
}

uint32_t plan_ragged_units(const struct plan *plan, const struct plan_item *item,
                           const struct primitive_step *step, const uint32_t *at, uint32_t piece)
{
    uint32_t const position = plan_item_position(plan, item, at);
    uint32_t const to = plan_item_displaced(plan, item, position, step->peer);
    uint64_t const row = piece * group_rank_count(&plan->group) + plan_rank(plan, at);
    return item->ragged_units[row * item->size + to];
}

bool plan_lanes_agree(const struct plan *plan, const struct plan *other)
{
    if (plan->lane_count != other->lane_count || !group_equal(&plan->group, &other->group))
        return false;
    for (uint32_t l = 0; l < plan->lane_count; l++) {
        const struct plan_item *item = &plan->item[plan->lane[l].item];
        const struct plan_item *like = &other->item[other->lane[l].item];
        if (item->primitive != like->primitive || item->dimension != like->dimension ||
            plan->lane[l].lane != other->lane[l].lane)
            return false;
    }
    return true;
}
