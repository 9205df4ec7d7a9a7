#include "sim/measure/measure_group.h"

#include <stdio.h>
#include <string.h>

#include "sim/mesh/mesh.h"
#include "sim/mesh/mesh_part.h"

static enum status part_add(const struct machine *machine, const char *text, const char *where,
                            struct group *group, struct error *reterr)
{
    struct mesh_part_text part;
    STATUS_TRY(mesh_part_parse(text, machine, where, &part, reterr));
    const char *name = machine_axis_name(machine, part.axis);
    uint32_t const length = machine->shape[part.axis];
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (group->dimension[d].axis == part.axis)
            return error_set(reterr, STATUS_INVALID, where, "%s is named twice", name);
    if (length % part.size != 0)
        return error_set(reterr, STATUS_INVALID, where,
                         "groups of %u do not lie evenly on %s, whose length is %u; the nearest "
                         "that do are %s:%u",
                         part.size, name, length, name, mesh_part_divisor(length, part.size));
    if (part.size == 1) return STATUS_OK;
    group->dimension[group->dimension_count++] =
        mesh_dimension(machine, &(struct mesh_part){part.axis, part.size, 1});
    return STATUS_OK;
}

/* All axes; of the farthest network first, so that ranks of a node are neighbours. */
static void whole_machine(const struct machine *machine, struct group *group)
{
    for (uint32_t level = machine->level_count; level-- > 0;)
        for (uint32_t axis = 0; axis < machine->axis_count; axis++)
            if (machine->axis_level[axis] == level && machine->shape[axis] > 1)
                group->dimension[group->dimension_count++] =
                    mesh_dimension(machine, &(struct mesh_part){axis, machine->shape[axis], 1});
    for (uint32_t axis = 0; axis < machine->axis_count; axis++)
        if (machine->axis_level[axis] == LEVEL_NONE && machine->shape[axis] > 1)
            group->dimension[group->dimension_count++] =
                mesh_dimension(machine, &(struct mesh_part){axis, machine->shape[axis], 1});
}

enum status measure_group(const struct machine *machine, const char *axes, const char *where,
                          struct group *ret_group, struct error *reterr)
{
    struct group group = {.dimension_count = 0};
    if (axes == NULL) whole_machine(machine, &group);
    for (const char *at = axes; at != NULL;) {
        char part[MEASURE_AXES_BYTES];
        size_t const length = strcspn(at, ",");
        if (length >= sizeof part)
            return error_set(reterr, STATUS_INVALID, where, "\"%.40s...\" names no axis", at);
        memcpy(part, at, length);
        part[length] = '\0';
        STATUS_TRY(part_add(machine, part, where, &group, reterr));
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    if (group.dimension_count == 0)
        return error_set(reterr, STATUS_INVALID, where,
                         "the group has one rank; a collective needs two");
    *ret_group = group;
    return STATUS_OK;
}

const char *measure_group_text(const struct machine *machine, const struct group *group,
                               char buffer[MEASURE_AXES_BYTES])
{
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t d = 0; d < group->dimension_count && used < MEASURE_AXES_BYTES; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        bool const whole = dimension->size == machine->shape[dimension->axis];
        used += (size_t)snprintf(buffer + used, MEASURE_AXES_BYTES - used, "%s%s",
                                 used == 0 ? "" : ",", machine_axis_name(machine, dimension->axis));
        if (!whole && used < MEASURE_AXES_BYTES)
            used +=
                (size_t)snprintf(buffer + used, MEASURE_AXES_BYTES - used, ":%u", dimension->size);
    }
    return buffer;
}
