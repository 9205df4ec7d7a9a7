#include "sim/report/timeline_peers.h"

#include <stdio.h>

const char *timeline_coordinates(const struct machine *machine, uint32_t chip,
                                 char text[TIMELINE_COORDINATES_BYTES])
{
    uint32_t at[MACHINE_AXES_MAX];
    int used = 0;
    machine_coordinates(machine, chip, at);
    for (uint32_t i = 0; i < machine->axis_count; i++)
        used += snprintf(text + used, (size_t)(TIMELINE_COORDINATES_BYTES - used), "%c%u",
                         i > 0 ? ',' : '(', at[i]);
    (void)snprintf(text + used, (size_t)(TIMELINE_COORDINATES_BYTES - used), ")");
    return text;
}

/* How far groups of a plan reach along an axis: coordinates below the next multiple of it. */
static uint32_t block_of(const struct group *group, const struct machine *machine, uint32_t axis)
{
    uint32_t block = 1;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        uint32_t const reach = dimension->size * dimension->stride;
        if (dimension->axis == axis && reach > block) block = reach;
    }
    return block > 1 ? block : machine->shape[axis];
}

/* The chip that lies to `shown` as `chip` does to `at`. */
static uint32_t moved(const struct machine *machine, const struct group *group, uint32_t chip,
                      uint32_t at, uint32_t shown)
{
    uint32_t of_chip[MACHINE_AXES_MAX], of_at[MACHINE_AXES_MAX], of_shown[MACHINE_AXES_MAX];
    if (chip == trace_no_chip) return chip;
    machine_coordinates(machine, chip, of_chip);
    machine_coordinates(machine, at, of_at);
    machine_coordinates(machine, shown, of_shown);
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        if (of_shown[axis] == of_at[axis]) continue;
        int64_t const block = block_of(group, machine, axis);
        int64_t const inside = (int64_t)of_shown[axis] % block + of_chip[axis] - of_at[axis];
        of_chip[axis] = of_shown[axis] - (uint32_t)(of_shown[axis] % block) +
                        (uint32_t)((inside % block + block) % block);
    }
    return machine_chip_at(machine, of_chip);
}

struct timeline_ends timeline_ends_of(const struct report_input *input,
                                      const struct trace_record *record,
                                      const struct program_op *op, uint32_t shown)
{
    static const struct group nobody;
    bool const travels = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
    const struct group *group = travels ? &input->program->plans[op->index].group : &nobody;
    return (struct timeline_ends){
        .from = moved(input->machine, group, record->from, record->at, shown),
        .to = moved(input->machine, group, record->to, record->at, shown),
    };
}

bool timeline_lie_alike(const struct machine *machine, uint32_t from, uint32_t to,
                        uint32_t other_from, uint32_t other_to)
{
    uint32_t at[4][MACHINE_AXES_MAX];
    machine_coordinates(machine, from, at[0]);
    machine_coordinates(machine, to, at[1]);
    machine_coordinates(machine, other_from, at[2]);
    machine_coordinates(machine, other_to, at[3]);
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        if (at[1][axis] - at[0][axis] != at[3][axis] - at[2][axis]) return false;
    return true;
}
