#include "sim/roofline/overlap.h"

#include <stddef.h>
#include <string.h>

#include "sim/roofline/gather_form.h"

static void add_all(const struct workload_plan *plan, const struct machine *machine,
                    const struct group *tp, struct roofline *roofline)
{
    struct gather_form const form = gather_form_by(machine, tp, &plan->algorithm);
    const struct workload_counts *counts = &roofline->counts;
    const struct graph_overlaps *overlaps = &counts->tp.overlaps;
    for (uint32_t i = 0; i < overlaps->count; i++) {
        const struct graph_overlap *source = &overlaps->of[i];
        struct roofline_overlap *overlap = &roofline->overlap[roofline->overlap_count++];
        double const bytes = (double)source->bytes;
        double const width = source->flop / (double)source->count / counts->tp.column_flop;
        bool const sums = source->kind == COLLECTIVE_ALL_REDUCE;
        *overlap = (struct roofline_overlap){.kind = source->kind,
                                             .count = source->count,
                                             .bytes = bytes,
                                             .width = width,
                                             .link_s = (sums ? 2 : 1) * gather_form_s(&form, bytes),
                                             .math_s = counts->tp.column_flop * width /
                                                       roofline->rates.math_flop_per_s};
        memcpy(overlap->name, source->label.text, sizeof overlap->name);
    }
}

/* The part of a group's time that compute waits for, of weights that are gathered twice for each
 * reduction of their gradients. */
static double waited_share(enum workload_overlap overlap)
{
    static const double shares[] = {[WORKLOAD_OVERLAP_ALL] = 0,
                                    [WORKLOAD_OVERLAP_NONE] = 1,
                                    [WORKLOAD_OVERLAP_GATHERS] = 1.0 / 3,
                                    [WORKLOAD_OVERLAP_REDUCTIONS] = 2.0 / 3};
    return shares[overlap];
}

static bool crosses_slices(const struct machine *machine, const struct group *group)
{
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (machine->chip.kind == CHIP_TPU && group->dimension[d].switched) return true;
    return false;
}

/* Collectives that do not run beside compute. */
static double waited_s(const struct workload_plan *plan, const struct machine *machine,
                       const struct roofline *roofline)
{
    const struct workload_overlaps *overlap = &plan->software.overlap;
    double sum_s = overlap->pp_apart ? roofline->stages.messages_s : 0;
    for (uint32_t i = 0; i < roofline->group_count; i++) {
        const struct roofline_group *group = &roofline->group[i];
        bool const replicates = group->of == MESH_DP || group->of == ROOFLINE_EXPERTS;
        bool const crosses = crosses_slices(machine, &group->group);
        double share = group->of == MESH_FSDP ? waited_share(overlap->fsdp)
                       : replicates           ? overlap->dp_apart
                                              : 0;
        if (crosses && (replicates || group->of == MESH_FSDP)) {
            bool const sums = overlap->dcn == WORKLOAD_OVERLAP_GATHERS && plan->zero == 0;
            double const over = replicates && sums ? 1 : waited_share(overlap->dcn);
            if (over > share) share = over;
        }
        sum_s += share * group->time_s;
    }
    return sum_s;
}

void overlap_evaluate(const struct workload_plan *plan, const struct machine *machine,
                      const struct mesh *mesh, struct roofline *roofline)
{
    const struct roofline_group *tp = roofline_group_find(roofline, MESH_TP);
    double const stages = mesh->axis[MESH_PP].size; /* Each has its share of the layers. */
    if (tp != NULL) add_all(plan, machine, &tp->group, roofline);
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        double const excess = overlap->link_s - overlap->math_s;
        if (excess > 0) roofline->tp_excess_s += excess * (double)overlap->count / stages;
    }
    if (tp != NULL && !plan->collective_matmul) roofline->tp_excess_s = tp->time_s;
    double critical = roofline->math_s + roofline->tp_excess_s + waited_s(plan, machine, roofline);
    const struct roofline_group *sequence = roofline_group_find(roofline, ROOFLINE_SEQUENCE);
    if (sequence != NULL) {
        /* A ring hides behind attention to what came before. */
        bool const repeats =
            plan->remat >= GRAPH_REMAT_BIG_MATMULS || plan->kept.named.repeat.count > 0;
        double const products = 7 + 2 * repeats;
        double const beside_s =
            algorithm_is_chosen(&sequence->algorithm)
                ? 0
                : products * roofline->counts.spare.flash / roofline->rates.other_flop_per_s;
        double const hops_s = sequence->hops_total_s - sequence->hops_critical_s;
        double const excess = sequence->time_s + hops_s - beside_s;
        if (excess > 0) critical += excess;
    }
    /* The experts' matmuls wait for their tokens, and what follows for what they give. */
    const struct roofline_group *experts = roofline_group_find(roofline, MESH_EP);
    if (experts != NULL) critical += experts->all_to_all_s;
    /* Queries on their way to the cache, and back; gradients of heads are not waited for. */
    const struct roofline_group *kv = roofline_group_find(roofline, ROOFLINE_KV);
    if (kv != NULL && roofline->counts.kv.critical_passes > 0) critical += kv->time_s;
    roofline->critical_s = critical > roofline->lower_s ? critical : roofline->lower_s;
    roofline->critical_s += roofline->latency_s;
}
