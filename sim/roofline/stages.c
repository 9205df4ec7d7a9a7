#include "sim/roofline/stages.h"

#include "sim/roofline/unlike.h"
#include "sim/roofline/wire.h"

/* Neighbours on the grid have a link each way, which strided pipelines share. On a level what goes
 * forward and what goes back leave a rank by the same cables, unless it is the first or the last.
 */
static double neighbours_s(const struct machine *machine, const struct group_dimension *dimension,
                           double bytes)
{
    uint32_t const ways = dimension->size > 2 ? 2 : 1;
    if (dimension->switched) return ways * bytes / wire_step_rate(machine, dimension);
    return dimension->stride * bytes / unlike_fastest_link(machine, dimension->axis, NULL);
}

void stages_evaluate(const struct machine *machine, const struct workload_counts *counts,
                     struct roofline *roofline)
{
    const struct group *group = &counts->role[MESH_PP].group;
    if (counts->stage_bytes == 0) return;
    SIM_ASSERT(group->dimension_count == 1); /* Or workload_lower() refuses it. */
    const struct group_dimension *dimension = &group->dimension[0];
    double *busy_s = &roofline->ici_s[dimension->axis];
    roofline->stages_s = neighbours_s(machine, dimension, counts->stage_bytes);
    if (roofline->stages_s > *busy_s) *busy_s = roofline->stages_s;
}
