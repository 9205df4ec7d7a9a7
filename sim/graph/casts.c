#include "sim/graph/casts.h"

bool graph_casts(const struct graph *graph, const struct graph_op *op)
{
    return graph->terms->policy.casts.recipe != NULL && op->product_count > 0 &&
           op->as.matmul.math == FORMAT_FP8;
}

enum recipe_array graph_cast_array(const struct graph *graph, tensor of)
{
    const struct graph_op *maker = graph_maker(graph, of), *next = graph->op + graph->op_count;
    bool const found =
        maker == NULL || maker->kind->cast_as == NULL || !graph_reads_first(graph, next, of);
    return found ? RECIPE_FOUND : maker->kind->cast_as(graph);
}

struct recipe_cast graph_cast_of(const struct graph *graph, enum recipe_array array, bool travels)
{
    const struct graph_casting *casts = &graph->terms->policy.casts;
    return (casts->two && !travels ? casts->way->both : casts->way->one)[array];
}

void graph_cast_add(struct recipe_cast cast, uint64_t elements, struct work *work)
{
    if (cast.kernels == 0 || elements == 0) return;
    work->hbm_read_bytes += cast.read_bytes * elements;
    work->hbm_write_bytes += cast.write_bytes * elements;
    work->kernel_count += cast.kernels;
    work->kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_CAST;
}

/* Elements of gradients of results: of those that tp gathers if `travels`, else of the others.
 * `whole`: as gathered. */
static uint64_t gradient_elements(const struct graph_sharded *sharded, const struct graph_op *op,
                                  bool travels, bool whole)
{
    const struct graph *graph = sharded->graph;
    uint64_t elements = 0;
    for (uint8_t i = 0; i < op->out_count; i++) {
        const struct graph_tensor *at = &graph->tensor[op->out[i]];
        uint32_t const gathered = graph_scattered(sharded, op, op->out[i]);
        if ((gathered != 0) == travels)
            elements += graph_elements(graph, &at->gradient_at, whole ? gathered : 0);
    }
    return elements;
}

struct work graph_cast_gradients(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    bool const before = graph->terms->policy.casts.way->travels;
    struct work work = {.math_format = graph->terms->formats.activations};
    uint64_t const here = gradient_elements(sharded, op, /* travels= */ false, /* whole= */ false);
    uint64_t const gathered = gradient_elements(sharded, op, /* travels= */ true, !before);
    graph_cast_add(graph_cast_of(graph, RECIPE_GRADIENT, /* travels= */ false),
                   here + (before ? 0 : gathered), &work);
    if (before)
        graph_cast_add(graph_cast_of(graph, RECIPE_GRADIENT, /* travels= */ true), gathered, &work);
    return work;
}

struct work graph_cast_seconds(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    const struct graph_casting *casts = &graph->terms->policy.casts;
    struct work work = {.math_format = graph->terms->formats.activations};
    if (!casts->two) return work;
    uint32_t const gather = graph_shard_of(sharded, op)->gather;
    for (uint8_t i = 0; i < op->in_count; i++)
        if ((gather & sharding_axes(&graph->tensor[op->in[i]].at)) != 0)
            graph_cast_add(casts->way->second, op_in_elements(sharded, op, i), &work);
    graph_cast_add(casts->way->second,
                   gradient_elements(sharded, op, /* travels= */ true, /* whole= */ true), &work);
    return work;
}

enum format graph_cast_format(const struct graph *graph, const struct graph_op *op, tensor of,
                              bool gradient)
{
    const struct graph_tensor *at = &graph->tensor[of];
    const struct graph_op *maker = graph_maker(graph, of);
    const struct graph_casting *casts = &graph->terms->policy.casts;
    bool const is_cast =
        gradient ? graph_casts(graph, op) : maker != NULL && maker->kind->quantises;
    if (!is_cast) return gradient ? at->gradient : at->format;
    return casts->way->travels ? FORMAT_FP8 : graph->terms->formats.activations;
}

static uint64_t weight_elements(const struct graph *graph, const struct graph_op *op)
{
    uint64_t elements = 0;
    for (uint8_t w = 0; graph_casts(graph, op) && w < op->weight_count; w++)
        elements += graph_weight_elements(graph, op->weight[w]);
    return elements;
}

struct work graph_cast_by_pass(const struct graph *graph, const struct graph_op *op, bool backward)
{
    const struct recipe_way *way = graph->terms->policy.casts.way;
    struct work work = {.math_format = graph->terms->formats.activations};
    if (way->weights_stay) return work;
    graph_cast_add(backward ? way->weight_backward : way->one[RECIPE_WEIGHT],
                   weight_elements(graph, op), &work);
    return work;
}

struct work graph_cast_weights(const struct graph *graph)
{
    struct work work = {.math_format = graph->terms->formats.activations};
    uint64_t elements = 0;
    for (uint8_t i = 0; i < graph->op_count; i++) elements += weight_elements(graph, &graph->op[i]);
    if (elements != 0)
        graph_cast_add(graph_cast_of(graph, RECIPE_WEIGHT, /* travels= */ false), elements, &work);
    return work;
}
