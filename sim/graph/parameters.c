#include "sim/graph/parameters.h"

#include "sim/graph/block.h"
#include "sim/graph/op.h"

uint64_t graph_vector_elements(const struct graph *graph, const struct graph_vector *vector)
{
    uint64_t elements = 1;
    for (uint32_t d = 0; d < vector->at.dimension_count; d++)
        elements *= graph_dimension_of(graph->terms, vector->at.dimension[d].name)->useful;
    return elements;
}

/* Whether a weight has a dimension that counts as `counted`. */
static bool is_counted(const struct graph_terms *terms, const struct sharding *weight,
                       enum graph_counted counted)
{
    for (uint32_t d = 0; d < weight->dimension_count; d++)
        if (graph_dimension_of(terms, weight->dimension[d].name)->counted == counted) return true;
    return false;
}

uint64_t graph_norm_elements(const struct graph *graph, tensor weight)
{
    return graph_weight_elements(graph, weight) * (graph->tensor[weight].biased ? 2 : 1);
}

/* --- Layers --- */

/* What a weight counts with. Where its dimensions say nothing it is attention's, or, in a block
 * that mixes channels, the router's. */
static uint64_t *part_of(const struct graph *graph, const struct sharding *at, bool grouped,
                         uint8_t block, struct model_counts *counts)
{
    const struct graph_terms *terms = graph->terms;
    bool const channels = graph->block[block].block->place == BLOCK_MIXES_CHANNELS;
    return grouped                                       ? &counts->experts_layer
           : is_counted(terms, at, GRAPH_COUNTED_SHARED) ? &counts->shared_layer
           : is_counted(terms, at, GRAPH_COUNTED_MLP)    ? &counts->mlp_layer
           : channels                                    ? &counts->router_layer
                                                         : &counts->attention_layer;
}

/* Biases count as their matrix does. */
static void vectors_add(const struct graph *graph, struct model_counts *counts)
{
    for (uint8_t v = 0; v < graph->vector_count; v++) {
        const struct graph_vector *vector = &graph->vector[v];
        bool const biases = vector->matrix != GRAPH_NONE;
        const struct graph_tensor *matrix = biases ? &graph->tensor[vector->matrix] : NULL;
        *part_of(graph, biases ? &matrix->at : &vector->at, biases && matrix->grouped,
                 vector->block, counts) += graph_vector_elements(graph, vector);
    }
}

/* Adds all weights of a layer. */
static void layer_add(const struct graph_terms *terms, const struct model *model,
                      struct model_counts *counts)
{
    struct graph graph;
    block_write_layer(terms, model, &graph);
    for (uint8_t i = 0; i < graph.op_count; i++) {
        const struct graph_op *op = &graph.op[i];
        for (uint8_t w = 0; w < op->weight_count; w++) {
            const struct graph_tensor *weight = &graph.tensor[op->weight[w]];
            bool const matrix = op->kind->weights_apart;
            bool const of_stream = is_counted(terms, &weight->at, GRAPH_COUNTED_STREAM);
            uint64_t *part = !matrix && of_stream
                                 ? &counts->norm_layer
                                 : part_of(&graph, &weight->at, weight->grouped, op->block, counts);
            *part += matrix ? graph_weight_elements(&graph, op->weight[w])
                            : graph_norm_elements(&graph, op->weight[w]);
        }
    }
    vectors_add(&graph, counts);
}

/* Multiplications of attention for a query and a key. */
static uint64_t attention_columns(const struct graph *graph)
{
    uint64_t columns = 0;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->kind->attends)
            columns += graph_elements(graph, &graph->tensor[op->in[0]].at, 0) +
                       graph_elements(graph, &graph->tensor[op->out[0]].at, 0);
    }
    return columns;
}

/* Counts what attention multiplies, and columns of a token in the cache, in the first layer: in the
 * first pass of prompts, and in later passes. */
static void cache_count(const struct graph_terms *terms, const struct model *model,
                        struct model_counts *counts)
{
    struct graph graph;
    struct graph_terms serves = *terms;
    serves.cache = (struct graph_cache){.is_there = true,
                                        .begins = true,
                                        .batch_ways = 1,
                                        .sequence_ways = 1,
                                        .context_ways = 1,
                                        .prompt_ways = 1};
    graph_dimension_set(&serves, "Sc", 1, 1);
    serves.layer = model_layer_kind(model, 0, 0);
    block_write_layer(&serves, model, &graph);
    for (uint8_t t = 0; t < graph.tensor_count; t++)
        if (graph.tensor[t].role == GRAPH_CACHE)
            counts->cache_columns += graph_elements(&graph, &graph.tensor[t].at, 0);
    counts->attention_columns = counts->decode_columns = attention_columns(&graph);
    if (!model_has_mla(model)) return;
    serves.cache.begins = false;
    block_write_layer(&serves, model, &graph);
    counts->decode_columns = attention_columns(&graph);
}

/* A layer of the terms' kind. */
static struct model_counts counts_of_layer(const struct graph_terms *terms,
                                           const struct model *model)
{
    const struct model_experts *experts = &model->experts;
    struct model_counts layer = {.total = 0};
    layer_add(terms, model, &layer);
    uint64_t const idle = terms->layer.experts ? layer.experts_layer / experts->count *
                                                     (experts->count - experts->top_k)
                                               : 0;
    layer.total = layer.attention_layer + layer.norm_layer + layer.mlp_layer + layer.router_layer +
                  layer.experts_layer + layer.shared_layer;
    layer.active = layer.total - idle;
    return layer;
}

/* Layers of all kinds have the same norms. */
static void layers_count(const struct graph_terms *terms, const struct model *model,
                         struct model_counts *counts)
{
    struct layer_kinds const kinds = model_layer_kinds(model, 0);
    for (uint32_t kind = 0; kind < kinds.count; kind++) {
        struct graph_terms of = *terms;
        of.layer = kinds.kind[kind];
        struct model_counts const layer = counts_of_layer(&of, model);
        uint64_t const layers = kinds.layers[kind];
        *(of.layer.borrows ? &counts->attention_borrower : &counts->attention_layer) =
            layer.attention_layer;
        counts->borrowers += of.layer.borrows ? layers : 0;
        *(of.layer.experts ? &counts->expert_layers : &counts->mlp_layers) += layers;
        counts->norm_layer = layer.norm_layer;
        if (!of.layer.experts) {
            counts->mlp_layer = layer.mlp_layer;
        } else {
            counts->router_layer = layer.router_layer;
            counts->experts_layer = layer.experts_layer;
            counts->shared_layer = layer.shared_layer;
        }
        counts->total += layers * layer.total;
        counts->active += layers * layer.active;
    }
}

/* --- Ends --- */

uint64_t graph_last_vectors(const struct graph *graph)
{
    uint64_t elements = 0;
    for (uint8_t v = 0; v < graph->vector_count; v++)
        if (graph->vector[v].block + 1 == graph->block_count)
            elements += graph_vector_elements(graph, &graph->vector[v]);
    return elements;
}

/* Weights of a part's last block: its first matrix, all others, norms, and what lies in neither. */
struct part_sum {
    uint64_t matrix, matrices_behind;
    uint64_t norms, vectors;
};

static struct part_sum part_sum(const struct graph *graph)
{
    struct part_sum sum = {.vectors = graph_last_vectors(graph)};
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t w = 0; op->block + 1 == graph->block_count && w < op->weight_count; w++) {
            bool const matrix = graph->tensor[op->weight[w]].at.dimension_count > 1;
            uint64_t *of = !matrix           ? &sum.norms
                           : sum.matrix == 0 ? &sum.matrix
                                             : &sum.matrices_behind;
            *of += matrix ? graph_weight_elements(graph, op->weight[w])
                          : graph_norm_elements(graph, op->weight[w]);
        }
    }
    return sum;
}

void graph_ends_count(const struct graph *embedding, const struct graph *head,
                      const struct model *model, struct model_counts *counts)
{
    struct part_sum const rows = part_sum(embedding), last = part_sum(head);
    counts->embedding = rows.matrix;
    counts->positions = rows.matrices_behind;
    counts->norm_embedding = rows.norms;
    counts->head_matrix = model->tied ? 0 : last.matrix;
    counts->head = counts->head_matrix + last.matrices_behind + last.vectors;
    counts->norm_final = last.norms;
    counts->total += counts->embedding + counts->positions + counts->norm_embedding + counts->head +
                     counts->norm_final;
}

static void ends_count(const struct graph_terms *terms, const struct model *model,
                       struct model_counts *counts)
{
    struct graph embedding, head;
    block_write_part(terms, model, BLOCK_EMBEDDING, &embedding);
    block_write_part(terms, model, BLOCK_HEAD, &head);
    graph_ends_count(&embedding, &head, model, counts);
}

/* A module has a projection, a layer like the last, and norms: of both that it joins, and before
 * the model's head. */
static void modules_count(const struct graph_terms *terms, const struct model *model,
                          struct model_counts *counts)
{
    struct graph graph;
    struct graph_terms of = *terms;
    of.layer = model_layer_kind(model, model->layers - 1, 0);
    block_write_part(&of, model, BLOCK_MTP, &graph);
    struct part_sum const own = part_sum(&graph);
    struct model_counts const layer = counts_of_layer(&of, model);
    uint64_t const others = own.matrix + own.matrices_behind + own.norms + counts->norm_final;
    counts->mtp_modules = model->mtp_modules * (others + layer.total);
    counts->mtp_active = model->mtp_modules * (others + layer.active + counts->embedding);
}

struct model_counts model_count(const struct model *model)
{
    struct model_counts counts = {.total = 0};
    struct graph_terms terms = {
        .ranks = 1, .ranks_y = 1, .ranks_w = 1, .ranks_exchange = 1, .sequence = {.parts = 1}};
    graph_dimensions_begin(model, &terms);
    layers_count(&terms, model, &counts);
    cache_count(&terms, model, &counts);
    uint64_t const of_layers = counts.total;
    if (model->kind == MODEL_DECODER) ends_count(&terms, model, &counts);
    counts.active += counts.total - of_layers;
    if (model->mtp_modules != 0) modules_count(&terms, model, &counts);
    return counts;
}
