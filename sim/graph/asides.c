#include "sim/graph/asides.h"

#include <stddef.h>

#include "sim/model/model.h"

/*
 * flash-attn 2.4 flash_attn/bert_padding.py and mosaicml/llm-foundry at 5e85bd62
 * llmfoundry/models/layers/attention.py (flash_attn_fn), in bytes an element of 16 bits. Forward
 * rows of Q, K and V are gathered (2, 2 each), and the result is scattered (2, 2) into zeros (2).
 * Backward the result's gradient is gathered (2, 2), and gradients of Q, K and V are scattered
 * (2, 2) into zeros (2).
 */
static const struct function_pass pads_in[] = {{3, 2, 2}, {6, 2, 4}};
static const struct function_pass pads_out[] = {{2, 2, 4}, {1, 2, 2}};
/* PyTorch: the gradients of split and chunk are joined by cat. */
static const struct function_pass parts_joined = {1, 2, 2};

static void pass_add(struct function_pass pass, uint64_t elements, struct work *work)
{
    work->hbm_read_bytes += pass.read_bytes * elements;
    work->hbm_write_bytes += pass.write_bytes * elements;
    work->kernel_count += pass.kernels;
}

struct work graph_pads_work(const struct graph_sharded *sharded, const struct graph_op *op,
                            bool backward)
{
    const struct graph *graph = sharded->graph;
    struct work work = {.math_format = graph->terms->formats.activations};
    uint64_t in = 0;
    if (!graph->terms->policy.pads || graph->terms->policy.fusion == NULL || !op->kind->attends)
        return work;
    for (uint8_t i = 0; i < op->in_count; i++) in += op_in_elements(sharded, op, i);
    pass_add(pads_in[backward], in, &work);
    pass_add(pads_out[backward], op_out_elements(sharded, op, 0), &work);
    work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_REST;
    return work;
}

struct work graph_parts_work(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    const struct fusion *fusion = graph->terms->policy.fusion;
    struct work work = {.math_format = graph->terms->formats.activations};
    /* The product of a router stands for modules of their own. */
    if (fusion == NULL || !fusion->joins_parts || op->gradients.one_kernel) return work;
    for (uint8_t i = 0; i + 1 < op->product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        if (!product[1].joined) continue;
        struct function_pass const first = {parts_joined.kernels, 0, 0};
        struct function_pass const part = {0, parts_joined.read_bytes, parts_joined.write_bytes};
        if (!product->joined) pass_add(first, 0, &work);
        for (uint8_t p = product->joined ? 1 : 0; p < 2; p++)
            pass_add(part, graph_elements(graph, &graph->tensor[product[p].out].gradient_at, 0),
                     &work);
    }
    if (work.kernel_count != 0) work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_REST;
    return work;
}

/* Whether the columns of a weight have biases. */
static bool is_biased(const struct graph *graph, tensor weight)
{
    for (uint8_t v = 0; v < graph->vector_count; v++)
        if (graph->vector[v].matrix == weight) return true;
    return false;
}

struct work graph_biases_work(const struct graph_sharded *sharded, const struct graph_op *op)
{
    const struct graph *graph = sharded->graph;
    const struct fusion *fusion = graph->terms->policy.fusion;
    struct work work = {.math_format = graph->terms->formats.activations};
    if (fusion == NULL || !fusion->biases_apart) return work;
    for (uint8_t i = 0; i < op->product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        const struct graph_tensor *at = &graph->tensor[product->out];
        if (!is_biased(graph, product->weight)) continue;
        uint64_t const elements = graph_elements(graph, &at->gradient_at, 0);
        work.vector_flop += elements;
        work.hbm_read_bytes += format_bytes(at->gradient, elements);
        if (!product->joined || work.kernel_count == 0) work.kernel_count++;
    }
    if (work.kernel_count != 0) work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_REST;
    return work;
}

/* Whether a product's left side is in fp32 where it lies. */
static bool is_wide(const struct graph *graph, tensor left)
{
    const struct graph_terms *terms = graph->terms;
    const struct graph_op *maker = graph_maker(graph, left);
    bool const streams = maker != NULL && maker->kind->computes_sums;
    bool const centred = terms->model->norms.centred;
    if (!streams || terms->policy.fusion == NULL) return false;
    if (centred && terms->policy.replacing.persistent_layernorm) return false;
    return autocast_widens_norm(terms->policy.fusion, terms->policy.autocast, centred);
}

/* Products that are one have one input. */
struct work graph_input_casts_work(const struct graph_sharded *sharded, const struct graph_op *op,
                                   bool backward)
{
    const struct graph *graph = sharded->graph;
    struct work work = {.math_format = graph->terms->formats.activations};
    for (uint8_t i = 0; i < op->product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        uint8_t in = 0;
        if (product->joined || !is_wide(graph, product->left)) continue;
        while (op->in[in] != product->left) in++;
        pass_add(graph->terms->policy.fusion->autocast->input[backward],
                 op_in_elements(sharded, op, in), &work);
    }
    if (work.kernel_count != 0) work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_CAST;
    return work;
}

/* Matrices of an op that lie apart. */
static uint64_t matrices(const struct graph_op *op)
{
    uint64_t count = op->weight_count;
    for (uint8_t i = 0; i < op->product_count; i++)
        if (op->as.matmul.product[i].joined) count--;
    return count;
}

/* Bytes of a kernel that goes over gradients of an op's weights. */
static void weights_add(const struct graph *graph, const struct graph_op *op,
                        struct function_pass pass, struct work *work)
{
    uint64_t elements = 0;
    for (uint8_t w = 0; w < op->weight_count; w++)
        elements += graph_weight_elements(graph, op->weight[w]);
    work->hbm_read_bytes = pass.read_bytes * elements;
    work->hbm_write_bytes = pass.write_bytes * elements;
    if (elements != 0) work->kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_REST;
}

/* Weights of norms are a few rows. */
struct work graph_sums_work(const struct graph *graph, const struct graph_op *op)
{
    struct function_pass const sums = graph->terms->policy.sums;
    struct work work = {.math_format = graph->terms->formats.activations};
    if (sums.kernels == 0 || !op->kind->weights_apart) return work;
    weights_add(graph, op, sums, &work);
    work.vector_flop = work.hbm_write_bytes == 0 ? 0 : work.hbm_write_bytes / sums.write_bytes;
    work.kernel_count = sums.kernels * matrices(op);
    return work;
}

struct work graph_weight_casts_work(const struct graph *graph, const struct graph_op *op,
                                    bool backward)
{
    const struct graph_policy *policy = &graph->terms->policy;
    struct work work = {.math_format = graph->terms->formats.activations};
    if (policy->autocast != AUTOCAST_WIDE || op->product_count == 0 || policy->fusion == NULL ||
        policy->fusion->autocast == NULL)
        return work;
    struct function_pass const cast =
        backward ? policy->fusion->autocast->gradient : policy->fusion->autocast->weight;
    weights_add(graph, op, cast, &work);
    work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_CAST;
    work.kernel_count = cast.kernels * matrices(op);
    return work;
}

/* Whether an op has matrices or tables: weights of norms are a few rows. */
static bool has_matrices(const struct graph_op *op)
{
    return op->kind->weights_apart && op->weight_count != 0;
}

/* The kernels copy all weights of a layer at once: their launches count with one op. */
static bool is_first(const struct graph *graph, const struct graph_op *op)
{
    const struct graph_op *first = graph->op;
    while (!has_matrices(first)) first++;
    return first == op;
}

struct work graph_copies_work(const struct graph *graph, const struct graph_op *op)
{
    struct function_pass const copies = graph->terms->policy.copying.gradients;
    struct work work = {.math_format = graph->terms->formats.activations};
    if (copies.kernels == 0 || !has_matrices(op)) return work;
    weights_add(graph, op, copies, &work);
    if (is_first(graph, op)) work.kernel_count = copies.kernels;
    return work;
}

struct work graph_shards_work(const struct graph *graph, const struct graph_op *op, bool backward)
{
    const struct graph_copying *copying = &graph->terms->policy.copying;
    struct work work = {.math_format = graph->terms->formats.activations};
    uint32_t const kernels = copying->shard.kernels + copying->gathered.kernels;
    if (kernels == 0 || !has_matrices(op)) return work;
    if (backward && !copying->again) return work;
    weights_add(graph, op, copying->gathered, &work);
    for (uint8_t w = 0; w < op->weight_count; w++) {
        uint64_t const own = graph_elements(graph, &graph->tensor[op->weight[w]].at, 0);
        work.hbm_read_bytes += copying->shard.read_bytes * own;
        work.hbm_write_bytes += copying->shard.write_bytes * own;
    }
    work.kernel = WORK_KERNEL_FUNCTIONS + WORK_FUNCTION_REST;
    if (is_first(graph, op)) work.kernel_count = kernels;
    return work;
}

struct work graph_aside_work(const struct graph_sharded *sharded, const struct graph_op *op,
                             enum op_pass pass, bool backward)
{
    const struct graph *graph = sharded->graph;
    if (pass == OP_INPUT_CASTS) return graph_input_casts_work(sharded, op, backward);
    if (pass == OP_AUTOCAST_WEIGHTS || pass == OP_GRADIENT_CASTS)
        return graph_weight_casts_work(graph, op, backward);
    if (pass == OP_SHARDS) return graph_shards_work(graph, op, backward);
    if (pass == OP_PADS && !op->kind->attends)
        return backward ? graph_parts_work(sharded, op) : (struct work){0};
    if (pass == OP_PADS) return graph_pads_work(sharded, op, backward);
    if (pass == OP_BIASES) return graph_biases_work(sharded, op);
    if (pass == OP_SUMS) return graph_sums_work(graph, op);
    SIM_ASSERT(pass == OP_COPIES);
    return graph_copies_work(graph, op);
}
