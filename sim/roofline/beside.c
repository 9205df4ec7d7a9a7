#include "sim/roofline/beside.h"

#include <stddef.h>
#include <stdio.h>

#include "sim/collective/algorithm.h"

/* The layers of a step that have a block, each microbatch, on one chip. */
struct layers {
    const struct workload_plan *plan;
    const struct machine *machine;
    struct roofline *roofline;
    const struct group *tp;
    uint64_t count;
    double block_bytes;      /* Of [rows, D]. */
    double math_s_per_width; /* A matmul [rows, D] x [D, width over tp]. */
    uint32_t in_passes;      /* How often a block's input is gathered, */
    uint32_t forward_passes; /* how often the rest of its forward pass runs, */
    uint32_t last_passes;    /* and how often what the layer ends with. */
};

static void add(const struct layers *layers, const char *name, enum collective_kind kind,
                uint32_t passes, double bytes, double width)
{
    struct roofline *roofline = layers->roofline;
    struct algorithm const algorithm = algorithm_of(layers->plan->algorithm);
    double const gather_s = roofline_gather_s(&algorithm, layers->machine, layers->tp, bytes);
    if (layers->count == 0 || bytes <= 0) return;
    SIM_ASSERT(roofline->beside_count < ROOFLINE_BESIDE_MAX);
    struct roofline_beside *beside = &roofline->beside[roofline->beside_count++];
    *beside = (struct roofline_beside){.kind = kind,
                                       .count = layers->count * passes,
                                       .bytes = bytes,
                                       .width = width,
                                       .link_s = (kind == COLLECTIVE_ALL_REDUCE ? 2 : 1) * gather_s,
                                       .math_s = layers->math_s_per_width * width};
    (void)snprintf(beside->name, sizeof beside->name, "%s", name);
}

/* Products beside collectives of other blocks, as their graphs have them. */
static void add_products(const struct layers *layers, double flop_per_width)
{
    const struct workload_counts *counts = &layers->roofline->counts;
    for (uint32_t i = 0; i < counts->beside_count; i++) {
        const struct workload_beside *beside = &counts->beside[i];
        struct layers one = *layers;
        one.count = beside->count;
        add(&one, beside->name, beside->kind, 1, beside->bytes, beside->flop / flop_per_width);
    }
}

/* Experts' matmuls are not cut into chunks: the router and the sort need all of a gather. Shared
 * experts run while tokens travel, and what they give is reduced while the others run. */
static void add_experts(const struct layers *layers)
{
    const struct model *model = &layers->plan->model;
    const struct workload_counts *counts = &layers->roofline->counts;
    double const matrices = (double)model->matrices;
    double const shared = matrices * (double)(model->experts.shared * model->experts.width);
    double const each = matrices * counts->experts_width;
    double const block = model->experts.shared != 0 ? layers->block_bytes : 0;
    bool const travels_again = layers->plan->remat >= WORKLOAD_REMAT_BIG_MATMULS;
    enum collective_kind const gather = COLLECTIVE_ALL_GATHER, reduce = COLLECTIVE_REDUCE_SCATTER;
    add(layers, "moe.In", gather, layers->in_passes, block, 0);
    add(layers, "moe.Logits", COLLECTIVE_ALL_REDUCE, layers->forward_passes,
        counts->tp_logits_bytes, 0);
    add(layers, "shared.Out", reduce, layers->last_passes, block, each);
    add(layers, "moe.rows", gather, 1 + travels_again, counts->tp_rows_bytes, shared);
    add(layers, "moe.outputs", reduce, layers->last_passes, counts->tp_outputs_bytes, 0);
    add(layers, "moe.dOutputs", gather, 1, counts->tp_rows_bytes, 0);
    add(layers, "shared.dOut", gather, 1, block, 0);
    add(layers, "shared.dIn", reduce, 1, block, 2 * each);
    add(layers, "moe.dRows", reduce, 1, counts->tp_outputs_bytes, 0);
}

static void add_all(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, const struct group *tp, struct roofline *roofline)
{
    const struct model *model = &plan->model;
    bool const normed = model->kind == MODEL_LLAMA; /* Without a norm In is what lies between. */
    bool const parts = normed && plan->tp_inputs == WORKLOAD_TP_INPUTS_SHARDS;
    enum workload_remat const drops = normed ? WORKLOAD_REMAT_NORMS : WORKLOAD_REMAT_BIG_MATMULS;
    double const tp_ranks = mesh->axis[MESH_TP].size;
    double const data_ranks = machine->chip_count / tp_ranks / mesh->axis[MESH_PP].size;
    double const rows = (double)plan->batch_tokens / plan->accumulate / data_ranks;
    double const width = (double)model->width;
    struct layers layers = {
        .plan = plan,
        .machine = machine,
        .roofline = roofline,
        .tp = tp,
        .block_bytes = rows * width * format_bits(plan->formats.activations) / 8,
        .math_s_per_width = 2 * rows * width / tp_ranks / roofline->math_flop_per_s,
        .in_passes = parts || plan->remat >= drops ? 2 : 1,
        .forward_passes = 1 + workload_remat_repeats(plan->remat),
        .last_passes = 1 + (plan->remat == WORKLOAD_REMAT_LAYER),
    };
    uint64_t const predictors = workload_predictors(plan), dense = model_dense_layers(model);
    bool const experts = dense < model->layers; /* A module's layer is as the last. */
    add_products(&layers, 2 * rows * width / tp_ranks);
    layers.count = plan->accumulate * (model->layers - dense + (experts ? predictors : 0));
    add_experts(&layers);
}

void beside_evaluate(const struct workload_plan *plan, const struct machine *machine,
                     const struct mesh *mesh, struct roofline *roofline)
{
    const struct roofline_group *tp = roofline_group_find(roofline, MESH_TP);
    double const stages = mesh->axis[MESH_PP].size; /* Each has its share of the layers. */
    if (tp != NULL) add_all(plan, machine, mesh, &tp->group, roofline);
    for (uint32_t i = 0; i < roofline->beside_count; i++) {
        const struct roofline_beside *beside = &roofline->beside[i];
        double const excess = beside->link_s - beside->math_s;
        if (excess > 0) roofline->tp_excess_s += excess * (double)beside->count / stages;
    }
    if (tp != NULL && !plan->collective_matmul) roofline->tp_excess_s = tp->time_s;
    double critical = roofline->math_s + roofline->tp_excess_s;
    const struct roofline_group *sequence = roofline_group_find(roofline, ROOFLINE_SEQUENCE);
    if (sequence != NULL) {
        /* A ring hides behind attention to what came before. */
        double const products = 7 + 2 * (plan->remat >= WORKLOAD_REMAT_BIG_MATMULS);
        double const beside_s =
            sequence->algorithm == NULL
                ? 0
                : products * roofline->counts.matmul_flash / roofline->other_flop_per_s;
        double const excess = sequence->time_s + sequence->hops_total_s - beside_s;
        if (excess > 0) critical += excess;
    }
    /* The experts' matmuls wait for their tokens, and what follows for what they give. */
    const struct roofline_group *experts = roofline_group_find(roofline, MESH_EP);
    if (experts != NULL) critical += experts->exchange_s;
    roofline->critical_s = critical > roofline->lower_s ? critical : roofline->lower_s;
    roofline->critical_s += roofline->latency_s;
}
