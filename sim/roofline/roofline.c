#include "sim/roofline/roofline.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/roofline/all_to_all_bound.h"
#include "sim/roofline/host_bound.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/overlap.h"
#include "sim/roofline/overrides.h"
#include "sim/roofline/roofline_bounds.h"
#include "sim/roofline/roofline_flop.h"
#include "sim/roofline/rules.h"
#include "sim/roofline/stage_bound.h"
#include "sim/roofline/tier_load.h"

/* Whether a dimension is played as a ring: one that closes may be played as a line. */
static bool is_ring(const struct algorithm *algorithm, const struct group_dimension *dimension)
{
    return dimension->ring && !algorithm_is(algorithm, PRIMITIVE_LINE);
}

/* Whether all links carry the same: on rings, and where each member has its own way to a switch. */
static bool is_even(const struct algorithm *algorithm, const struct group_dimension *dimension)
{
    return is_ring(algorithm, dimension) || dimension->switched;
}

static bool is_ring_both_ways(const struct algorithm *algorithm,
                              const struct group_dimension *dimension)
{
    return is_ring(algorithm, dimension) && !algorithm_is(algorithm, PRIMITIVE_RING_ONE_WAY);
}

/* Links' worth of bandwidth that a dimension has for each member. Strided members share the links
 * between them with the groups that they are interleaved with, but not their ways to a switch. */
static double dimension_links(const struct algorithm *algorithm,
                              const struct group_dimension *dimension)
{
    if (dimension->switched) return 1;
    return (is_ring_both_ways(algorithm, dimension) ? 2.0 : 1.0) / dimension->stride;
}

/* Of nodes without a switch: what is not known to send to all others at once has one link. */
static enum level_reach reach_of(const struct algorithm *algorithm)
{
    bool const to_all = algorithm_is_automatic(algorithm) ||
                        algorithm->family == PRIMITIVE_DIRECT ||
                        algorithm->family == PRIMITIVE_SHARP;
    return to_all ? LEVEL_TO_ALL : LEVEL_TO_ONE;
}

/* Which links count where some are overridden. */
enum override_links {
    OVERRIDES_FASTEST,  /* A bound from below that holds wherever they are. */
    OVERRIDES_ON_RINGS, /* The same, but rings that reach all links are as slow as the slowest. */
    OVERRIDES_SLOWEST,  /* From above. */
};

/* Bytes a second that each dimension brings to a member. The shares of the dimensions do not see
 * overridden links, so from above each is as slow as the slowest of all. */
static void rates_of(const struct algorithm *algorithm, const struct machine *machine,
                     const struct group *group, enum override_links overrides,
                     double ret_rate[GROUP_DIMENSIONS_MAX])
{
    double slowest = INFINITY;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        enum level_reach const reach = reach_of(algorithm);
        bool const all = overrides_reaches_all(machine, dimension, algorithm);
        double const slow = dimension->switched
                                ? level_slow_rate(machine, dimension, reach)
                                : overrides_slowest_link(machine, dimension->axis, algorithm);
        double const fast = dimension->switched
                                ? level_dimension_rate(machine, dimension, reach)
                                : overrides_fastest_link(machine, dimension->axis, algorithm);
        ret_rate[i] = dimension_links(algorithm, dimension) *
                      (overrides == OVERRIDES_ON_RINGS && all ? slow : fast);
        if (slow < slowest) slowest = slow;
    }
    for (uint32_t i = 0; overrides == OVERRIDES_SLOWEST && i < group->dimension_count; i++)
        ret_rate[i] = dimension_links(algorithm, &group->dimension[i]) * slowest;
}

/* However the members that agree in some of the dimensions share the work, V(1 - 1/n) has to come
 * to them over the others, n the product of those sizes: V(n-1)/N a member, at the rate of those
 * dimensions together. All of them together decide unless some are slow: a strided one, or a long
 * line, has that much to carry whatever the others could take over. */
static double gather_s(const struct algorithm *algorithm, const struct machine *machine,
                       const struct group *group, double bytes, enum override_links overrides)
{
    double rate[GROUP_DIMENSIONS_MAX], longest = 0;
    double const ranks = (double)group_rank_count(group);
    rates_of(algorithm, machine, group, overrides, rate);
    for (uint32_t subset = 1; subset < 1u << group->dimension_count; subset++) {
        double together = 0, size = 1;
        for (uint32_t i = 0; i < group->dimension_count; i++) {
            if ((subset >> i & 1) == 0) continue;
            size *= group->dimension[i].size;
            together += rate[i];
        }
        double const time = bytes * (size - 1) / ranks / together;
        if (time > longest) longest = time;
    }
    return longest;
}

/* What of that a dimension is busy for: all of it, or where others are the slow ones, what they
 * leave to it. */
static double dimension_busy_s(const struct algorithm *algorithm, const struct machine *machine,
                               const struct group *group, uint32_t index, double bytes,
                               enum override_links overrides)
{
    double rate[GROUP_DIMENSIONS_MAX], together = 0;
    double const ranks = (double)group_rank_count(group);
    double const arriving = bytes * (ranks - 1) / ranks;
    double const whole = gather_s(algorithm, machine, group, bytes, overrides);
    rates_of(algorithm, machine, group, overrides, rate);
    for (uint32_t i = 0; i < group->dimension_count; i++) together += rate[i];
    if (arriving >= whole * together * (1 - 1e-12)) return whole;
    double const rest = arriving - whole * (together - rate[index]);
    double const least = bytes * (group->dimension[index].size - 1) / ranks;
    return (rest > least ? rest : least) / rate[index];
}

double roofline_axis_bytes_per_s(const struct machine *machine)
{
    if (machine->grid_axis_count > 0) return 2 * (double)machine->chip.ici_bytes_per_s;
    return level_rate(machine, 0);
}

double roofline_gather_s(const struct algorithm *algorithm, const struct machine *machine,
                         const struct group *group, double bytes)
{
    return gather_s(algorithm, machine, group, bytes, OVERRIDES_ON_RINGS);
}

/* floor(n/2) steps on a ring both ways, n-1 else, each over `stride` links; through switches all
 * members are one way apart, and only a ring needs n-1 of them. */
static double group_hop_s(const struct algorithm *algorithm, const struct machine *machine,
                          const struct group *group, bool longest)
{
    double total = 0;
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *dimension = &group->dimension[i];
        bool const both = is_ring_both_ways(algorithm, dimension);
        uint32_t const steps = both ? dimension->size / 2 : dimension->size - 1;
        if (dimension->switched) {
            total += (algorithm_is(algorithm, PRIMITIVE_RING) ? steps : 1) *
                     units_seconds(level_latency_ps(machine, dimension) +
                                   machine->chip.message_overhead_ps);
            continue;
        }
        int64_t const hop_ps = longest ? overrides_longest_hop_ps(machine, dimension->axis)
                                       : machine->chip.hop_latency_ps;
        double const step = dimension->stride * units_seconds(hop_ps) +
                            units_seconds(machine->chip.message_overhead_ps);
        total += steps * step;
    }
    return total;
}

static void add_group(const struct workload_plan *plan, const struct machine *machine, uint32_t of,
                      const struct workload_traffic *traffic, struct roofline *roofline)
{
    static const char *const others[] = {"kv", "sequence", "experts"};
    struct algorithm const algorithm = tiers_played(plan, traffic->algorithm);
    uint64_t const count = traffic->gather_count + traffic->scatter_count +
                           traffic->all_reduce_count + traffic->all_to_all_count +
                           traffic->permute_count;
    if (count == 0 || traffic->group.dimension_count == 0) return;
    struct roofline_group *group = &roofline->group[roofline->group_count++];
    group->of = of;
    group->name =
        of < MESH_ROLE_COUNT ? mesh_role_name((enum mesh_role)of) : others[of - MESH_ROLE_COUNT];
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
    group->time_s = roofline_gather_s(&algorithm, machine, &traffic->group, group->gather_bytes) +
                    group->all_to_all_s;
    double grid = 0;
    for (uint32_t i = 0; i < traffic->group.dimension_count; i++)
        if (!traffic->group.dimension[i].switched)
            grid += dimension_links(&algorithm, &traffic->group.dimension[i]) *
                    (double)machine->chip.ici_bytes_per_s;
    enum level_reach const reach = reach_of(&algorithm);
    group->axes = level_group_rate(machine, &traffic->group, reach, grid) /
                  roofline_axis_bytes_per_s(machine);
    group->finite_share = level_group_share(machine, &traffic->group, reach, grid);
    group->hop_s = group_hop_s(&algorithm, machine, &traffic->group, false);
    group->hops_total_s = group->hop_s * (double)(count + traffic->all_reduce_count);
}

/* The busiest links of an axis. On a ring all links of a direction carry the same. On a line a
 * gather fills the links towards the ends (the i-th carries i chunks) and a reduce-scatter those
 * that leave them, so the sum of both is not twice as much; where a line shares the axis with other
 * groups, only what is the same on all links may be added to the busiest line. */
static double axis_even_s(const struct workload_plan *plan, const struct machine *machine,
                          const struct workload_traffic *const *traffic, uint32_t axis,
                          bool slow_rings)
{
    double rings = 0, lines = 0;
    enum override_links const overrides = slow_rings ? OVERRIDES_ON_RINGS : OVERRIDES_FASTEST;
    for (uint32_t t = 0; t < ROOFLINE_GROUPS_MAX; t++) {
        const struct group *group = &traffic[t]->group;
        double const gathered = traffic_gathered_bytes(traffic[t]);
        double const scattered = traffic_scattered_bytes(traffic[t]);
        struct algorithm const algorithm = tiers_played(plan, traffic[t]->algorithm);
        double const more = gathered > scattered ? gathered : scattered;
        double const less = gathered > scattered ? scattered : gathered;
        for (uint32_t i = 0; i < group->dimension_count; i++) {
            const struct group_dimension *dimension = &group->dimension[i];
            if (dimension->axis != axis) continue;
            double const exchanged = all_to_all_axis_s(machine, traffic[t], i);
            if (exchanged > lines) lines = exchanged;
            if (is_even(&algorithm, dimension)) {
                rings += dimension_busy_s(&algorithm, machine, group, i, more + less, overrides);
                continue;
            }
            double const both = more + less / (dimension->size - 1);
            double const line = dimension_busy_s(&algorithm, machine, group, i, both, overrides);
            if (line > lines) lines = line;
        }
    }
    return slow_rings ? rings : rings + lines;
}

/* Bytes that are known to come one way to each member: lines have links to spare for reductions
 * along with gathers, and switches that add and copy need less of the other way. */
static double arriving_bytes(const struct algorithm *algorithm,
                             const struct workload_traffic *traffic)
{
    double const gathered = traffic_gathered_bytes(traffic);
    double const scattered = traffic_scattered_bytes(traffic);
    bool even = !algorithm->in_switches;
    for (uint32_t i = 0; i < traffic->group.dimension_count; i++)
        even = even && is_even(algorithm, &traffic->group.dimension[i]);
    return even ? gathered + scattered : fmax(gathered, scattered);
}

/* Each group as if it had an axis of switches for itself, and the longest of them. Next to others
 * it may take longer and put more on other axes, so what they take alone does not add up. Without
 * switches, links that the plan's algorithm leaves idle could be used by another. */
static double axis_alone_s(const struct workload_plan *plan, const struct machine *machine,
                           const struct workload_traffic *const *traffic, uint32_t axis,
                           enum override_links overrides)
{
    double longest = 0;
    for (uint32_t t = 0; t < ROOFLINE_GROUPS_MAX; t++) {
        const struct group *group = &traffic[t]->group;
        struct algorithm algorithm = tiers_played(plan, traffic[t]->algorithm);
        double const bytes = arriving_bytes(&algorithm, traffic[t]);
        if (machine_is_meshed(machine, axis)) algorithm = algorithm_of(traffic[t]->algorithm);
        for (uint32_t i = 0; i < group->dimension_count; i++) {
            if (group->dimension[i].axis != axis) continue;
            longest =
                fmax(longest, dimension_busy_s(&algorithm, machine, group, i, bytes, overrides));
            if (group->dimension_count == 1)
                longest = fmax(longest, all_to_all_s(machine, traffic[t]));
        }
    }
    return longest;
}

static double level_busy_s(const struct workload_plan *plan, const struct machine *machine,
                           const struct workload_traffic *const *traffic, uint32_t axis)
{
    double const together_s = tier_load_busy_s(plan, machine, traffic, ROOFLINE_GROUPS_MAX, axis);
    double const alone_s = axis_alone_s(plan, machine, traffic, axis, OVERRIDES_FASTEST);
    double const slow_s = axis_alone_s(plan, machine, traffic, axis, OVERRIDES_ON_RINGS);
    return fmax(together_s, fmax(alone_s, slow_s));
}

/* A slow link carries what rings put on all links, but maybe nothing of a line: what it needs and
 * what the others need are two bounds. */
static double axis_busy_s(const struct workload_plan *plan, const struct machine *machine,
                          const struct workload_traffic *const *traffic, uint32_t axis)
{
    if (machine->axis_level[axis] != LEVEL_NONE) return level_busy_s(plan, machine, traffic, axis);
    double const others_s = axis_even_s(plan, machine, traffic, axis, false);
    if (machine->link_override_count == 0) return others_s;
    double const slow_s = axis_even_s(plan, machine, traffic, axis, true);
    return slow_s > others_s ? slow_s : others_s;
}

/* Whether all members do as much for a gather or a reduction: at the end of a line a chip forwards
 * and adds less, and where chips differ the slow one may stand there. */
static bool is_shared_evenly(const struct algorithm *algorithm, const struct machine *machine,
                             const struct group *group)
{
    for (uint32_t d = 0; d < group->dimension_count && machine->chip_override_count > 0; d++)
        if (!is_even(algorithm, &group->dimension[d])) return false;
    return true;
}

/* A gather reads each departing byte and writes each arriving one; a reduce-scatter reads its
 * operand once per byte sent, keeps partial sums in VMEM and writes the final shard. Where members
 * differ, a chip sends only its own chunk, and the bound counts no more; nor where switches copy:
 * then a member's own part leaves once, or the sum comes once. */
static double traffic_hbm_bytes(const struct workload_plan *plan, const struct machine *machine,
                                const struct workload_traffic *traffic)
{
    double const ranks = (double)group_rank_count(&traffic->group);
    if (traffic->group.dimension_count == 0) return 0;
    double const moved = (ranks - 1) / ranks;
    struct algorithm const algorithm = tiers_played(plan, traffic->algorithm);
    bool const even =
        !algorithm.in_switches && is_shared_evenly(&algorithm, machine, &traffic->group);
    double const sent = even ? moved : 1 / ranks;
    double const exchanged = all_to_all_sent_bytes(traffic) + traffic->permute_bytes;
    return 2 * exchanged + traffic_gathered_bytes(traffic) * (moved + sent) +
           traffic_scattered_bytes(traffic) * (moved + 1 / ranks);
}

/* N arrays of V elements are one after (N-1)·V additions, whoever does them: of a mean member
 * V·(N-1)/N. Switches that add leave them nothing to do. The widest elements are the fewest. */
static double traffic_additions(const struct workload_plan *plan, const struct machine *machine,
                                const struct workload_traffic *traffic)
{
    const struct workload_formats *formats = &plan->formats;
    double const ranks = (double)group_rank_count(&traffic->group);
    double const bits = fmax(format_bits(formats->gradients), format_bits(formats->activations));
    struct algorithm const algorithm = tiers_played(plan, traffic->algorithm);
    if (algorithm.in_switches || !is_shared_evenly(&algorithm, machine, &traffic->group)) return 0;
    return traffic_scattered_bytes(traffic) * 8 / bits * (ranks - 1) / ranks;
}

static void communication(const struct workload_plan *plan, const struct machine *machine,
                          const struct workload_counts *counts, struct roofline *roofline)
{
    double hbm_bytes = traffic_hbm_bytes(plan, machine, &counts->kv) +
                       traffic_hbm_bytes(plan, machine, &counts->sequence) +
                       traffic_hbm_bytes(plan, machine, &counts->experts);
    double additions = traffic_additions(plan, machine, &counts->kv) +
                       traffic_additions(plan, machine, &counts->sequence) +
                       traffic_additions(plan, machine, &counts->experts);
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) {
        add_group(plan, machine, i, &counts->role[i], roofline);
        hbm_bytes += traffic_hbm_bytes(plan, machine, &counts->role[i]);
        additions += traffic_additions(plan, machine, &counts->role[i]);
    }
    const struct workload_traffic *traffic[ROOFLINE_GROUPS_MAX] = {&counts->kv, &counts->sequence,
                                                                   &counts->experts};
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) traffic[3 + i] = &counts->role[i];
    for (uint32_t i = 0; i < machine->axis_count; i++)
        roofline->ici_s[i] = axis_busy_s(plan, machine, traffic, i);
    stage_bound_evaluate(machine, counts, roofline);
    add_group(plan, machine, ROOFLINE_KV, &counts->kv, roofline);
    add_group(plan, machine, ROOFLINE_SEQUENCE, &counts->sequence, roofline);
    add_group(plan, machine, ROOFLINE_EXPERTS, &counts->experts, roofline);
    roofline->hbm_collectives_s = hbm_bytes / (double)machine->chip.hbm_bytes_per_s;
    roofline->vector_collectives_s = additions / (double)machine->chip.vector_flop_per_s;
    const struct roofline_group *tp = roofline_group_find(roofline, MESH_TP);
    const struct roofline_group *fsdp = roofline_group_find(roofline, MESH_FSDP);
    const struct roofline_group *experts = roofline_group_find(roofline, MESH_EP);
    if (tp != NULL) roofline->latency_s += tp->hop_s * (double)counts->tp.critical_count;
    if (experts != NULL)
        roofline->latency_s += experts->hop_s * (double)counts->role[MESH_EP].all_to_all_count;
    /* Nothing can hide the first gather's hops nor the last reduction's. */
    if (fsdp != NULL) roofline->latency_s += 2 * fsdp->hop_s;
}

/* On the grid. Where lines are among several dimensions, what goes along one after the other may
 * wait for all of it: small arrays are not cut into pieces. */
static double grid_slow_s(const struct algorithm *algorithm, const struct machine *machine,
                          const struct group *grid, double bytes)
{
    bool lines = false;
    double sum = 0;
    for (uint32_t i = 0; i < grid->dimension_count; i++) {
        lines = lines || !is_ring(algorithm, &grid->dimension[i]);
        sum += dimension_busy_s(algorithm, machine, grid, i, bytes, OVERRIDES_SLOWEST);
    }
    return lines ? sum : gather_s(algorithm, machine, grid, bytes, OVERRIDES_SLOWEST);
}

/* An array goes over the levels one after the other, the outermost first. */
static double gather_slow_s(const struct algorithm *algorithm, const struct machine *machine,
                            const struct group *group, double bytes)
{
    struct group grid = {.dimension_count = 0};
    double total = 0;
    if (algorithm->flat) return gather_s(algorithm, machine, group, bytes, OVERRIDES_SLOWEST);
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        const struct group_dimension *at = &group->dimension[i];
        if (!at->switched) {
            grid.dimension[grid.dimension_count++] = *at;
            continue;
        }
        double arriving = bytes * (at->size - 1) / (double)group_rank_count(group);
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (group->dimension[d].switched && group->dimension[d].axis > at->axis)
                arriving *= group->dimension[d].size;
        total += arriving / level_slow_rate(machine, at, reach_of(algorithm));
    }
    if (grid.dimension_count > 0) total += grid_slow_s(algorithm, machine, &grid, bytes);
    return total;
}

double roofline_group_slow_s(const struct workload_plan *plan, const struct machine *machine,
                             const struct roofline_group *group)
{
    double const passes = group->hop_s > 0 ? group->hops_total_s / group->hop_s : 0;
    struct algorithm const algorithm = tiers_played(plan, group->algorithm);
    return gather_slow_s(&algorithm, machine, &group->group, group->gather_bytes) +
           group->all_to_all_slow_s +
           passes * group_hop_s(&algorithm, machine, &group->group, true);
}

static double mean_rate(const struct workload_counts *counts, const struct roofline *roofline)
{
    double const linear = counts->padded_linear_flop, other = counts->padded_flop - linear;
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
    overrides_work_shares(machine, mesh, &math_share, &hbm_share);
    double const hbm_rate = (double)machine->chip.hbm_bytes_per_s * hbm_share;
    roofline.math_s = counts->padded_flop / (roofline.rates.mean_flop_per_s * math_share);
    roofline.vector_collectives_s /= math_share;
    roofline.vector_s =
        counts->vector_flop / ((double)machine->chip.vector_flop_per_s * math_share) +
        roofline.vector_collectives_s;
    roofline.hbm_collectives_s /= hbm_share;
    const struct workload_held *held = &counts->memory;
    double const host_bytes = counts->host.moment_bytes + counts->host.activation_bytes;
    roofline.hbm_s = (counts->hbm_bytes + 2 * host_bytes) / hbm_rate + roofline.hbm_collectives_s;
    roofline.host_s = host_link_s(machine, host_bytes);
    roofline.memory_bytes = held->parameter_bytes + held->optimizer_bytes + held->gradient_bytes +
                            held->activation_bytes + held->gathered_bytes + held->master_bytes +
                            held->fixed_bytes + held->cache_bytes;
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
