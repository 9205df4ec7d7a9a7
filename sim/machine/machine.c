#include "sim/machine/machine.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/parse_uint.h"
#include "sim/base/units.h"
#include "sim/machine/network.h"
#include "sim/machine/overrides.h"
#include "sim/machine/shape.h"

const char *const machine_tier_names[] = {
#define X(name, text, cable) text,
    MACHINE_TIER_TABLE(X)
#undef X
        NULL};

static const char *const grid_port_names[] = {"x+", "x-", "y+", "y-", "z+", "z-"};

const char *machine_axis_name(const struct machine *machine, uint32_t axis)
{
    SIM_ASSERT(axis < machine->axis_count);
    return machine->axis_name[axis];
}

const char *machine_port_name(const struct machine *machine, uint32_t port)
{
    SIM_ASSERT(port < MACHINE_PORTS_MAX);
    if (port < MACHINE_GRID_PORTS) return grid_port_names[port];
    if (port >= MACHINE_HOST_PORT) return machine->host.port_name[port - MACHINE_HOST_PORT];
    uint32_t const behind = port - MACHINE_GRID_PORTS;
    uint32_t const level = behind / 2 / LEVEL_TIERS_MAX, tier = behind / 2 % LEVEL_TIERS_MAX;
    SIM_ASSERT(level < machine->level_count && tier < machine->level[level].tier_count);
    return machine->level[level].tier[tier].port_name[behind % 2];
}

uint32_t machine_level_between(const struct machine *machine, const uint32_t a[MACHINE_AXES_MAX],
                               const uint32_t b[MACHINE_AXES_MAX])
{
    bool in_grid = machine->grid_axis_count > 0;
    for (uint32_t axis = machine->grid_axis_count; axis < machine->axis_count; axis++)
        in_grid = in_grid && a[axis] == b[axis];
    if (in_grid) return LEVEL_NONE;
    for (uint32_t level = 0; level < machine->level_count; level++)
        if (level_meeting_tier(&machine->level[level], a, b) < machine->level[level].tier_count)
            return level;
    return LEVEL_NONE;
}

uint32_t machine_chip_at(const struct machine *machine, const uint32_t at[MACHINE_AXES_MAX])
{
    uint32_t chip = 0;
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        SIM_ASSERT(at[axis] < machine->shape[axis]);
        chip = chip * machine->shape[axis] + at[axis];
    }
    return chip;
}

void machine_coordinates(const struct machine *machine, uint32_t chip,
                         uint32_t ret_at[MACHINE_AXES_MAX])
{
    SIM_ASSERT(chip < machine->chip_count);
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;) {
        ret_at[axis] = chip % machine->shape[axis];
        chip /= machine->shape[axis];
    }
}

void machine_link(const struct machine *machine, uint32_t chip, uint32_t port,
                  uint64_t *ret_bytes_per_s, int64_t *ret_latency_ps)
{
    *ret_bytes_per_s = machine->chip.ici_bytes_per_s;
    *ret_latency_ps = machine->chip.hop_latency_ps;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        if (machine_chip_at(machine, link->from) != chip ||
            machine_port_between(machine, link->from, link->to) != port)
            continue;
        machine_override_rate(machine, link, ret_bytes_per_s, ret_latency_ps);
    }
}

void machine_chip_ppm(const struct machine *machine, uint32_t chip, uint32_t *ret_math_ppm,
                      uint32_t *ret_hbm_ppm)
{
    uint32_t const entry = machine->chip_override_count == 0 ? 0 : machine->chip_entry[chip];
    *ret_math_ppm = entry == 0 ? PPM_ONE : machine->chips[entry - 1].math_ppm;
    *ret_hbm_ppm = entry == 0 ? PPM_ONE : machine->chips[entry - 1].hbm_ppm;
}

/* The chip, and the shape of the product if the plan names one. */
static enum status choose_chip(struct arena *arena, const struct machine_plan *plan,
                               struct machine *machine, struct shape *ret_shape,
                               struct error *reterr)
{
    static const char where[] = "/machine/chip";
    const char *units = NULL;
    STATUS_TRY(machine_chip(arena, plan, &machine->chip, &units, reterr));
    if (units == NULL) return STATUS_OK;
    uint64_t count = 0;
    (void)parse_uint(units, MACHINE_CHIPS_MAX, &count);
    machine->product = arena_text(arena, plan->chip);
    if (machine->product == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a name");
    return shape_of_product(&machine->chip, count, plan->chip, where, ret_shape, reterr);
}

static enum status choose_shape(const struct machine_plan *plan, struct machine *machine,
                                struct shape *shape, struct error *reterr)
{
    static const char where[] = "/machine/shape";
    struct shape const product = *shape;
    char text[SHAPE_TEXT_BYTES];
    if (plan->shape != NULL) {
        STATUS_TRY(shape_parse(plan->shape, where, shape, reterr));
        if (machine->product != NULL && shape_chip_count(shape) != shape_chip_count(&product)) {
            return error_set(
                reterr, STATUS_INVALID, where, "%s has %s, %s has %llu; leave the shape out for %s",
                machine->product, counted(shape_chip_count(&product), "chip").text, plan->shape,
                (unsigned long long)shape_chip_count(shape), shape_text(text, &product));
        }
    } else if (machine->product == NULL) {
        return error_set(reterr, STATUS_INVALID, where,
                         "the chip %s needs a shape too, such as 4x4x4; or name a product, "
                         "such as v5p-128",
                         machine->chip.name);
    }
    uint64_t const chips = shape_chip_count(shape);
    if (chips > MACHINE_CHIPS_MAX) {
        return error_set(reterr, STATUS_LIMIT, where,
                         "%s has %llu chips, more than the limit of %u", shape_text(text, shape),
                         (unsigned long long)chips, MACHINE_CHIPS_MAX);
    }
    if (!plan->unrealisable) STATUS_TRY(shape_check(&machine->chip, shape, where, reterr));
    machine->axis_count = shape->axis_count;
    machine->grid_axis_count = shape->axis_count;
    for (uint32_t axis = 0; axis < shape->axis_count; axis++) {
        machine->shape[axis] = shape->length[axis];
        machine->axis_name[axis] = shape_axis_name(axis);
    }
    return STATUS_OK;
}

static void add_axis(struct machine *machine, const char *name, uint32_t length)
{
    machine->axis_name[machine->axis_count] = name;
    machine->shape[machine->axis_count++] = length;
}

static enum status choose_slices(const struct machine_plan *plan, struct machine *machine,
                                 struct error *reterr)
{
    if (plan->nodes != 0 || plan->gpus != 0) {
        return error_set(
            reterr, STATUS_INVALID, plan->nodes != 0 ? "/machine/nodes" : "/machine/gpus",
            "%s comes in slices of a grid; \"slices\" joins several over DCN", machine->chip.title);
    }
    if (plan->slices < 2) return STATUS_OK;
    if (machine->chip.network.nic_bytes_per_s == 0) {
        return error_set(reterr, STATUS_INVALID, "/machine/slices",
                         "nothing joins several slices: a host of %s has no NIC",
                         machine->chip.title);
    }
    add_axis(machine, "slice", plan->slices);
    return STATUS_OK;
}

/* GPUs of a node and nodes, or the node alone. */
static enum status choose_nodes(const struct machine_plan *plan, struct machine *machine,
                                struct error *reterr)
{
    const struct chip_network *network = &machine->chip.network;
    uint32_t const gpus = plan->gpus != 0 ? plan->gpus : network->node_chips;
    if (plan->shape != NULL) {
        return error_set(reterr, STATUS_INVALID, "/machine/shape",
                         "switches join %s, which have no shape; write \"nodes\", of %u GPUs each",
                         machine->chip.title, network->node_chips);
    }
    if (plan->slices != 0) {
        return error_set(reterr, STATUS_INVALID, "/machine/slices",
                         "%s comes in nodes; write \"nodes\"", machine->chip.title);
    }
    if (gpus > machine_gpus_max) {
        return error_set(reterr, STATUS_LIMIT, "/machine/gpus",
                         "%u GPUs in a node are more than %s joins, %u; write \"nodes\"", gpus,
                         network->link_name, machine_gpus_max);
    }
    add_axis(machine, "gpu", gpus);
    if (plan->nodes == 0) return STATUS_OK;
    if (network->nic_bytes_per_s == 0) {
        return error_set(reterr, STATUS_INVALID, "/machine/nodes",
                         "nothing joins several nodes: those of %s are modelled without a NIC; "
                         "leave \"nodes\" out for one of %s",
                         machine->chip.title, counted(gpus, "GPU").text);
    }
    add_axis(machine, "node", plan->nodes);
    return STATUS_OK;
}

static enum status count_chips(struct machine *machine, struct error *reterr)
{
    uint64_t chips = 1;
    for (uint32_t axis = 0; axis < machine->axis_count && chips <= MACHINE_CHIPS_MAX; axis++)
        chips *= machine->shape[axis];
    if (chips > MACHINE_CHIPS_MAX) {
        const char *where = machine->chip.kind == CHIP_GPU                   ? "/machine/nodes"
                            : machine->axis_count > machine->grid_axis_count ? "/machine/slices"
                                                                             : "/machine/shape";
        return error_set(reterr, STATUS_LIMIT, where,
                         "the machine would have %llu chips, more than the limit of %u",
                         (unsigned long long)chips, MACHINE_CHIPS_MAX);
    }
    machine->chip_count = (uint32_t)chips;
    return STATUS_OK;
}

/* All axes: the grid's, then those that switches serve. */
static enum status choose_axes(const struct machine_plan *plan, struct machine *machine,
                               struct shape *shape, struct error *reterr)
{
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        machine->shape[axis] = 1;
        machine->axis_name[axis] = "";
        machine->axis_level[axis] = LEVEL_NONE;
        machine->wrap_reason[axis] = "";
    }
    if (machine->chip.kind == CHIP_GPU) {
        STATUS_TRY(choose_nodes(plan, machine, reterr));
    } else {
        STATUS_TRY(choose_shape(plan, machine, shape, reterr));
        STATUS_TRY(choose_slices(plan, machine, reterr));
    }
    return count_chips(machine, reterr);
}

static const char *reason_by_rule(struct arena *arena, const struct chip *chip,
                                  const struct shape *shape, uint32_t axis)
{
    uint32_t const length = shape->length[axis];
    bool const wraps = shape_wraps(chip, shape, axis);
    uint32_t const edge = chip->pod.wrap_length;
    if (chip->pod.wrap_rule == CHIP_WRAP_FULL_AXIS) {
        return arena_format(arena,
                            wraps ? "ring: %s wraps on an axis of the pod's full length, %u"
                                  : "line: %s wraps only on an axis of the pod's full length, %u",
                            chip->title, edge);
    }
    if (wraps) {
        return arena_format(arena, "ring: whole cubes of %ux%ux%u, closed by optical switches",
                            edge, edge, edge);
    }
    return arena_format(arena, "line: a slice of %s wraps only if it is whole cubes of %ux%ux%u%s",
                        chip->title, edge, edge, edge, length % edge == 0 ? ", on every axis" : "");
}

static enum status choose_wrap(struct arena *arena, const struct machine_plan *plan,
                               const struct shape *shape, struct machine *machine,
                               struct error *reterr)
{
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        char where[32];
        int8_t const wish = plan->wrap[axis];
        (void)snprintf(where, sizeof where, "/machine/wrap/%s", shape_axis_name(axis));
        if (wish >= 0 && !plan->unrealisable) {
            return error_set(reterr, STATUS_INVALID, where,
                             "wraparound follows from the product and the shape; "
                             "\"unrealisable\": true permits to set it");
        }
        if (wish >= 0 && axis >= machine->grid_axis_count) {
            return error_set(reterr, STATUS_INVALID, where, "the machine has no axis %s; it has %u",
                             shape_axis_name(axis), machine->grid_axis_count);
        }
        if (axis >= machine->grid_axis_count) continue;
        machine->wrap[axis] = wish < 0 ? shape_wraps(&machine->chip, shape, axis) : wish == 1;
        if (machine->wrap[axis] && machine->shape[axis] < 3) {
            return error_set(reterr, STATUS_INVALID, where,
                             "axis %s of length %u cannot wrap: both directions would reach the "
                             "same neighbour; the shortest ring is 3",
                             shape_axis_name(axis), machine->shape[axis]);
        }
        if (wish < 0) {
            machine->wrap_reason[axis] = reason_by_rule(arena, &machine->chip, shape, axis);
            if (machine->wrap_reason[axis] == NULL)
                return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a text");
        } else {
            machine->wrap_reason[axis] =
                wish == 1 ? "ring: set by the scenario" : "line: set by the scenario";
        }
    }
    return STATUS_OK;
}

/* Links around a short axis are shifted by half of each long one. */
static enum status choose_twist(const struct machine_plan *plan, const struct shape *shape,
                                struct machine *machine, struct error *reterr)
{
    char text[SHAPE_TEXT_BYTES];
    if (!shape_may_twist(shape) || !shape_is_cubes(&machine->chip, shape)) {
        return error_set(reterr, STATUS_INVALID, "/machine/shape",
                         "%s cannot be twisted: only %s of whole cubes can, such as 4x4x8_twisted",
                         shape_text(text, shape), "k x k x 2k or k x 2k x 2k of v4p and v5p");
    }
    uint32_t least = UINT32_MAX;
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        if (shape->length[axis] < least) least = shape->length[axis];
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        if (plan->wrap[axis] >= 0) {
            return error_set(reterr, STATUS_INVALID, "/machine/wrap",
                             "the wraparound of a twisted torus follows from its shape");
        }
        if (shape->length[axis] != least) continue;
        machine->wrap[axis] = false;
        machine->wrap_reason[axis] = "line to rings' algorithms; its ends are joined, shifted by "
                                     "half of the long axes (twisted)";
        for (uint32_t other = 0; other < CHIP_AXES_MAX; other++)
            machine->twist[axis][other] = shape->length[other] == least ? 0 : least;
    }
    return STATUS_OK;
}

static enum status explain_switched(struct arena *arena, struct machine *machine,
                                    struct error *reterr)
{
    for (uint32_t axis = machine->grid_axis_count; axis < machine->axis_count; axis++) {
        const char *level = machine->level[machine->axis_level[axis]].name;
        machine->wrap_reason[axis] = !machine_lacks_switch(machine, axis)
                                         ? arena_format(arena, "switched: by %s, any to any", level)
                                     : machine->shape[axis] == 1
                                         ? "alone: nothing is joined"
                                         : arena_format(arena, "each to each: by %s", level);
        if (machine->wrap_reason[axis] == NULL)
            return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a text");
    }
    return STATUS_OK;
}

enum status machine_build(struct arena *arena, const struct machine_plan *plan,
                          struct machine *ret_machine, struct error *reterr)
{
    struct machine machine = {0};
    struct shape shape = {0, {1, 1, 1}, false};
    STATUS_TRY(choose_chip(arena, plan, &machine, &shape, reterr));
    STATUS_TRY(choose_axes(plan, &machine, &shape, reterr));
    STATUS_TRY(choose_wrap(arena, plan, &shape, &machine, reterr));
    if (shape.twisted) STATUS_TRY(choose_twist(plan, &shape, &machine, reterr));
    STATUS_TRY(network_build(arena, plan, &machine, reterr));
    host_build(&machine);
    STATUS_TRY(explain_switched(arena, &machine, reterr));
    STATUS_TRY(overrides_check_links(arena, plan, &machine, reterr));
    STATUS_TRY(overrides_check_chips(arena, plan->chips, plan->chip_count, &machine, reterr));
    *ret_machine = machine;
    return STATUS_OK;
}
