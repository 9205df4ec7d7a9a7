#include "sim/fold/fold.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/fold/fold_input.h"

static bool item_covers(const struct plan_item *item, uint32_t dimension)
{
    return item->flat || item->dimension == dimension;
}

uint32_t fold_item_period(const struct machine *machine, const struct plan *plan,
                          const struct plan_item *item, uint32_t axis)
{
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *dimension = &plan->group.dimension[d];
        bool const tells = item_covers(item, d) || ((item->at_root | item->off_root) >> d & 1) != 0;
        if (dimension->axis != axis || !tells) continue;
        uint32_t shift = plan_item_shift(plan, item, d);
        /* Where antipodal messages go by the sender's place, neighbours differ. */
        if ((plan_item_balance(machine, plan, item).by_sender >> axis & 1) != 0)
            shift = units_common_multiple(shift, 2);
        return shift == 1 ? 1 : shift * dimension->stride;
    }
    return 1;
}

uint32_t fold_pairs_period(const struct fold_input *part, uint32_t axis)
{
    const struct program *program = part->program;
    const struct group_dimension *first = NULL;
    uint32_t stride = 0, period = 1;
    bool mixed = program_roles_along(program, axis, &stride) > 1;
    if (!machine_is_meshed(part->machine, axis)) return 1;
    for (uint32_t i = 0; i < program->plan_count; i++) {
        const struct group *group = &program->plans[i].group;
        if (fold_input_leaves_out(part, i)) continue;
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            const struct group_dimension *at = &group->dimension[d];
            uint32_t const extent = at->size * at->stride;
            if (at->axis != axis) continue;
            if (first == NULL) first = at;
            mixed = mixed || at->size != first->size || at->stride != first->stride;
            if (extent < part->machine->shape[axis]) period = units_common_multiple(period, extent);
        }
    }
    return mixed ? period : 1;
}

static uint32_t groups_period(const struct fold_input *part, uint32_t axis)
{
    uint32_t period = fold_pairs_period(part, axis);
    for (uint32_t i = 0; i < part->program->plan_count; i++) {
        const struct plan *plan = &part->program->plans[i];
        if (fold_input_leaves_out(part, i)) continue;
        for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
            const struct group_dimension *dimension = &plan->group.dimension[d];
            if (dimension->axis == axis && !dimension->ring && !dimension->switched)
                period = units_common_multiple(period, dimension->size * dimension->stride);
        }
        for (uint32_t item = 0; item < plan->item_count; item++)
            period = units_common_multiple(
                period, fold_item_period(part->machine, plan, &plan->item[item], axis));
    }
    return period;
}

/* Whether messages of an item go between members that differ along a dimension. */
static bool item_crosses(const struct plan *plan, const struct plan_item *item, uint32_t dimension)
{
    return plan->kind == COLLECTIVE_PERMUTE || item_covers(item, dimension);
}

/* Whether they may use a level: it, or one above, serves such a dimension. */
static bool item_uses(const struct machine *machine, const struct plan *plan,
                      const struct plan_item *item, uint32_t level)
{
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        uint32_t const highest = machine->axis_level[plan->group.dimension[d].axis];
        if (item_crosses(plan, item, d) && highest != LEVEL_NONE && level <= highest) return true;
    }
    return false;
}

/* Whether units of a tier hold all members that they go between. */
static bool tier_holds(const struct machine *machine, uint32_t level, uint32_t tier,
                       const struct plan *plan, const struct plan_item *item)
{
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        uint32_t const box =
            level_box_length(machine, &machine->level[level], (int32_t)tier, at->axis);
        if (item_crosses(plan, item, d) && box % (at->size * at->stride) != 0) return false;
    }
    return true;
}

uint32_t fold_tiers_below(const struct machine *machine, uint32_t level, const struct plan *plan)
{
    uint32_t const all = machine->level[level].tier_count;
    uint32_t used = 0;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        uint32_t tier = 0;
        if (!item_uses(machine, plan, &plan->item[i], level)) continue;
        while (tier + 1 < all && !tier_holds(machine, level, tier, plan, &plan->item[i])) tier++;
        used = tier + 1 > used ? tier + 1 : used;
    }
    return used;
}

/* The tiers of each level that messages may use. How high they climb is asked where plans are left
 * out; else all tiers of a level count. */
static void tiers_used(const struct fold_input *part, uint32_t ret_count[LEVELS_MAX])
{
    const struct machine *machine = part->machine;
    for (uint32_t index = 0; index < LEVELS_MAX; index++) ret_count[index] = 0;
    for (uint32_t i = 0; i < part->program->plan_count; i++) {
        if (fold_input_leaves_out(part, i)) continue;
        for (uint32_t index = 0; index < machine->level_count; index++) {
            uint32_t count = fold_tiers_below(machine, index, &part->program->plans[i]);
            if (count > 0 && part->left_out == NULL) count = machine->level[index].tier_count;
            ret_count[index] = count > ret_count[index] ? count : ret_count[index];
        }
    }
}

/* The period that the levels in use allow: units go to units. A unit and the period must not
 * overlap in part, or units could not be told by what is replayed of them. */
static uint32_t levels_period(const struct machine *machine, const uint32_t used[LEVELS_MAX],
                              uint32_t axis, uint32_t period)
{
    uint32_t const length = machine->shape[axis];
    for (uint32_t index = 0; index < LEVELS_MAX; index++) {
        if (used[index] == 0) continue;
        period = level_period_join(machine, &machine->level[index], used[index], axis, period);
    }
    return length % period == 0 ? period : length;
}

/* A shift that tells units apart has to take whole groups to groups, or be one within each. */
static uint32_t blocks_period(const struct fold_input *part, uint32_t axis, uint32_t period)
{
    for (uint32_t i = 0; i < part->program->plan_count; i++) {
        const struct group *group = &part->program->plans[i].group;
        if (fold_input_leaves_out(part, i)) continue;
        for (uint32_t d = 0; d < group->dimension_count; d++) {
            const struct group_dimension *dimension = &group->dimension[d];
            uint32_t const extent = dimension->size * dimension->stride;
            if (dimension->axis != axis || extent % period == 0 || period % extent == 0) continue;
            period = units_common_multiple(period, extent);
        }
    }
    uint32_t const length = part->machine->shape[axis];
    return length % period == 0 ? period : length;
}

/* The same for links to the host, where copies use them and chips share them. */
static uint32_t hosts_period(const struct machine *machine, const struct program *program,
                             uint32_t axis, uint32_t period)
{
    uint32_t const length = machine->shape[axis], box = machine->host.box[axis];
    if (program->copy_count == 0 || box <= 1) return period;
    period = units_common_multiple(period, box);
    return length % period == 0 ? period : length;
}

/* Chips of a pipeline along an axis, which have roles of their own; 1 where they do not differ. */
static uint32_t roles_extent(const struct machine *machine, const struct program *program,
                             uint32_t axis)
{
    uint32_t stride;
    uint32_t const count = program_roles_along(program, axis, &stride);
    if (count == 1) return 1;
    SIM_ASSERT(machine->shape[axis] % (count * stride) == 0);
    return count * stride;
}

/* Pipeline ranks along an axis; 1: they do not lie there. */
static uint32_t roles_count(const struct program *program, uint32_t axis)
{
    uint32_t ignored;
    return program_roles_along(program, axis, &ignored);
}

static void axis_period(const struct fold_input *part, const struct fold_overrides *overrides,
                        uint32_t axis, struct fold *fold)
{
    const struct machine *machine = part->machine;
    const struct program *program = part->program;
    uint32_t const length = machine->shape[axis];
    if (length == 1) {
        fold->reason[axis] = "an axis of one chip";
        return;
    }
    bool const switched = machine->axis_level[axis] != LEVEL_NONE;
    if (!switched && !machine->wrap[axis]) {
        /* Along the other axes everything repeats: shifted links go on next to themselves. */
        fold->reason[axis] = machine_twists(machine, axis)
                                 ? "not folded: the links around it are shifted (twisted)"
                                 : "not folded: a line, whose ends are unlike its middle";
        return;
    }
    uint32_t const roles = roles_extent(machine, program, axis);
    uint32_t const groups = units_common_multiple(groups_period(part, axis), roles);
    SIM_ASSERT(length % groups == 0);
    uint32_t used[LEVELS_MAX];
    tiers_used(part, used);
    uint32_t allowed = groups;
    for (uint32_t before = 0; before != allowed;) {
        before = allowed;
        allowed = levels_period(machine, used, axis, allowed);
        allowed = blocks_period(part, axis, allowed);
        allowed = hosts_period(machine, program, axis, allowed);
    }
    if (allowed != groups)
        fold->reason[axis] = allowed == length
                                 ? "not folded: one unit of switches or hosts spans it"
                                 : "folded to the period of its switches or hosts";
    else if (allowed == roles && roles > 1)
        fold->reason[axis] = allowed == length ? "not folded: one pipeline spans it"
                                               : "folded to the period of its pipeline stages";
    else
        fold->reason[axis] = allowed == 1 ? "folded: every chip along it is alike"
                             : program_is_drawn(program, axis)
                                 ? "not folded: each rank along it has its own tokens to send"
                             : allowed == length
                                 ? "not folded: one group of unlike members spans it"
                                 : "folded to the period of its smaller groups";
    for (uint32_t period = allowed; period <= length; period += allowed) {
        if (length % period != 0 || !fold_overrides_repeat(machine, overrides, axis, period))
            continue;
        fold->period[axis] = period;
        if (period == allowed) return;
        fold->reason[axis] = period == length ? "not folded: an overridden chip or link breaks it"
                                              : "folded to the period of the overrides";
        return;
    }
}

/* A period is a run of digits, from the lowest on. */
static void runs_set(struct fold *fold, uint32_t axis)
{
    fold->run_count[axis] = fold->period[axis] > 1 ? 1 : 0;
    fold->run[axis][0] = (struct fold_run){.stride = 1, .size = fold->period[axis]};
}

static void axis_fold(const struct fold_input *part, const struct fold_overrides *overrides,
                      uint32_t axis, struct fold *fold)
{
    struct fold_run run[FOLD_RUNS_MAX];
    uint32_t run_count = 0, kept = 1;
    axis_period(part, overrides, axis, fold);
    runs_set(fold, axis);
    if (!fold_overrides_even(overrides) || !fold_digits(part, axis, run, &run_count)) return;
    for (uint32_t i = 0; i < run_count; i++) kept *= run[i].size;
    if (kept >= fold->period[axis]) return;
    fold->period[axis] = kept;
    memcpy(fold->run[axis], run, run_count * sizeof *run);
    fold->run_count[axis] = run_count;
    fold->reason[axis] = kept == 1 ? "folded: every chip along it is alike"
                         : kept == roles_count(part->program, axis)
                             ? "folded to its pipeline ranks: chips of one are alike"
                             : "folded along its groups that are alike";
}

/* Classes of the replayed chips, out of those of the whole machine. */
static enum status classes_fold(struct arena *arena, const struct machine *machine,
                                const struct fold_overrides *overrides, struct fold *fold,
                                struct error *reterr)
{
    void *chips = NULL, *links = NULL;
    STATUS_TRY(arena_try(arena, fold->chip_count, sizeof(uint16_t), &chips, reterr));
    STATUS_TRY(arena_try(arena, (uint64_t)fold->chip_count * MACHINE_PORTS_MAX, 1, &links, reterr));
    for (uint32_t replayed = 0; replayed < fold->chip_count; replayed++) {
        uint64_t const chip = fold_machine_chip(fold, machine, replayed);
        if (overrides->chip_class != NULL)
            ((uint16_t *)chips)[replayed] = overrides->chip_class[chip];
        if (overrides->link_class == NULL) continue;
        for (uint64_t port = 0; port < MACHINE_PORTS_MAX; port++) {
            ((uint8_t *)links)[(uint64_t)replayed * MACHINE_PORTS_MAX + port] =
                overrides->link_class[chip * MACHINE_PORTS_MAX + port];
        }
    }
    fold->chip_class = overrides->chip_class != NULL ? chips : NULL;
    fold->link_class = overrides->link_class != NULL ? links : NULL;
    return STATUS_OK;
}

/* The machine folded for a part alone, out of what all parts have in common. */
static void part_fold(const struct fold_input *part, const struct fold_overrides *overrides,
                      struct fold *fold)
{
    fold->chip_count = 1;
    for (uint32_t axis = 0; axis < fold->axis_count; axis++) {
        axis_fold(part, overrides, axis, fold);
        fold->chip_count *= fold->period[axis];
    }
}

bool fold_is_tree(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->item[i].primitive->network != PRIMITIVE_NETWORK_NONE) return true;
    return false;
}

/* Whether what one fold replays for a chip tells what the other does. */
static bool runs_hold(const struct fold *fold, const struct fold *other, uint32_t axis)
{
    for (uint32_t i = 0; i < other->run_count[axis]; i++) {
        const struct fold_run *wanted = &other->run[axis][i];
        bool held = false;
        for (uint32_t k = 0; k < fold->run_count[axis]; k++) {
            const struct fold_run *run = &fold->run[axis][k];
            held = held || (wanted->stride % run->stride == 0 &&
                            run->stride * run->size % (wanted->stride * wanted->size) == 0);
        }
        if (!held) return false;
    }
    return true;
}

/* The fold of pipelines before the first plan that tells more of them apart than their ranks. */
static enum status prefix_build(struct arena *arena, const struct machine *machine,
                                const struct program *program,
                                const struct fold_overrides *overrides, struct fold *fold,
                                struct error *reterr)
{
    void *prefix = NULL, *refining = NULL, *alone = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *fold, &prefix, reterr));
    STATUS_TRY(arena_try(arena, program->plan_count, sizeof(bool), &refining, reterr));
    STATUS_TRY(arena_try(arena, program->plan_count, sizeof(bool), &alone, reterr));
    bool *refines = refining, *left_out = alone;
    memset(left_out, true, program->plan_count * sizeof *left_out);
    struct fold_input const one = {machine, program, left_out}, all = {machine, program, refines};
    struct fold least = *fold, trial = *fold;
    part_fold(&one, overrides, &least);
    for (uint32_t i = 0; i < program->plan_count; i++) {
        left_out[i] = false;
        part_fold(&one, overrides, &trial);
        refines[i] = trial.chip_count > least.chip_count || fold_is_tree(&program->plans[i]);
        left_out[i] = true;
    }
    part_fold(&all, overrides, &trial);
    trial.refines = refines;
    for (uint32_t axis = 0; axis < fold->axis_count; axis++)
        if (!runs_hold(fold, &trial, axis)) return STATUS_OK;
    if (trial.chip_count == fold->chip_count) return STATUS_OK;
    fold->prefix = memcpy(prefix, &trial, sizeof trial);
    return STATUS_OK;
}

enum status fold_build(struct arena *arena, const struct machine *machine,
                       const struct program *program, bool full, struct fold *ret_fold,
                       struct error *reterr)
{
    struct fold fold = {.axis_count = machine->axis_count, .chip_count = 1};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, (uint64_t)machine->chip_override_count + 1,
                         sizeof *fold.chip_classes, &memory, reterr));
    fold.chip_classes = memory;
    fold.chip_classes[0] = (struct fold_chip_class){.math_ppm = PPM_ONE, .hbm_ppm = PPM_ONE};
    fold.chip_class_count = 1;
    fold.link_classes[0] = (struct fold_link_class){.bytes_per_s = machine->chip.ici_bytes_per_s,
                                                    .latency_ps = machine->chip.hop_latency_ps};
    fold.link_class_count = 1;
    struct fold_overrides overrides = {0};
    STATUS_TRY(fold_overrides_find(arena, machine, &fold, &overrides, reterr));
    /* Between chips at least 1 ps must pass, or a fold could not order what touches what. */
    bool timeless = false;
    for (uint32_t i = 0; machine->grid_axis_count > 0 && i < fold.link_class_count; i++)
        timeless = timeless || fold.link_classes[i].latency_ps <= 0;
    struct fold_input const whole = {machine, program, NULL};
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        fold.shape[axis] = machine->shape[axis];
        fold.period[axis] = machine->shape[axis];
        if (axis >= machine->axis_count) continue;
        runs_set(&fold, axis);
        if (full) {
            fold.reason[axis] = "not folded: a full run was asked for";
        } else if (timeless) {
            fold.reason[axis] = "not folded: a link without latency";
        } else {
            axis_fold(&whole, &overrides, axis, &fold);
        }
        fold.chip_count *= fold.period[axis];
    }
    if (overrides.chip_class != NULL || overrides.link_class != NULL)
        STATUS_TRY(classes_fold(arena, machine, &overrides, &fold, reterr));
    if (fold_overrides_even(&overrides) && !full && !timeless && program->role_count > 1 &&
        program->copy_count == 0)
        STATUS_TRY(prefix_build(arena, machine, program, &overrides, &fold, reterr));
    *ret_fold = fold;
    return STATUS_OK;
}

uint32_t fold_along(const struct fold *fold, uint32_t axis, uint32_t at)
{
    uint32_t replayed = 0, unit = 1;
    for (uint32_t i = 0; i < fold->run_count[axis]; i++) {
        const struct fold_run *run = &fold->run[axis][i];
        replayed += at / run->stride % run->size * unit;
        unit *= run->size;
    }
    return replayed;
}

uint32_t fold_lowest(const struct fold *fold, uint32_t axis, uint32_t replayed)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < fold->run_count[axis]; i++) {
        const struct fold_run *run = &fold->run[axis][i];
        at += replayed % run->size * run->stride;
        replayed /= run->size;
    }
    return at;
}

void fold_coordinates(const struct fold *fold, uint32_t replayed, uint32_t ret_at[MACHINE_AXES_MAX])
{
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;) {
        ret_at[axis] = fold_lowest(fold, axis, replayed % fold->period[axis]);
        replayed /= fold->period[axis];
    }
}

uint32_t fold_machine_chip(const struct fold *fold, const struct machine *machine,
                           uint32_t replayed)
{
    uint32_t at[MACHINE_AXES_MAX];
    fold_coordinates(fold, replayed, at);
    return machine_chip_at(machine, at);
}

static uint32_t replayed_at(const struct fold *fold, const uint32_t at[MACHINE_AXES_MAX])
{
    uint32_t replayed = 0;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        replayed = replayed * fold->period[axis] + fold_along(fold, axis, at[axis]);
    return replayed;
}

uint32_t fold_replayed_chip(const struct fold *fold, const struct machine *machine, uint32_t chip)
{
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(machine, chip, at);
    return replayed_at(fold, at);
}

uint32_t fold_neighbour(const struct fold *fold, const struct machine *machine, uint32_t replayed,
                        uint32_t port)
{
    uint32_t at[MACHINE_AXES_MAX], next[MACHINE_AXES_MAX];
    fold_coordinates(fold, replayed, at);
    machine_neighbour(machine, at, port, next);
    return replayed_at(fold, next);
}
