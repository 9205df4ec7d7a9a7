/* A layer's weights, as its graph has them: what is gathered and reduced as one. */
#include "sim/step/ranks.h"

#include <stdio.h>

#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/step/graph_terms.h"

struct units {
    const struct ranks *ranks;
    const struct graph *graph;
    struct ranks_layer *layer;
    uint8_t unit_of[GRAPH_TENSORS_MAX];      /* Of a weight. */
    uint8_t first_unit[GRAPH_BLOCKS_MAX];    /* Of a block. */
    uint8_t block_of[LAYER_BUCKETS_MAX];     /* Of a unit. */
    uint32_t block_places[GRAPH_BLOCKS_MAX]; /* Of matrices that all tokens meet. */
    uint64_t block_elements[GRAPH_BLOCKS_MAX];
};

static struct bucket *unit_add(struct ranks_layer *layer, const char *name)
{
    SIM_ASSERT(layer->bucket_count < LAYER_BUCKETS_MAX);
    struct bucket *bucket = &layer->bucket[layer->bucket_count++];
    *bucket = (struct bucket){.places = 0};
    (void)snprintf(bucket->name, sizeof bucket->name, "%s", name);
    return bucket;
}

/* --- By tensor --- */

/* Biases of a product: one for each of its columns, in each of its matrices. */
static uint64_t biases_of(const struct graph *graph, const struct graph_product *product)
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

static void matrix_add(struct units *units, const struct graph_product *product, uint8_t block,
                       uint32_t place)
{
    const struct graph_tensor *weight = &units->graph->tensor[product->weight];
    bool const biased = weight->grouped && units->ranks->plan->model.experts.biased;
    struct ranks_layer *layer = units->layer;
    if (!weight->columns_of_previous) (void)unit_add(layer, weight->at.name);
    uint8_t const index = (uint8_t)(layer->bucket_count - 1);
    struct bucket *bucket = &layer->bucket[index];
    bucket->places |= 1U << place;
    bucket->experts = weight->grouped;
    bucket->elements += graph_weight_elements(units->graph, product->weight);
    if (biased) bucket->elements += biases_of(units->graph, product);
    units->unit_of[product->weight] = index;
    units->block_of[index] = block;
    if (units->first_unit[block] == GRAPH_NONE) units->first_unit[block] = index;
    if (block == 0) layer->mixer_places |= 1U << place;
}

/* Ops of matrices have their places in the order of the forward pass. */
static void matrices_add(struct units *units)
{
    const struct graph *graph = units->graph;
    uint32_t place = 0;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (!op->kind->weights_apart) continue;
        SIM_ASSERT(place < MATRICES_MAX);
        for (uint8_t p = 0; p < op->as.matmul.product_count; p++)
            matrix_add(units, &op->as.matmul.product[p], op->block, place);
        place++;
    }
}

/* --- Weights in no matrix --- */

/* The unit that gives what is normed; of the stream, the first of the block. */
static uint8_t normed_unit(const struct units *units, const struct graph_op *norm, tensor in)
{
    const struct graph_op *maker = graph_maker(units->graph, in);
    for (uint8_t p = 0;
         maker != NULL && maker->kind->weights_apart && p < maker->as.matmul.product_count; p++)
        if (maker->as.matmul.product[p].out == in)
            return units->unit_of[maker->as.matmul.product[p].weight];
    return units->first_unit[norm->block];
}

/* Norms lie with the matrices that read the stream, or that give what is normed. Those of all D may
 * have biases; norms of latents have none. */
static void norms_add(struct units *units)
{
    const struct graph *graph = units->graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t w = 0; !op->kind->weights_apart && w < op->weight_count; w++) {
            uint8_t const bucket = normed_unit(units, op, op->in[w]);
            bool const whole = sharding_has(&graph->tensor[op->weight[w]].at, "D");
            units->layer->bucket[bucket].elements +=
                whole ? units->ranks->norm_elements : graph_weight_elements(graph, op->weight[w]);
        }
    }
}

/* Biases, and what else a model has for each head or channel. */
static void vectors_add(struct units *units)
{
    const struct ranks *ranks = units->ranks;
    const struct model_experts *experts = &ranks->plan->model.experts;
    uint8_t const last = (uint8_t)(units->graph->block_count - 1);
    struct bucket *first = &units->layer->bucket[units->first_unit[0]];
    struct bucket *of_last = &units->layer->bucket[units->first_unit[last]];
    first->elements += ranks->attention_vectors;
    if (!units->layer->experts)
        of_last->elements += ranks->mlp_vectors;
    else if (experts->router_biased)
        of_last->elements += experts->count;
}

/* --- Together --- */

/* Experts are reduced over other ranks than the rest, so they are units of their own. */
static void places_add(struct units *units, struct bucket *ret_experts)
{
    struct ranks_layer *layer = units->layer;
    *ret_experts = (struct bucket){.name = "W_experts", .experts = true};
    for (uint8_t u = 0; u < layer->bucket_count; u++) {
        const struct bucket *bucket = &layer->bucket[u];
        uint8_t const block = units->block_of[u];
        for (uint32_t p = 0; p < MATRICES_MAX; p++)
            if (bucket->places >> p & 1) layer->place_elements[p] += bucket->elements;
        if (bucket->experts) {
            ret_experts->places |= bucket->places;
            ret_experts->elements += bucket->elements;
            continue;
        }
        units->block_places[block] |= bucket->places;
        units->block_elements[block] += bucket->elements;
    }
    layer->expert_places = ret_experts->places;
}

static void together(struct units *units, const struct bucket *experts)
{
    struct ranks_layer *layer = units->layer;
    bool const whole = units->ranks->plan->gather == WORKLOAD_GATHER_LAYER;
    bool const shares = units->ranks->plan->model.experts.shared != 0;
    layer->bucket_count = 0;
    for (uint8_t block = 0; block < units->graph->block_count; block++) {
        const struct block *of = units->graph->block[block].block;
        const char *name = shares && of->bucket_shared != NULL ? of->bucket_shared : of->bucket;
        struct bucket *bucket =
            whole && block > 0 ? layer->bucket : unit_add(layer, whole ? "W_layer" : name);
        bucket->places |= units->block_places[block];
        bucket->elements += units->block_elements[block];
    }
    if (layer->experts) layer->bucket[layer->bucket_count++] = *experts;
}

static void layer_build(const struct ranks *ranks, uint64_t index, struct ranks_layer *layer)
{
    struct graph_terms terms;
    struct graph graph;
    struct bucket experts;
    graph_terms_of(ranks, index, &terms);
    block_write_layer(&terms, &ranks->plan->model, index, &graph);
    struct units units = {.ranks = ranks, .graph = &graph, .layer = layer};
    for (uint32_t b = 0; b < GRAPH_BLOCKS_MAX; b++) units.first_unit[b] = GRAPH_NONE;
    matrices_add(&units);
    norms_add(&units);
    vectors_add(&units);
    places_add(&units, &experts);
    if (ranks->plan->gather != WORKLOAD_GATHER_TENSOR) together(&units, &experts);
}

void ranks_buckets_build(struct ranks *ranks)
{
    const struct model *model = &ranks->plan->model;
    ranks->layer[LAYER_DENSE].count = model_dense_layers(model);
    ranks->layer[LAYER_MOE].count = model->layers - model_dense_layers(model);
    ranks->layer[LAYER_MOE].experts = true;
    for (uint32_t k = 0; k < LAYER_KINDS; k++)
        if (ranks->layer[k].count != 0)
            layer_build(ranks, k == LAYER_MOE ? model->layers - 1 : 0, &ranks->layer[k]);
}
