#include "sim/roofline/roofline_bounds.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/base/units.h"
#include "sim/roofline/all_to_all_bound.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/link_bound.h"
#include "sim/roofline/rate_range.h"
#include "sim/roofline/stage_bound.h"

void roofline_traffics(const struct workload_counts *counts,
                       const struct workload_traffic *ret_traffic[ROOFLINE_GROUPS_MAX])
{
    ret_traffic[0] = &counts->kv;
    ret_traffic[1] = &counts->sequence;
    ret_traffic[2] = &counts->experts;
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) ret_traffic[3 + i] = &counts->role[i];
}

/* A gather reads each departing byte and writes each arriving one; a reduction reads its operand
 * once for each byte sent, keeps partial sums in VMEM and writes the final shard. Where switches
 * copy, a member's own part leaves once; where chips differ, the slow one may send no more. */
static double traffic_hbm_bytes(const struct machine *machine,
                                const struct workload_traffic *traffic, bool least)
{
    double const ranks = (double)group_rank_count(&traffic->group), moved = (ranks - 1) / ranks;
    bool const fewer =
        machine->chip_override_count > 0 || link_bound_copies(machine, &traffic->group);
    double const sent = least && fewer ? 1 / ranks : moved;
    double const exchanged = all_to_all_sent_bytes(traffic) + traffic->permute_bytes;
    return 2 * exchanged + traffic_gathered_bytes(traffic) * (moved + sent) +
           traffic_scattered_bytes(traffic) * (moved + 1 / ranks);
}

/* N arrays of V elements are one after (N-1)·V additions, whoever does them: of a mean member
 * V·(N-1)/N. Switches that add leave them nothing to do, and others a slow chip. The widest
 * elements are the fewest. */
static double traffic_additions(const struct workload_plan *plan, const struct machine *machine,
                                const struct workload_traffic *traffic, bool least)
{
    const struct graph_formats *formats = &plan->formats;
    double const ranks = (double)group_rank_count(&traffic->group);
    double const of_plan = fmax(format_bits(formats->gradients), format_bits(formats->activations));
    double const bits = fmax(of_plan, format_bits(traffic->widest));
    bool const fewer =
        machine->chip_override_count > 0 || link_bound_copies(machine, &traffic->group);
    if (least && fewer) return 0;
    return traffic_scattered_bytes(traffic) * 8 / bits * (ranks - 1) / ranks;
}

struct chip_work roofline_chip_work(const struct workload_plan *plan, const struct machine *machine,
                                    const struct workload_counts *counts, bool least)
{
    const struct workload_traffic *traffic[ROOFLINE_GROUPS_MAX];
    double bytes = 0, additions = 0;
    roofline_traffics(counts, traffic);
    for (uint32_t i = 0; i < ROOFLINE_GROUPS_MAX; i++) {
        if (traffic[i]->group.dimension_count == 0) continue;
        bytes += traffic_hbm_bytes(machine, traffic[i], least);
        additions += traffic_additions(plan, machine, traffic[i], least);
    }
    return (struct chip_work){.hbm_s = bytes / (double)machine->chip.hbm_bytes_per_s,
                              .vector_s = additions / (double)machine->chip.vector_flop_per_s};
}

struct gather_form roofline_gather_form(const struct workload_plan *plan,
                                        const struct machine *machine,
                                        const struct roofline_group *group)
{
    return gather_form_by(machine, &group->group,
                          algorithm_is_chosen(&group->algorithm) ? &plan->algorithm
                                                                 : &group->algorithm);
}

double roofline_group_slow_s(const struct workload_plan *plan, const struct machine *machine,
                             const struct roofline_group *group)
{
    double const passes = group->hop_s > 0 ? group->hops_total_s / group->hop_s : 0;
    struct gather_form const form = roofline_gather_form(plan, machine, group);
    return gather_form_slow_s(&form, group->gather_bytes) + group->all_to_all_slow_s +
           passes * gather_form_hop_s(&form, true);
}

/* Computes and collectives that the host launches on a mean rank of a pipeline. */
static double rank_launches(const struct workload_counts *counts)
{
    const struct workload_traffic *traffic[ROOFLINE_GROUPS_MAX];
    double launches = counts->ops.count;
    roofline_traffics(counts, traffic);
    for (uint32_t i = 0; i < ROOFLINE_GROUPS_MAX; i++)
        launches += (double)(traffic[i]->gather_count + traffic[i]->scatter_count +
                             traffic[i]->all_reduce_count + traffic[i]->all_to_all_count +
                             traffic[i]->permute_count);
    return launches;
}

/* Copies, and messages at both ends, that hosts launch on all ranks of a pipeline. */
static double pipeline_launches(const struct workload_counts *counts)
{
    return (double)counts->host_copy_count +
           2 * (counts->stage.way_count + counts->stage.copy_count);
}

/* What ops take longer that some cores have no part of, at the shares of a chip's rates. */
static double scarce_s(const struct workload_plan *plan, const struct machine *machine,
                       const struct workload_scarce *scarce)
{
    const struct chip *chip = &machine->chip;
    return scarce->padded_flop / (double)chip->math_flop_per_s[plan->formats.activations] +
           scarce->vector_flop / (double)chip->vector_flop_per_s;
}

/* What VMEM takes longer than the math of the same op, which goes on side by side. No override
 * changes its rate; where math is faster on all chips, it may be all that VMEM takes. */
static double vmem_s(const struct machine *machine, const struct workload_scarce *scarce,
                     double slowest_math)
{
    return (slowest_math > 1 ? scarce->vmem_bytes : scarce->vmem_longer_bytes) /
           (double)machine->chip.vmem_bytes_per_s;
}

double roofline_overheads_s(const struct machine *machine, const struct workload_counts *counts)
{
    return (counts->ops.count - counts->ops.measured) * units_seconds(machine->chip.launch.op_ps);
}

/* Everything after everything else, on the slowest links, with the profile's overheads. The counts
 * are those of a mean rank of pp: where nothing overlaps, one rank works after the other. Copies
 * and messages are counted of all ranks. */
static double upper(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, const struct roofline *roofline)
{
    double math_share, hbm_share, slowest_math, slowest_hbm;
    rate_range_work_shares(machine, mesh, &math_share, &hbm_share);
    rate_range_slowest_chip(machine, &slowest_math, &slowest_hbm);
    double const launch_s = units_seconds(machine->chip.launch.host_ps);
    struct chip_work const most =
        roofline_chip_work(plan, machine, &roofline->counts, /* least= */ false);
    double const vector_s = roofline->vector_s - roofline->vector_collectives_s;
    double const hbm_s = roofline->hbm_s - roofline->hbm_collectives_s;
    double total = (roofline->math_s + vector_s) * (math_share / slowest_math) +
                   hbm_s * (hbm_share / slowest_hbm) + most.vector_s / slowest_math +
                   most.hbm_s / slowest_hbm + roofline_overheads_s(machine, &roofline->counts);
    total += scarce_s(plan, machine, &roofline->counts.scarce) / slowest_math +
             vmem_s(machine, &roofline->counts.scarce, slowest_math);
    for (uint32_t i = 0; i < roofline->group_count; i++)
        total += roofline_group_slow_s(plan, machine, &roofline->group[i]);
    total += 2 * roofline->host_s + rank_launches(&roofline->counts) * launch_s;
    return total * mesh->axis[MESH_PP].size + pipeline_launches(&roofline->counts) * launch_s +
           stage_bound_slow_s(machine, &roofline->counts) +
           (double)roofline->counts.host_copy_count * units_seconds(machine->host.latency_ps);
}

/* The parts of a sum are rounded. */
static const double equal_share = 1 - 1e-9;

/* The links that are busy as long as those of the bound. */
static void bound_axes(const struct machine *machine, struct roofline *roofline)
{
    struct roofline_bound *bound = &roofline->bound;
    size_t used = 0;
    for (uint32_t i = 0; bound->axis >= 0 && i < machine->axis_count; i++) {
        if (machine->axis_level[i] != machine->axis_level[bound->axis]) continue;
        if (roofline->ici_s[i] < equal_share * roofline->lower_s) continue;
        bound->axis_bits |= 1u << i;
        used += (size_t)snprintf(bound->axes + used, sizeof bound->axes - used, "%s%s",
                                 used == 0 ? "" : ", ", machine_axis_name(machine, i));
        SIM_ASSERT(used < sizeof bound->axes);
    }
}

static void bound_set(struct roofline *roofline, double busy_s, struct roofline_bound bound)
{
    if (busy_s <= roofline->lower_s) return;
    roofline->lower_s = busy_s;
    roofline->bound = bound;
}

void roofline_bound(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline)
{
    roofline->bound = (struct roofline_bound){.resource = ROOFLINE_MXU, .by = "mxu", .axis = -1};
    roofline->lower_s = roofline->math_s;
    bound_set(roofline, roofline->vector_s,
              (struct roofline_bound){.resource = ROOFLINE_VPU, .by = "vpu", .axis = -1});
    bound_set(roofline, roofline->hbm_s,
              (struct roofline_bound){.resource = ROOFLINE_HBM, .by = "hbm", .axis = -1});
    bound_set(roofline, roofline->host_s,
              (struct roofline_bound){.resource = ROOFLINE_HOST, .by = "host", .axis = -1});
    for (uint32_t i = 0; i < machine->axis_count; i++)
        bound_set(roofline, roofline->ici_s[i],
                  (struct roofline_bound){.resource = ROOFLINE_LINKS,
                                          .by = level_link_name(machine, i),
                                          .axis = (int32_t)i});
    bound_axes(machine, roofline);
    roofline->upper_s = upper(plan, machine, mesh, roofline);
}
