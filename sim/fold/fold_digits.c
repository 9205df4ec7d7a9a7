/*
 * Folds along a part of an axis. Where groups, units of switches and pipeline stages nest, a
 * coordinate is a number of several digits, each from one boundary to the next: with ep on node:8,
 * dp on node:2 and pp on node:16 it is (stage, copy, expert rank). A digit that tells nobody apart
 * is left out, whichever digits lie around it.
 *
 * Chips whose remaining digits agree are alike if, at every moment, they get the same messages at
 * the same instants. So for each message of a plan, the digits that are left of its receiver follow
 * from those of its sender, and so does the way it takes:
 *
 *   digits of a dimension whose members are not alike are kept;
 *   members of others are displaced, with carries from digit to digit of the dimension: below a
 *       digit that is kept all of the dimension are;
 *   whether a message leaves a unit of switches follows from the digits of its dimension within
 *       the unit, unless the unit holds whole groups, or members of a group are units apart;
 *   where messages may have to queue for the cables of a unit, chips in it are told apart;
 *   where each pair of chips has links of its own, members of a smaller group are told apart by
 *       which of these they use, if messages of another group use them too.
 */
#include "sim/base/units.h"
#include "sim/fold/fold_input.h"

enum { DIGITS_MAX = 16 };

struct digits {
    uint32_t bound[DIGITS_MAX + 1]; /* From 1 to the axis' length; each divides the next. */
    uint32_t count;                 /* Of digits: digit i goes from bound i to bound i + 1. */
    bool kept[DIGITS_MAX];
};

/* Puts a boundary where it belongs. False: it does not nest with the others. */
static bool bound_add(struct digits *digits, uint32_t bound)
{
    uint32_t i = digits->count;
    SIM_ASSERT(bound > 0 && bound <= digits->bound[i]); /* The axis itself. */
    while (digits->bound[i] > bound) i--;
    if (digits->bound[i] == bound) return true;
    if (bound % digits->bound[i] != 0 || digits->bound[i + 1] % bound != 0 ||
        digits->count == DIGITS_MAX)
        return false;
    for (uint32_t k = ++digits->count; k > i + 1; k--) digits->bound[k] = digits->bound[k - 1];
    digits->bound[i + 1] = bound;
    return true;
}

static void keep(struct digits *digits, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < digits->count; i++)
        if (digits->bound[i] >= from && digits->bound[i] < to) digits->kept[i] = true;
}

/* Of the units that messages of a plan may leave: all below the tiers that they use. */
static bool units_add(const struct machine *machine, const struct plan *plan, uint32_t axis,
                      struct digits *digits)
{
    for (uint32_t index = 0; index < machine->level_count; index++)
        for (uint32_t tier = fold_tiers_below(machine, index, plan); tier-- > 0;)
            if (!bound_add(digits, level_box_length(machine, &machine->level[index],
                                                    (int32_t)tier - 1, axis)))
                return false;
    return true;
}

static bool bounds_find(const struct fold_input *part, uint32_t axis, struct digits *digits)
{
    const struct machine *machine = part->machine;
    const struct program *program = part->program;
    uint32_t const length = machine->shape[axis];
    *digits = (struct digits){.bound = {1, length}, .count = 1};
    uint32_t stride;
    uint32_t const roles = program_roles_along(program, axis, &stride);
    if (roles > 1 && (!bound_add(digits, stride) || !bound_add(digits, stride * roles)))
        return false;
    for (uint32_t i = 0; i < program->plan_count; i++) {
        const struct plan *plan = &program->plans[i];
        if (fold_input_leaves_out(part, i)) continue;
        if (!units_add(machine, plan, axis, digits)) return false;
        for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
            const struct group_dimension *at = &plan->group.dimension[d];
            if (at->axis != axis) continue;
            if (!bound_add(digits, at->stride) || !bound_add(digits, at->stride * at->size))
                return false;
            for (uint32_t item = 0; item < plan->item_count; item++)
                if (!bound_add(digits, fold_item_period(machine, plan, &plan->item[item], axis)))
                    return false;
        }
    }
    return true;
}

/* The digits by which it differs how far a plan's messages climb, or with whom they queue. */
static void tier_keep(const struct fold_input *part, const struct plan *plan,
                      const struct level *level, uint32_t tier, uint32_t axis,
                      struct digits *digits)
{
    const struct machine *machine = part->machine;
    uint32_t const below = level_box_length(machine, level, (int32_t)tier - 1, axis);
    if (level_tier_queues(level, tier)) {
        keep(digits, 1, level_tier_period(machine, level, tier, axis));
        return;
    }
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        if (at->axis == axis && at->stride * at->size > below) keep(digits, at->stride, below);
    }
}

static void plan_keep(const struct fold_input *part, const struct plan *plan, uint32_t axis,
                      struct digits *digits)
{
    const struct machine *machine = part->machine;
    for (uint32_t index = 0; index < machine->level_count; index++)
        for (uint32_t tier = fold_tiers_below(machine, index, plan); tier-- > 0;)
            tier_keep(part, plan, &machine->level[index], tier, axis, digits);
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        if (at->axis != axis) continue;
        for (uint32_t item = 0; item < plan->item_count; item++)
            keep(digits, at->stride, fold_item_period(machine, plan, &plan->item[item], axis));
    }
}

/* Displacements carry from digit to digit: below what is kept of a dimension all of it is. */
static bool carries_keep(const struct fold_input *part, uint32_t axis, struct digits *digits)
{
    bool more = false;
    for (uint32_t i = 0; i < part->program->plan_count; i++) {
        const struct group *group = &part->program->plans[i].group;
        if (fold_input_leaves_out(part, i)) continue;
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            const struct group_dimension *at = &group->dimension[d];
            bool above = false;
            for (uint32_t k = digits->count; at->axis == axis && k-- > 0;) {
                if (digits->bound[k] < at->stride || digits->bound[k] >= at->stride * at->size)
                    continue;
                more = more || (above && !digits->kept[k]);
                digits->kept[k] = above = above || digits->kept[k];
            }
        }
    }
    return more;
}

/* What only periods are asked about: the grid, links to hosts, sums in switches, and levels that
 * end within the axis. */
static bool has_digits(const struct fold_input *part, uint32_t axis)
{
    const struct machine *machine = part->machine;
    const struct program *program = part->program;
    if (machine->axis_level[axis] == LEVEL_NONE || program->copy_count > 0) return false;
    for (uint32_t index = 0; index < machine->level_count; index++) {
        const struct level *level = &machine->level[index];
        uint32_t const box = level_box_length(machine, level, (int32_t)level->tier_count - 1, axis);
        if (box > 1 && box < machine->shape[axis]) return false;
    }
    for (uint32_t i = 0; i < program->plan_count; i++)
        if (!fold_input_leaves_out(part, i) && fold_is_tree(&program->plans[i])) return false;
    return true;
}

bool fold_digits(const struct fold_input *part, uint32_t axis,
                 struct fold_run ret_run[FOLD_RUNS_MAX], uint32_t *ret_run_count)
{
    const struct program *program = part->program;
    struct digits digits;
    if (!has_digits(part, axis) || !bounds_find(part, axis, &digits)) return false;
    uint32_t stride;
    uint32_t const roles = program_roles_along(program, axis, &stride);
    if (roles > 1) keep(&digits, stride, stride * roles);
    keep(&digits, 1, fold_pairs_period(part, axis));
    for (uint32_t i = 0; i < program->plan_count; i++)
        if (!fold_input_leaves_out(part, i)) plan_keep(part, &program->plans[i], axis, &digits);
    while (carries_keep(part, axis, &digits)) continue;
    *ret_run_count = 0;
    for (uint32_t i = 0; i < digits.count; i++) {
        if (!digits.kept[i]) continue;
        if (i == 0 || !digits.kept[i - 1]) {
            if (*ret_run_count == FOLD_RUNS_MAX) return false;
            ret_run[(*ret_run_count)++] = (struct fold_run){.stride = digits.bound[i], .size = 1};
        }
        ret_run[*ret_run_count - 1].size *= digits.bound[i + 1] / digits.bound[i];
    }
    return true;
}
