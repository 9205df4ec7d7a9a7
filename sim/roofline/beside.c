#include "sim/roofline/beside.h"

#include <stddef.h>

/* Of one layer and microbatch, on one chip. */
struct layer {
    struct roofline *roofline;
    double rows;             /* Tokens of a data rank. */
    double link_s;           /* A gather or reduction of [rows, D]. */
    double math_s_per_width; /* A matmul [rows, D] x [D, width over tp]. */
    uint64_t count;          /* Layers times microbatches. */
};

static void add(const struct layer *layer, const char *name, uint32_t passes, double width)
{
    struct roofline *roofline = layer->roofline;
    roofline->beside[roofline->beside_count++] =
        (struct roofline_beside){.name = name,
                                 .count = layer->count * passes,
                                 .width = width,
                                 .link_s = layer->link_s,
                                 .math_s = layer->math_s_per_width * width};
}

/* Forward, the gathered input feeds the in-projections and the out-projection feeds the reduction.
 * Backward, the gathered dOut feeds both dTmp and dW_out, and dIn feeds its reduction (book,
 * chapter 5, with the order dW_out, dTmp, dW_in, dIn). A recomputed block repeats the forward. */
static void add_block(const struct layer *layer, const char *const names[4], uint32_t forward,
                      double in_width, double out_width)
{
    add(layer, names[0], forward, in_width);
    add(layer, names[1], forward, out_width);
    add(layer, names[2], 1, 2 * out_width);
    add(layer, names[3], 1, in_width);
}

void beside_evaluate(const struct workload_plan *plan, const struct machine *machine,
                     const struct mesh *mesh, struct roofline *roofline)
{
    static const char *const attention[] = {"attention.In", "attention.Out", "attention.dOut",
                                            "attention.dIn"};
    static const char *const mlp[] = {"mlp.In", "mlp.Out", "mlp.dOut", "mlp.dIn"};
    const struct roofline_group *tp = roofline_group_find(roofline, "tp");
    double const stages = mesh->axis[MESH_PP].size; /* Each has its share of the layers. */
    if (tp != NULL) {
        const struct model *model = &plan->model;
        double const tp_ranks = mesh->axis[MESH_TP].size;
        double const data_ranks = machine->chip_count / tp_ranks / stages;
        uint64_t const layers = model->layers + workload_predictors(plan);
        struct layer layer = {.roofline = roofline, .count = layers * plan->accumulate};
        layer.rows = (double)plan->batch_tokens / plan->accumulate / data_ranks;
        double const array =
            layer.rows * (double)model->width * format_bits(plan->formats.activations) / 8;
        layer.link_s = roofline_gather_s(plan, machine, &tp->group, array);
        layer.math_s_per_width =
            2 * layer.rows * (double)model->width / tp_ranks / roofline->math_flop_per_s;
        uint32_t const forward = plan->remat == WORKLOAD_REMAT_BLOCK ? 2 : 1;
        if (model->kind == MODEL_LLAMA) {
            double const held =
                (double)model->kv_heads > tp_ranks ? (double)model->kv_heads : tp_ranks;
            double const heads = (double)model->heads, head_width = (double)model->head_width;
            double const in = model->latent.kv_rank != 0
                                  ? (double)model_latent_columns(model) * tp_ranks
                                  : (heads + 2 * held) * head_width;
            add_block(&layer, attention, forward, in, heads * (double)model_value_width(model));
        }
        add_block(&layer, mlp, forward, (double)((model->matrices - 1) * model->mlp_width),
                  (double)model->mlp_width);
    }
    for (uint32_t i = 0; i < roofline->beside_count; i++) {
        const struct roofline_beside *beside = &roofline->beside[i];
        double const excess = beside->link_s - beside->math_s;
        if (excess > 0) roofline->tp_excess_s += excess * (double)beside->count / stages;
    }
    if (tp != NULL && !plan->collective_matmul) roofline->tp_excess_s = tp->time_s;
    double critical = roofline->math_s + roofline->tp_excess_s;
    const struct roofline_group *sequence = roofline_group_find(roofline, "sequence");
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
    const struct roofline_group *experts = roofline_group_find(roofline, "ep");
    if (experts != NULL) critical += experts->exchange_s;
    roofline->critical_s = critical > roofline->lower_s ? critical : roofline->lower_s;
    roofline->critical_s += roofline->latency_s;
}
