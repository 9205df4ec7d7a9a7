#include "sim/roofline/rules.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/roofline/host_bound.h"
#include "sim/roofline/level_rate.h"

/* FLOP that blocks multiply for each of their collectives over tp, in those of one column: an MLP
 * of two matrices multiplies 4·B·D·F for two, so this is the book's F (chapter 5, tensor
 * parallelism).
 */
static double width(const struct workload_counts *counts, const struct workload_blocks *blocks,
                    double flop)
{
    return blocks->tp_moves == 0 ? 0 : flop / (double)blocks->tp_moves / counts->tp.column_flop;
}

static void tp_widths(const struct workload_counts *counts, struct roofline_rules *rules)
{
    rules->tp_mlp_width = width(counts, &counts->tp.mlp, counts->tp.mlp.flop);
    rules->tp_attention_width = width(counts, &counts->tp.attention, counts->tp.attention.flop);
    rules->tp_layer_width = width(counts, &counts->tp.parallel, counts->tp.parallel.flop);
}

/* Against collectives over tp stand gathers of weights: F is that of products with weights, of the
 * block that the MLP is in. */
static void mixed_rules(const struct workload_plan *plan, const struct machine *machine,
                        const struct mesh *mesh, struct roofline *roofline)
{
    struct roofline_rules *rules = &roofline->rules;
    const struct workload_counts *counts = &roofline->counts;
    const struct roofline_group *fsdp = roofline_group_find(roofline, MESH_FSDP);
    const struct roofline_group *tp = roofline_group_find(roofline, MESH_TP);
    const struct workload_blocks *blocks =
        counts->tp.mlp.count > 0 ? &counts->tp.mlp : &counts->tp.parallel;
    double const columns = width(counts, blocks, blocks->linear_flop);
    if (fsdp == NULL || tp == NULL || columns == 0) return;
    double const batch = (double)workload_tokens(plan) / rules->fsdp_gathers;
    double const stages = mesh->axis[MESH_PP].size, chips = machine->chip_count;
    rules->mixed_best_ranks = sqrt(batch / columns * fsdp->axes / tp->axes * chips / stages);
    rules->mixed_critical_tokens = rules->fsdp_gathers * rules->alpha * rules->alpha /
                                   (fsdp->axes * tp->axes * columns * stages);
}

/* A rank passes on 2·q·K·H elements and attends to them with q·N·H queries: 4·q·q·N·H FLOP, or half
 * of it where every rank has half of each pass. So q is C/w·K/N bytes, or twice that; the backward
 * pass moves twice as much and multiplies five times for two, and is hidden from 4/5 of it on. */
static void ring_rule(const struct workload_plan *plan, const struct machine *machine,
                      const struct mesh *mesh, struct roofline *roofline)
{
    const struct roofline_group *group = roofline_group_find(roofline, ROOFLINE_SEQUENCE);
    if (group == NULL || algorithm_is_chosen(&group->algorithm)) return;
    const struct group_dimension *ring = &group->group.dimension[0];
    bool const halved = plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL &&
                        plan->attention.order == WORKLOAD_CONTEXT_ZIGZAG;
    double const rate = ring->switched ? level_dimension_rate(machine, ring, LEVEL_TO_ONE)
                                       : (double)machine->chip.ici_bytes_per_s / ring->stride;
    const struct workload_counts *counts = &roofline->counts;
    double const bytes = format_bits(plan->formats.activations) / 8.0;
    roofline->rules.ring_tokens = roofline->rates.other_flop_per_s / rate * bytes / 2 *
                                  counts->heads.kv_held / counts->heads.held * (halved ? 2 : 1);
    roofline->rules.ring_rank_tokens = (double)workload_keys(plan) / mesh->axis[MESH_CP].size;
}

/* Useful FLOP are a third forward and the rest backward, with all that is executed besides. */
static void offload_rules(const struct workload_plan *plan, const struct machine *machine,
                          const struct roofline *roofline, struct roofline_rules *rules)
{
    const struct workload_counts *counts = &roofline->counts;
    double const forward_s = roofline->math_s * counts->matmul_useful / 3 / counts->matmul_flop;
    double const layers = (double)plan->model.layers;
    rules->offload_optimizer_tokens = rules->tokens_per_chip * plan->accumulate *
                                      host_link_s(machine, counts->host.moment_bytes) /
                                      (roofline->math_s - forward_s);
    if (counts->host.activation_bytes > 0)
        rules->offload_activations_share = host_link_s(machine, counts->host.activation_bytes) /
                                           (layers - 1) / (forward_s / layers);
}

/* AllReduces of two-byte numbers that replicas' gradients and weights are as long as. With ZeRO a
 * reduction leaves shards, half of an AllReduce. The weights are gathered once, another half, or
 * under ZeRO-3 for each pass. A backward pass takes twice as long as a forward pass and has one
 * gather and one reduction; a forward pass has one gather. The slower of the two per unit of time
 * decides. */
static double replica_sums(const struct workload_plan *plan, const struct mesh *mesh,
                           const struct roofline_rules *rules)
{
    uint32_t const stages = mesh->axis[MESH_PP].size;
    double const two_bytes = 16, copies = workload_model_replicas(plan, stages);
    double const reductions = rules->reductions * format_bits(plan->formats.gradients) / two_bytes;
    double const weight = format_bits(plan->formats.weights) / two_bytes;
    if (plan->zero == 0) return reductions;
    if (plan->zero < 3) return (reductions + copies * weight) / 2;
    bool const once = rules->fsdp_gathers == 1;
    double const gathers = weight * (once ? copies : rules->fsdp_gathers);
    double const both = (reductions + gathers) / 2;
    return both > gathers ? both : gathers;
}

struct rules_factors rules_factors(const struct roofline_rules *rules, const struct mesh *mesh)
{
    struct rules_factors factors = {"", "", "", ""};
    uint32_t const gathers = rules->fsdp_gathers, stages = mesh->axis[MESH_PP].size;
    if (gathers > 1) {
        (void)snprintf(factors.times_gathers, sizeof factors.times_gathers, "%u·", gathers);
        (void)snprintf(factors.over_gathers, sizeof factors.over_gathers, "/%u", gathers);
    }
    if (stages > 1) (void)snprintf(factors.over_stages, sizeof factors.over_stages, "/%u", stages);
    if (rules->reductions > 1)
        (void)snprintf(factors.reductions, sizeof factors.reductions, ", for %u reductions a step",
                       rules->reductions);
    return factors;
}

void rules_evaluate(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline)
{
    struct roofline_rules *rules = &roofline->rules;
    const struct roofline_group *fsdp = roofline_group_find(roofline, MESH_FSDP);
    const struct roofline_group *tp = roofline_group_find(roofline, MESH_TP);
    const struct roofline_group *dp = roofline_group_find(roofline, MESH_DP);
    const struct roofline_group *experts = roofline_group_find(roofline, ROOFLINE_EXPERTS);
    double const chips = machine->chip_count;
    double const two_bytes = 16;
    uint32_t const stages = mesh->axis[MESH_PP].size;
    rules->alpha = roofline->rates.math_flop_per_s / roofline_axis_bytes_per_s(machine);
    rules->tokens_per_chip = (double)workload_tokens(plan) / chips;
    double const weight = format_bits(plan->formats.weights) / two_bytes;
    double const activation = format_bits(plan->formats.activations) / two_bytes;
    /* A chip reduces and gathers its share of the model: of a layer over tp, of all layers over pp.
     */
    double const tp_ranks = mesh->axis[MESH_TP].size;
    double const model_ranks = tp_ranks * stages;
    rules->fsdp_gathers = roofline->counts.weights.gathers;
    rules->reductions = roofline->counts.weights.reductions;
    double const sums = replica_sums(plan, mesh, rules);
    if (fsdp != NULL) {
        rules->fsdp_critical_tokens =
            rules->fsdp_gathers * weight * rules->alpha / (fsdp->axes * model_ranks);
        rules->fsdp_exact_tokens = rules->fsdp_critical_tokens * fsdp->finite_share;
        rules->fsdp_crossing_tokens =
            rules->tokens_per_chip * (fsdp->time_s + fsdp->hops_total_s) / roofline->math_s;
    }
    if (dp != NULL) {
        rules->dp_critical_tokens =
            sums * rules->alpha / (dp->axes * model_ranks * mesh->axis[MESH_FSDP].size);
        rules->dp_exact_tokens = rules->dp_critical_tokens * dp->finite_share;
    }
    if (experts != NULL) {
        const struct model_experts *model = &plan->model.experts;
        double const split = mesh_ep_over(mesh, MESH_TP) ? stages : model_ranks;
        double const ranks = split * mesh->axis[MESH_FSDP].size * mesh->axis[MESH_EP].size;
        rules->experts_critical_tokens = sums * rules->alpha * (double)model->count /
                                         (double)model->top_k / (experts->axes * ranks);
        rules->experts_exact_tokens = rules->experts_critical_tokens * experts->finite_share;
    }
    if (tp != NULL) {
        rules->tp_critical_width = activation * tp_ranks * rules->alpha / tp->axes;
        rules->tp_exact_width = rules->tp_critical_width * tp->finite_share;
        tp_widths(&roofline->counts, rules);
    }
    if (!workload_serves(plan)) offload_rules(plan, machine, roofline, rules);
    ring_rule(plan, machine, mesh, roofline);
    mixed_rules(plan, machine, mesh, roofline);
}
