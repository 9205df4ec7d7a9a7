/* Weights as the graphs of a model's parts have them: what is gathered and reduced as one. */
#include "sim/step/ranks.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/graph/op.h"
#include "sim/graph/parameters.h"
#include "sim/step/graph_terms.h"
#include "sim/step/limits.h"

/* A layer's matrices. */
struct matrices {
    const struct ranks *ranks;
    const struct graph *graph;
    struct ranks_layer *layer;
    uint8_t bucket[GRAPH_TENSORS_MAX];         /* [tensor]; GRAPH_NONE: no op so far has it. */
    uint8_t place[GRAPH_TENSORS_MAX];          /* [tensor]: of the first op that has it. */
    tensor first[GRAPH_BLOCKS_MAX];            /* The block's first. */
    uint8_t block_bucket[GRAPH_BLOCKS_MAX][2]; /* [block][experts]; GRAPH_NONE: not yet. */
};

static struct bucket bucket_of(const char *name, enum format format)
{
    struct bucket bucket = {.format = format};
    (void)snprintf(bucket.name, sizeof bucket.name, "%s", name);
    return bucket;
}

/* Adds to a matrix what travels with it. */
static void elements_add(struct matrices *matrices, tensor matrix, uint64_t elements)
{
    matrices->layer->bucket[matrices->bucket[matrix]].elements += elements;
    matrices->layer->place_elements[matrices->place[matrix]] += elements;
}

/* --- Matrices --- */

/* What a matrix travels with: by itself, or with its block's, or the layer's. Experts are reduced
 * over other ranks than the rest, so they are apart. */
static uint8_t bucket_find(struct matrices *matrices, const struct graph_tensor *weight,
                           uint8_t block)
{
    const struct workload_plan *plan = matrices->ranks->plan;
    const struct block *of = matrices->graph->block[block].block;
    bool const alone = plan->gather == WORKLOAD_GATHER_TENSOR;
    bool const whole = plan->gather == WORKLOAD_GATHER_LAYER;
    bool const shares = plan->model.experts.shared != 0 && of->bucket_shared != NULL;
    struct ranks_layer *layer = matrices->layer;
    uint8_t *at = &matrices->block_bucket[whole ? 0 : block][weight->grouped];
    if (alone ? weight->columns_of_previous : *at != GRAPH_NONE) return *at;
    SIM_ASSERT(layer->bucket_count < LAYER_BUCKETS_MAX);
    layer->bucket[layer->bucket_count] = bucket_of(alone             ? weight->at.name
                                                   : weight->grouped ? "W_experts"
                                                   : whole           ? "W_layer"
                                                   : shares          ? of->bucket_shared
                                                                     : of->bucket,
                                                   weight->format);
    layer->bucket[layer->bucket_count].experts = weight->grouped;
    return *at = (uint8_t)layer->bucket_count++;
}

static void matrix_add(struct matrices *matrices, const struct graph_product *product,
                       uint8_t block, uint8_t place)
{
    const struct graph *graph = matrices->graph;
    const struct graph_tensor *weight = &graph->tensor[product->weight];
    struct ranks_layer *layer = matrices->layer;
    bool const again = matrices->bucket[product->weight] != GRAPH_NONE;
    uint8_t const bucket =
        again ? matrices->bucket[product->weight] : bucket_find(matrices, weight, block);
    if (matrices->first[block] == GRAPH_NONE) matrices->first[block] = product->weight;
    layer->bucket[bucket].places |= 1U << place;
    if (block == 0) layer->mixer_places |= 1U << place;
    if (weight->grouped) layer->expert_places |= 1U << place;
    if (again) return; /* It lies there once. */
    matrices->bucket[product->weight] = bucket;
    matrices->place[product->weight] = place;
    elements_add(matrices, product->weight, graph_weight_elements(graph, product->weight));
}

/* --- Weights in no matrix --- */

/* They lie with the tokens between blocks: in parts, like the columns of D, or whole. */
static uint64_t vector_share(const struct ranks *ranks, uint64_t elements)
{
    return units_ceil_divide(elements, ranks_of_width(ranks));
}

/* A norm lies with the matrix that gives what is normed; of the stream, the first of the block. */
static tensor normed_matrix(const struct matrices *matrices, const struct graph_op *norm, tensor in)
{
    const struct graph_op *maker = graph_maker(matrices->graph, in);
    if (maker != NULL && maker->kind->weights_apart)
        for (uint8_t p = 0; p < maker->product_count; p++)
            if (maker->as.matmul.product[p].out == in) return maker->as.matmul.product[p].weight;
    return matrices->first[norm->block];
}

static void norms_add(struct matrices *matrices)
{
    const struct graph *graph = matrices->graph;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t w = 0; !op->kind->weights_apart && w < op->weight_count; w++)
            elements_add(matrices, normed_matrix(matrices, op, op->in[w]),
                         graph_norm_elements(graph, op->weight[w]));
    }
}

/* Experts' biases lie with their matrix, all others with the first one of the block. */
static void vectors_add(struct matrices *matrices)
{
    const struct graph *graph = matrices->graph;
    uint64_t parts[GRAPH_BLOCKS_MAX] = {0};
    for (uint8_t v = 0; v < graph->vector_count; v++) {
        const struct graph_vector *vector = &graph->vector[v];
        if (vector->matrix != GRAPH_NONE && graph->tensor[vector->matrix].grouped)
            elements_add(matrices, vector->matrix, graph_elements(graph, &vector->at, 0));
        else if (vector->whole)
            elements_add(matrices, matrices->first[vector->block],
                         graph_vector_elements(graph, vector));
        else
            parts[vector->block] += graph_vector_elements(graph, vector);
    }
    for (uint8_t b = 0; b < graph->block_count; b++)
        if (parts[b] != 0)
            elements_add(matrices, matrices->first[b], vector_share(matrices->ranks, parts[b]));
}

/* Ops of matrices have their places in the order of the forward pass. */
static struct ranks_layer layer_build(const struct ranks *ranks,
                                      const struct graph_derived *derived)
{
    const struct graph *graph = &derived->graph;
    struct ranks_layer layer = {.bucket_count = 0};
    struct matrices matrices = {.ranks = ranks, .graph = graph, .layer = &layer};
    uint8_t place = 0;
    memset(matrices.first, GRAPH_NONE, sizeof matrices.first);
    memset(matrices.bucket, GRAPH_NONE, sizeof matrices.bucket);
    memset(matrices.block_bucket, GRAPH_NONE, sizeof matrices.block_bucket);
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (!op->kind->weights_apart) continue;
        SIM_ASSERT(place < MATRICES_MAX);
        for (uint8_t p = 0; p < op->product_count; p++)
            matrix_add(&matrices, &op->as.matmul.product[p], op->block, place);
        place++;
    }
    norms_add(&matrices);
    vectors_add(&matrices);
    for (uint8_t b = 0; b < graph->block_count; b++)
        layer.sums_parts |= graph_partial_of(&derived->sharded, &derived->backward, b).ranks > 1;
    return layer;
}

static bool buckets_equal(const struct bucket *one, const struct bucket *other)
{
    return memcmp(one->name, other->name, sizeof one->name) == 0 && one->places == other->places &&
           one->elements == other->elements && one->format == other->format &&
           one->experts == other->experts;
}

/* Whether two layers have the same weights, which are then gathered, reduced and updated alike. */
static bool weights_equal(const struct ranks_layer *one, const struct ranks_layer *other)
{
    bool equal =
        one->bucket_count == other->bucket_count && one->sums_parts == other->sums_parts &&
        memcmp(one->place_elements, other->place_elements, sizeof one->place_elements) == 0;
    for (uint32_t u = 0; equal && u < one->bucket_count; u++)
        equal = buckets_equal(&one->bucket[u], &other->bucket[u]);
    return equal;
}

static void weights_find(struct ranks *ranks)
{
    for (uint8_t kind = 0; kind < ranks->kinds.count; kind++) {
        uint8_t same = 0;
        while (same < kind && !weights_equal(&ranks->layer[same], &ranks->layer[kind])) same++;
        ranks->layer[kind].weights = same;
    }
}

/* --- Ends --- */

/* The weights of a part's last block. A tied head has the embedding's. */
static struct ranks_end end_build(const struct ranks *ranks, const struct graph *graph,
                                  enum block_part part)
{
    enum block_part const of = part == BLOCK_HEAD && ranks->tie.here ? BLOCK_EMBEDDING : part;
    const struct block *last = graph->block[graph->block_count - 1].block;
    struct ranks_end end = {.read = bucket_of(last->bucket, ranks->plan->formats.weights)};
    end.read.end = (uint8_t)(1 + of);
    end.biases = units_ceil_divide(graph_last_vectors(graph), ranks->tp);
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t w = 0; op->block + 1 == graph->block_count && w < op->weight_count; w++) {
            uint64_t const elements = graph_weight_elements(graph, op->weight[w]);
            bool const matrix = op->kind->weights_apart;
            if (matrix && w == 0) end.matrix = elements;
            if (matrix) end.read.format = graph->tensor[op->weight[w]].format;
            end.read.elements += matrix ? elements : graph_norm_elements(graph, op->weight[w]);
        }
    }
    end.bucket = end.read;
    return end;
}

/* What a part shares with another. A module has a norm as the head has, behind which the head is
 * the model's. Tied, all that the head has in addition to the matrix lies with the embedding. */
static void ends_complete(struct ranks *ranks)
{
    struct ranks_end *embedding = &ranks->end[BLOCK_EMBEDDING], *head = &ranks->end[BLOCK_HEAD];
    struct bucket *module = &ranks->end[BLOCK_MTP].bucket;
    if (module->elements > 0) module->elements += head->read.elements - head->matrix;
    ranks->end[BLOCK_MTP].read = *module;
    head->read.elements += head->biases;
    if (ranks->tie.here) {
        memcpy(head->read.name, embedding->read.name, sizeof head->read.name);
        embedding->bucket.elements += head->read.elements - head->matrix;
    }
    head->bucket = ranks->tie.here ? embedding->bucket : head->read;
}

/* --- All parts --- */

static enum status part_build(struct ranks *ranks, const struct step_part *part,
                              struct step_graph *room, units_wide *bytes, struct error *reterr)
{
    const struct graph_derived *derived = &room->derived;
    step_graph_derive(ranks, part, room);
    STATUS_TRY(limits_part_check(ranks, derived, part->count, bytes, reterr));
    if (part->part == BLOCK_LAYER)
        ranks->layer[part->kind] = layer_build(ranks, derived);
    else
        ranks->end[part->part] = end_build(ranks, &derived->graph, part->part);
    return STATUS_OK;
}

enum status ranks_buckets_build(struct arena *arena, struct ranks *ranks, struct error *reterr)
{
    struct step_part part[STEP_PARTS_MAX];
    struct step_graph room, *graph = NULL;
    void *memory = NULL;
    units_wide bytes = 0;
    uint32_t const count = step_parts(ranks, part);
    if (arena != NULL) STATUS_TRY(arena_try_unset(arena, count, sizeof *graph, &memory, reterr));
    graph = memory;
    for (uint32_t i = 0; i < count; i++)
        STATUS_TRY(part_build(ranks, &part[i], graph == NULL ? &room : &graph[i], &bytes, reterr));
    ranks->pass.graph = graph;
    ranks->pass.graph_count = graph == NULL ? 0 : count;
    weights_find(ranks);
    ends_complete(ranks);
    return STATUS_OK;
}

enum status ranks_places_build(struct ranks *ranks, struct error *reterr)
{
    struct step_part part[STEP_PARTS_MAX];
    struct step_graph room;
    units_wide bytes = 0;
    uint32_t const count = step_parts(ranks, part);
    for (uint32_t i = 0; i < count; i++)
        if (part[i].part == BLOCK_LAYER)
            STATUS_TRY(part_build(ranks, &part[i], &room, &bytes, reterr));
    weights_find(ranks);
    return STATUS_OK;
}
