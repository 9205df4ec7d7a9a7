#include "sim/roofline/roofline_bounds.h"

#include "sim/base/units.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/overrides.h"
#include "sim/roofline/stage_bound.h"

/* Everything after everything else, on the slowest links, with the profile's overheads. The counts
 * are those of a mean rank of pp: where nothing overlaps, one rank works after the other. */
static double upper(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, const struct roofline *roofline)
{
    double math_share, hbm_share, slowest_math, slowest_hbm;
    overrides_work_shares(machine, mesh, &math_share, &hbm_share);
    overrides_slowest_chip(machine, &slowest_math, &slowest_hbm);
    double total = (roofline->math_s + roofline->vector_s) * (math_share / slowest_math) +
                   roofline->hbm_s * (hbm_share / slowest_hbm) +
                   roofline->counts.compute_count * units_seconds(machine->chip.op_overhead_ps);
    for (uint32_t i = 0; i < roofline->group_count; i++)
        total += roofline_group_slow_s(plan, machine, &roofline->group[i]);
    total += 2 * roofline->host_s;
    return total * mesh->axis[MESH_PP].size + stage_bound_slow_s(machine, &roofline->counts) +
           (double)roofline->counts.host.count * units_seconds(machine->host.latency_ps);
}

void roofline_bound(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline)
{
    roofline->bound.by = "mxu";
    roofline->bound.axis = -1;
    roofline->lower_s = roofline->math_s;
    if (roofline->vector_s > roofline->lower_s) {
        roofline->bound.by = "vpu";
        roofline->lower_s = roofline->vector_s;
    }
    if (roofline->hbm_s > roofline->lower_s) {
        roofline->bound.by = "hbm";
        roofline->lower_s = roofline->hbm_s;
    }
    if (roofline->host_s > roofline->lower_s) {
        roofline->bound.by = "host";
        roofline->lower_s = roofline->host_s;
    }
    for (uint32_t i = 0; i < machine->axis_count; i++) {
        if (roofline->ici_s[i] <= roofline->lower_s) continue;
        roofline->bound.by = level_link_name(machine, i);
        roofline->bound.axis = (int32_t)i;
        roofline->lower_s = roofline->ici_s[i];
    }
    roofline->upper_s = upper(plan, machine, mesh, roofline);
}
