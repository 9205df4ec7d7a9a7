/* What layers ask of one chip: the sums over their graphs, as often as a step has them. */
#include "sim/graph/derive.h"
#include "sim/graph/op.h"
#include "sim/step/counts_parts.h"
#include "sim/step/graph_terms.h"

void counts_graph_derive(const struct letters *x, const struct graph_terms *terms,
                         enum block_part part, uint64_t layer, struct graph_count *ret_count)
{
    const struct chip *chip = &x->machine->chip;
    struct graph_derived derived;
    graph_derive(terms, &x->local->plan->model, part, layer, &derived);
    graph_count(&derived.sharded, &derived.backward, &derived.kept,
                (struct work_edges){WORK_EDGE_ROWS, chip->mxu_rows, chip->mxu_columns}, ret_count);
}

/* A layer of a kind; any of them, as they differ by their windows alone. */
static void layer_derive(const struct letters *x, uint32_t kind, bool windowed,
                         struct graph_count *ret_count)
{
    const struct model *model = &x->local->plan->model;
    uint64_t const layer = kind == LOCAL_EXPERTS ? model->layers - 1 : 0;
    struct graph_terms terms;
    graph_terms_of(x->local, layer, &terms);
    terms.sequence.window = windowed ? model->window : 0;
    counts_graph_derive(x, &terms, BLOCK_LAYER, layer, ret_count);
}

/* Experts, and all else. */
static void elements_add(struct letters *x, uint32_t kind)
{
    const struct local_layer *layer = &x->local->layer[kind];
    uint64_t elements = 0, experts = 0;
    for (uint32_t p = 0; p < LOCAL_PLACES_MAX; p++)
        *((layer->expert_places >> p & 1) != 0 ? &experts : &elements) += layer->place_elements[p];
    *(kind == LOCAL_DENSE ? &x->layer_elements : &x->sparse_elements) = (double)elements;
    if (kind == LOCAL_EXPERTS) x->expert_elements = (double)experts;
}

void counts_layers_letters(struct letters *x)
{
    const struct local *local = x->local;
    const struct model *model = &local->plan->model;
    for (uint64_t layer = 0; layer < model->layers; layer++) {
        uint32_t const kind = layer < model_dense_layers(model) ? LOCAL_DENSE : LOCAL_EXPERTS;
        x->like[kind][local_layer_is_windowed(local, layer)].count++;
    }
    x->like[local_last_kind(local)][0].count += local->predictors;
    for (uint32_t kind = 0; kind < LOCAL_KINDS; kind++)
        for (uint32_t windowed = 0; windowed < 2; windowed++) {
            struct counts_layers *like = &x->like[kind][windowed];
            if (like->count == 0) continue;
            layer_derive(x, kind, windowed, &like->graph);
            elements_add(x, kind);
        }
}

static void compute_add(const struct letters *x, double times, const struct graph_compute_sum *sum,
                        struct workload_counts *counts)
{
    const struct workload_plan *plan = x->local->plan;
    bool const linear = sum->kind->weights_apart && sum->format == plan->formats.matmuls;
    bool const uneven = local_experts_drawn(x->local) || plan->capacity_ppm != 0;
    counts->matmul_flop += times * (double)sum->flop;
    counts->padded_flop += times * (double)sum->padded_flop;
    if (linear) counts->linear_flop += times * (double)sum->flop;
    if (linear) counts->padded_linear_flop += times * (double)sum->padded_flop;
    counts->matmul_useful += times * (double)sum->useful_flop;
    counts->matmul_copies += times * (double)sum->spare.copies;
    counts->matmul_padding += times * (double)sum->spare.padding;
    /* Else rows are only rounded up. */
    if (uneven) counts->matmul_uneven += times * (double)sum->spare.rows;
    counts->matmul_flash += times * (double)sum->spare.again;
    counts->matmul_waiting += times * (double)sum->spare.waiting;
    /* Products without weights are attention's. */
    if (!sum->kind->weights_apart)
        counts->useful_attention_flop += times * (double)sum->useful_flop;
    counts->vector_flop += times * (double)sum->vector_flop;
    counts->hbm_bytes += times * (double)sum->hbm_bytes;
    counts->compute_count += times * (double)sum->count;
}

static void traffic_add(struct workload_traffic *traffic, enum collective_kind kind, uint64_t count,
                        double bytes)
{
    struct {
        enum collective_kind kind;
        uint64_t *count;
        double *bytes;
    } const rows[] = {
        {COLLECTIVE_ALL_GATHER, &traffic->gather_count, &traffic->gather_bytes},
        {COLLECTIVE_REDUCE_SCATTER, &traffic->scatter_count, &traffic->scatter_bytes},
        {COLLECTIVE_ALL_REDUCE, &traffic->all_reduce_count, &traffic->all_reduce_bytes},
        {COLLECTIVE_ALL_TO_ALL, &traffic->all_to_all_count, &traffic->all_to_all_bytes},
        {COLLECTIVE_PERMUTE, &traffic->permute_count, &traffic->permute_bytes},
    };
    size_t const row_count = sizeof rows / sizeof *rows;
    size_t i = 0;
    while (i < row_count && rows[i].kind != kind) i++;
    SIM_ASSERT(i < row_count);
    *rows[i].count += count;
    *rows[i].bytes += bytes;
}

/* V of what a layer with experts moves over tp, forward. */
static void rows_set(const struct graph_move_sum *sum, struct workload_counts *counts)
{
    double const bytes = (double)sum->bytes;
    if (sum->pass != OP_FORWARD) return;
    if (sum->collective == COLLECTIVE_ALL_REDUCE) counts->tp_logits_bytes = bytes;
    if (sum->kind == &op_kind_exchange) counts->tp_rows_bytes = bytes;
    if (sum->kind == &op_kind_sort) counts->tp_outputs_bytes = bytes;
}

static void move_add(const struct letters *x, uint64_t layers, const struct graph_move_sum *sum,
                     struct workload_counts *counts)
{
    const struct local *local = x->local;
    bool const summed_once = sum->axis == OP_AXIS_HOLDERS && local->gradient_shards == 1;
    uint64_t const times = layers * (summed_once ? local->copies : local->plan->accumulate);
    uint64_t const count = times * sum->count;
    double const bytes = (double)times * (double)sum->bytes;
    switch (sum->axis) {
    case OP_AXIS_TP:
        traffic_add(&counts->role[MESH_TP], sum->collective, count, bytes);
        counts->tp_critical_count += count;
        rows_set(sum, counts);
        break;
    case OP_AXIS_EP:
        counts_exchange(x, count, bytes, counts);
        break;
    case OP_AXIS_SEQUENCE:
        traffic_add(&counts->sequence, sum->collective, count, bytes);
        if (local_rings(local)) counts->sequence.algorithm = local->ring_name;
        break;
    case OP_AXIS_HOLDERS:
        traffic_add(&counts->kv, sum->collective, count, bytes);
        break;
    }
}

void counts_graph_add(const struct letters *x, const struct counts_layers *like,
                      struct workload_counts *counts)
{
    const struct graph_count *graph = &like->graph;
    for (uint32_t i = 0; i < graph->compute_count; i++)
        compute_add(x, x->microbatches * (double)like->count, &graph->compute[i], counts);
    for (uint32_t i = 0; i < graph->move_count; i++)
        move_add(x, like->count, &graph->move[i], counts);
}

static void like_add(const struct letters *x, const struct counts_layers *like,
                     struct workload_counts *counts)
{
    counts_graph_add(x, like, counts);
    counts->activation_bytes +=
        (double)like->count * (double)(like->graph.kept_bytes + like->graph.framework_bytes);
}

void counts_layers(const struct letters *x, struct workload_counts *counts)
{
    for (uint32_t kind = 0; kind < LOCAL_KINDS; kind++)
        for (uint32_t windowed = 0; windowed < 2; windowed++)
            if (x->like[kind][windowed].count != 0) like_add(x, &x->like[kind][windowed], counts);
}
