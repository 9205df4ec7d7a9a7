/* Where pipeline stages may lie. */
#include "sim/mesh/mesh.h"

enum status mesh_stages_check(const struct mesh *mesh, struct error *reterr)
{
    const struct group *group = &mesh->axis[MESH_PP].group;
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
    return STATUS_OK;
}
