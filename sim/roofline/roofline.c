#include "sim/roofline/roofline.h"

#include "sim/base/units.h"
#include "sim/roofline/all_to_all_bound.h"
#include "sim/roofline/gather_form.h"
#include "sim/roofline/host_bound.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/link_bound.h"
#include "sim/roofline/overlap.h"
#include "sim/roofline/rate_range.h"
#include "sim/roofline/roofline_bounds.h"
#include "sim/roofline/roofline_flop.h"
#include "sim/roofline/rules.h"
#include "sim/roofline/stage_bound.h"

double roofline_axis_bytes_per_s(const struct machine *machine)
{
    if (machine->grid_axis_count > 0) return 2 * (double)machine->chip.ici_bytes_per_s;
    return level_rate(machine, 0);
}

static const char *group_name(const struct roofline *roofline, uint32_t of)
{
    static const char *const others[] = {"kv", "sequence", "experts"};
    if (of == MESH_DP) return roofline->counts.weights.holders;
    return of < MESH_ROLE_COUNT ? mesh_role_name((enum mesh_role)of) : others[of - MESH_ROLE_COUNT];
}

static void add_group(const struct workload_plan *plan, const struct machine *machine, uint32_t of,
                      const struct workload_traffic *traffic, struct roofline *roofline)
{
    uint64_t const count = traffic->gather_count + traffic->scatter_count +
                           traffic->all_reduce_count + traffic->all_to_all_count +
                           traffic->permute_count;
    if (count == 0 || traffic->group.dimension_count == 0) return;
    struct roofline_group *group = &roofline->group[roofline->group_count++];
    group->of = of;
    group->name = group_name(roofline, of);
    group->group = traffic->group;
    double const ranks = (double)group_rank_count(&traffic->group);
    group->rank_count = (uint64_t)ranks;
    group->count = count;
    group->algorithm = traffic->algorithm;
    group->gather_bytes = traffic_gathered_bytes(traffic) + traffic_scattered_bytes(traffic);
    group->array_bytes = group->gather_bytes + traffic->all_to_all_bytes + traffic->permute_bytes;
    group->sent_bytes = group->gather_bytes * (ranks - 1) / ranks + all_to_all_sent_bytes(traffic) +
                        traffic->permute_bytes;
    group->all_to_all_s = all_to_all_s(machine, traffic);
    group->all_to_all_slow_s = all_to_all_slow_s(machine, traffic);
    struct gather_form const form = roofline_gather_form(plan, machine, group);
    group->time_s = gather_form_s(&form, group->gather_bytes) + group->all_to_all_s;
    group->axes = gather_form_rate(&form) / roofline_axis_bytes_per_s(machine);
    group->finite_share = gather_form_share(&form);
    group->hop_s = gather_form_hop_s(&form, false);
    group->hops_total_s = group->hop_s * (double)(count + traffic->all_reduce_count);
    group->hops_critical_s = group->hop_s * (double)traffic->critical_passes;
}

static void communication(const struct workload_plan *plan, const struct machine *machine,
                          const struct workload_counts *counts, struct roofline *roofline)
{
    const struct workload_traffic *traffic[ROOFLINE_GROUPS_MAX];
    roofline_traffics(counts, traffic);
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++)
        add_group(plan, machine, i, &counts->role[i], roofline);
    link_bound(machine, traffic, ROOFLINE_GROUPS_MAX, roofline->ici_s);
    stage_bound_evaluate(machine, counts, roofline);
    if (workload_serves(plan))
        roofline->stages.hops_s = stage_bound_hops_s(plan, machine, &counts->role[MESH_PP].group);
    add_group(plan, machine, ROOFLINE_KV, &counts->kv, roofline);
    add_group(plan, machine, ROOFLINE_SEQUENCE, &counts->sequence, roofline);
    add_group(plan, machine, ROOFLINE_EXPERTS, &counts->experts, roofline);
    struct chip_work const work = roofline_chip_work(plan, machine, counts, /* least= */ true);
    roofline->hbm_collectives_s = work.hbm_s;
    roofline->vector_collectives_s = work.vector_s;
    for (uint32_t i = 0; i < roofline->group_count; i++)
        roofline->latency_s += roofline->group[i].hops_critical_s;
    /* Nothing can hide the first gather's hops nor the last reduction's. */
    const struct workload_traffic *fsdp = &counts->role[MESH_FSDP];
    const struct roofline_group *group = roofline_group_find(roofline, MESH_FSDP);
    if (group != NULL)
        roofline->latency_s +=
            group->hop_s * ((fsdp->gather_count > 0) + (fsdp->scatter_count > 0));
}

static double mean_rate(const struct workload_counts *counts, const struct roofline *roofline)
{
    double const linear = counts->linear.padded_flop, other = counts->padded_flop - linear;
    if (roofline->rates.math_flop_per_s == roofline->rates.other_flop_per_s)
        return roofline->rates.math_flop_per_s;
    return counts->padded_flop /
           (linear / roofline->rates.math_flop_per_s + other / roofline->rates.other_flop_per_s);
}

void roofline_from_counts(const struct workload_plan *plan, const struct machine *machine,
                          const struct mesh *mesh, const struct workload_counts *counts,
                          struct roofline *ret_roofline)
{
    enum format const format = plan->formats.matmuls; /* Operands are converted on load. */
    struct roofline roofline = {
        .counts = *counts,
        .rates.math_flop_per_s = (double)machine->chip.math_flop_per_s[format],
        .rates.other_flop_per_s = (double)machine->chip.math_flop_per_s[plan->formats.activations],
        .rates.peak_flop_per_s = (double)machine->chip.math_peak_flop_per_s[format],
    };
    SIM_ASSERT(roofline.rates.math_flop_per_s > 0 && roofline.rates.peak_flop_per_s > 0);
    SIM_ASSERT(roofline.rates.other_flop_per_s > 0);
    roofline.rates.mean_flop_per_s = mean_rate(counts, &roofline);
    roofline_flop(plan, machine, counts, &roofline);
    communication(plan, machine, counts, &roofline);

    double math_share, hbm_share;
    rate_range_work_shares(machine, mesh, &math_share, &hbm_share);
    double const hbm_rate = (double)machine->chip.hbm_bytes_per_s * hbm_share;
    roofline.math_s = counts->padded_flop / (roofline.rates.mean_flop_per_s * math_share);
    roofline.vector_collectives_s /= math_share;
    roofline.vector_s =
        counts->vector_flop / ((double)machine->chip.vector_flop_per_s * math_share) +
        roofline.vector_collectives_s;
    roofline.hbm_collectives_s /= hbm_share;
    const struct workload_held *held = &counts->memory;
    const struct workload_held_anyway *anyway = &counts->held_anyway;
    double const host_bytes = counts->host.moment_bytes + counts->host.activation_bytes;
    roofline.hbm_s = (counts->hbm_bytes + 2 * host_bytes) / hbm_rate + roofline.hbm_collectives_s;
    roofline.host_s = host_link_s(machine, host_bytes);
    roofline.memory_bytes = held->parameter_bytes + held->optimizer_bytes + held->gradient_bytes +
                            held->activation_bytes + anyway->group_bytes + anyway->gathered_bytes +
                            held->master_bytes + anyway->fixed_bytes + held->cache_bytes;
    roofline_bound(plan, machine, mesh, &roofline);
    rules_evaluate(plan, machine, mesh, &roofline);
    overlap_evaluate(plan, machine, mesh, &roofline);
    *ret_roofline = roofline;
}

const struct roofline_group *roofline_group_find(const struct roofline *roofline, uint32_t of)
{
    for (uint32_t i = 0; i < roofline->group_count; i++)
        if (roofline->group[i].of == of) return &roofline->group[i];
    return NULL;
}
