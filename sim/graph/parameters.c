#include "sim/graph/parameters.h"

#include "sim/graph/block.h"
#include "sim/graph/op.h"

uint64_t graph_bias_elements(const struct graph *graph, const struct graph_product *product)
{
    const struct sharding *left = &graph->tensor[product->left].at;
    const struct sharding weight =
        sharding_gathered(&graph->tensor[product->weight].at, graph->terms->axis_x);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < weight.dimension_count; d++)
        if (!sharding_has(left, weight.dimension[d].name))
            elements *= sharding_local_size(&graph->terms->mesh, &weight.dimension[d]);
    return elements;
}

/* Whether a weight has a dimension that says so. */
static bool is_counted(const struct graph_terms *terms, const struct sharding *weight,
                       enum graph_counted counted)
{
    for (uint32_t d = 0; d < weight->dimension_count; d++)
        if (graph_dimension_of(terms, weight->dimension[d].name)->counted == counted) return true;
    return false;
}

uint64_t graph_norm_elements(const struct graph *graph, const struct model *model, tensor weight)
{
    bool const whole = is_counted(graph->terms, &graph->tensor[weight].at, GRAPH_COUNTED_STREAM);
    return graph_weight_elements(graph, weight) * (whole ? 1 + model->norm_biases : 1);
}

uint64_t graph_attention_vectors(const struct model *model)
{
    uint64_t const q = model->heads * model->head_width, k = model->kv_heads * model->head_width;
    uint64_t const v = model->kv_heads * model_value_width(model);
    return model->vectors.attention + model->vectors.qk * (q + k) + model->vectors.v * v;
}

/* --- Layers --- */

/* Matrices whose dimensions say nothing are attention's, or, of blocks that mix channels, the
 * router's. */
static uint64_t *matrix_count(const struct graph_terms *terms, const struct graph_tensor *weight,
                              bool mixes_channels, struct model_counts *counts)
{
    return weight->grouped                                        ? &counts->experts_layer
           : is_counted(terms, &weight->at, GRAPH_COUNTED_SHARED) ? &counts->shared_layer
           : is_counted(terms, &weight->at, GRAPH_COUNTED_MLP)    ? &counts->mlp_layer
           : mixes_channels                                       ? &counts->router_layer
                                                                  : &counts->attention_layer;
}

/* Matrices and norms. `biases`: of experts, one for each column. */
static void layer_add(const struct graph_terms *terms, const struct model *model, uint64_t layer,
                      struct model_counts *counts, uint64_t *ret_biases)
{
    struct graph graph;
    block_write_layer(terms, model, layer, &graph);
    for (uint8_t i = 0; i < graph.op_count; i++) {
        const struct graph_op *op = &graph.op[i];
        bool const channels = graph.block[op->block].block->place == BLOCK_MIXES_CHANNELS;
        for (uint8_t w = 0; w < op->weight_count; w++) {
            const struct graph_tensor *weight = &graph.tensor[op->weight[w]];
            bool const of_stream = is_counted(terms, &weight->at, GRAPH_COUNTED_STREAM);
            if (op->kind->weights_apart)
                *matrix_count(terms, weight, channels, counts) +=
                    graph_weight_elements(&graph, op->weight[w]);
            else
                *(of_stream ? &counts->norm_layer : &counts->attention_layer) +=
                    graph_norm_elements(&graph, model, op->weight[w]);
        }
        for (uint8_t p = 0; p < op->product_count; p++)
            if (graph.tensor[op->as.matmul.product[p].weight].grouped)
                *ret_biases += graph_bias_elements(&graph, &op->as.matmul.product[p]);
    }
}

/* What a layer has of attention that takes its keys and values from another one. */
static uint64_t borrower_count(const struct graph_terms *terms, const struct model *model)
{
    struct graph_terms borrows = *terms;
    struct model_counts counts = {0};
    uint64_t biases = 0;
    borrows.borrows = true;
    layer_add(&borrows, model, 0, &counts, &biases);
    return counts.attention_layer + graph_attention_vectors(model);
}

/* Layers of both kinds have the same attention and norms. */
static void layers_count(const struct graph_terms *terms, const struct model *model,
                         struct model_counts *counts)
{
    const struct model_experts *experts = &model->experts;
    struct model_counts dense = {0}, sparse = {0};
    uint64_t none = 0, biases = 0;
    if (counts->mlp_layers != 0) layer_add(terms, model, 0, &dense, &none);
    if (counts->expert_layers != 0) layer_add(terms, model, model->layers - 1, &sparse, &biases);
    const struct model_counts *any = counts->mlp_layers != 0 ? &dense : &sparse;
    counts->attention_layer = any->attention_layer + graph_attention_vectors(model);
    counts->borrowers = model_borrowing_layers(model);
    if (counts->borrowers != 0) counts->attention_borrower = borrower_count(terms, model);
    counts->norm_layer = any->norm_layer;
    counts->mlp_layer = dense.mlp_layer + model->vectors.mlp;
    if (experts->count == 0) return;
    counts->router_layer = sparse.router_layer + experts->router_biased * experts->count;
    counts->experts_layer = sparse.experts_layer + experts->biased * biases;
    counts->shared_layer =
        sparse.shared_layer + experts->biased * experts->shared * (biases / experts->count);
}

/* --- Ends --- */

/* Matrices of a part's last block in their order, and its norms. */
struct part_sum {
    uint64_t matrix[GRAPH_ARRAYS_MAX];
    uint64_t norms;
};

static struct part_sum part_sum(const struct graph_terms *terms, const struct model *model,
                                enum block_part part)
{
    struct part_sum sum = {.norms = 0};
    struct graph graph;
    uint32_t count = 0;
    block_write_part(terms, model, part, model->layers - 1, &graph);
    for (uint8_t i = 0; i < graph.op_count; i++) {
        const struct graph_op *op = &graph.op[i];
        for (uint8_t w = 0; op->block + 1 == graph.block_count && w < op->weight_count; w++)
            if (graph.tensor[op->weight[w]].at.dimension_count > 1)
                sum.matrix[count++] = graph_weight_elements(&graph, op->weight[w]);
            else
                sum.norms += graph_norm_elements(&graph, model, op->weight[w]);
    }
    return sum;
}

static void ends_count(const struct graph_terms *terms, const struct model *model,
                       struct model_counts *counts)
{
    struct part_sum const rows = part_sum(terms, model, BLOCK_EMBEDDING),
                          head = part_sum(terms, model, BLOCK_HEAD);
    counts->embedding = rows.matrix[0];
    counts->positions = rows.matrix[1];
    counts->head_matrix = model->tied ? 0 : head.matrix[0];
    counts->head = counts->head_matrix + model->vectors.head;
    counts->norm_final = head.norms;
}

/* A module has a projection, a layer like the last, and norms: of both that it joins, and before
 * the model's head. */
static void modules_count(const struct graph_terms *terms, const struct model *model,
                          uint64_t layer, uint64_t idle, struct model_counts *counts)
{
    struct part_sum const own = part_sum(terms, model, BLOCK_MTP);
    uint64_t const module = own.matrix[0] + own.norms + counts->norm_final + layer;
    counts->mtp_modules = model->mtp_modules * module;
    counts->mtp_active = model->mtp_modules * (module - idle + counts->embedding);
}

struct model_counts model_count(const struct model *model)
{
    const struct model_experts *experts = &model->experts;
    struct model_counts counts = {.mlp_layers = model_dense_layers(model)};
    struct graph_terms terms = {
        .ranks = 1, .ranks_y = 1, .ranks_w = 1, .ranks_exchange = 1, .sequence = {.parts = 1}};
    counts.expert_layers = model->layers - counts.mlp_layers;
    graph_dimensions_begin(model, &terms);
    layers_count(&terms, model, &counts);
    if (model->kind == MODEL_DECODER) ends_count(&terms, model, &counts);
    uint64_t const both = counts.attention_layer + counts.norm_layer;
    uint64_t const layer = both + counts.router_layer + counts.experts_layer + counts.shared_layer;
    uint64_t const idle = experts->count == 0 ? 0
                                              : counts.experts_layer / experts->count *
                                                    (experts->count - experts->top_k);
    counts.total = counts.embedding + counts.positions + counts.head + counts.norm_final +
                   counts.mlp_layers * (both + counts.mlp_layer) + counts.expert_layers * layer;
    counts.total -= counts.borrowers * (counts.attention_layer - counts.attention_borrower);
    counts.active = counts.total - counts.expert_layers * idle;
    if (model->mtp_modules != 0) modules_count(&terms, model, layer, idle, &counts);
    return counts;
}
