/* Where pipeline stages may lie. */
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"

enum status mesh_stages_check(const struct machine *machine, const struct mesh *mesh,
                              struct error *reterr)
{
    const struct mesh_axis *axis = &mesh->axis[MESH_PP];
    const struct group *group = &axis->group;
    bool nested = group->dimension_count == 2;
    for (uint32_t d = 0; d < group->dimension_count; d++)
        nested = nested && group->dimension[d].switched;
    if (group->dimension_count > 1 && !nested)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages over %u axes of the machine are modelled on two levels of "
                         "switches, such as [\"node\", \"gpu:4\"]; else name one axis or a part of "
                         "one",
                         group->dimension_count);
    if (nested && group->dimension[0].axis < group->dimension[1].axis)
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "stages that follow each other lie next to each other: the outer level "
                         "is named first, %s and then %s",
                         group->dimension[1].name, group->dimension[0].name);
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        if (part->size == 1 || !machine_is_meshed(machine, part->axis)) continue;
        return error_set(reterr, STATUS_UNSUPPORTED, "/mesh/pp",
                         "a stage that sends to the next has one of its links along %s (no switch "
                         "joins the GPUs of %s), which is not modelled; put pp on \"node\"",
                         machine_axis_name(machine, part->axis), machine->chip.title);
    }
    return STATUS_OK;
}
