#include "sim/graph/backward.h"

/* --- Order --- */

static void gradient_add(struct graph_backward *backward, uint8_t op, enum op_pass pass)
{
    SIM_ASSERT(backward->count < GRAPH_GRADIENTS_MAX);
    backward->gradient[backward->count++] = (struct graph_gradient){op, pass};
}

static void op_gradients_add(const struct graph *graph, uint8_t index,
                             struct graph_backward *backward)
{
    const struct graph_op *op = &graph->op[index];
    bool const dx_first = graph->terms->policy.dx_first;
    if (op->fused) return;
    if (op->in_count == 0) {
        gradient_add(backward, index, OP_WEIGHT_GRADIENT);
    } else if (op->kind->inputs_apart) {
        bool const right_first = op->gradients.right_first;
        gradient_add(backward, index, right_first ? OP_RIGHT_GRADIENT : OP_LEFT_GRADIENT);
        gradient_add(backward, index, right_first ? OP_LEFT_GRADIENT : OP_RIGHT_GRADIENT);
    } else if (!op->kind->weights_apart) {
        gradient_add(backward, index, OP_INPUT_GRADIENT);
    } else if (op->gradients.one_kernel) {
        gradient_add(backward, index, OP_BOTH_GRADIENTS);
    } else {
        gradient_add(backward, index, dx_first ? OP_INPUT_GRADIENT : OP_WEIGHT_GRADIENT);
        gradient_add(backward, index, dx_first ? OP_WEIGHT_GRADIENT : OP_INPUT_GRADIENT);
    }
}

static void order(const struct graph *graph, struct graph_backward *backward)
{
    for (uint8_t i = graph->op_count; i-- > 0;) {
        if (graph->op[i].gradients.behind != GRAPH_NONE) continue;
        op_gradients_add(graph, i, backward);
        for (uint8_t k = graph->op_count; k-- > 0;)
            if (graph->op[k].gradients.behind == i) op_gradients_add(graph, k, backward);
    }
}

/* --- Sums that stay due --- */

static void plain_due(const struct graph_sharded *sharded, const struct graph_op *op,
                      uint32_t due[GRAPH_TENSORS_MAX])
{
    uint32_t const gather = graph_shard_of(sharded, op)->gather;
    uint32_t all = 0;
    for (uint8_t i = 0; i < op->out_count; i++) all |= due[op->out[i]];
    for (uint8_t i = 0; i < op->weight_count; i++) due[op->weight[i]] |= all;
    for (uint8_t i = 0; i < op->in_count; i++) due[op->in[i]] |= all & ~gather;
}

/* Ranks that each have a part of a weight's gradient: of heads that they share, or of a sum. */
static uint32_t parts_of(const struct graph *graph, tensor weight, uint32_t due)
{
    const struct sharding *at = &graph->tensor[weight].at;
    if ((due & graph->terms->axis_y) != 0) return graph->terms->ranks_y;
    for (uint32_t d = 0; d < at->dimension_count; d++) {
        uint32_t const holders = graph_dimension_of(graph->terms, at->dimension[d].name)->holders;
        if (holders > 1) return holders;
    }
    return 1;
}

static void readers_count(const struct graph *graph, struct graph_backward *backward)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        for (uint8_t in = 0; !graph->op[i].fused && in < graph->op[i].in_count; in++)
            backward->readers[graph->op[i].in[in]]++;
}

void graph_backward(const struct graph_sharded *sharded, struct graph_backward *ret_backward)
{
    const struct graph *graph = sharded->graph;
    *ret_backward = (struct graph_backward){.count = 0};
    if (graph->terms->cache.is_there) return;
    order(graph, ret_backward);
    for (uint8_t i = graph->op_count; i-- > 0;) {
        const struct graph_op *op = &graph->op[i];
        (op->kind->due != NULL ? op->kind->due : plain_due)(sharded, op, ret_backward->due);
    }
    for (uint8_t i = 0; i < graph->op_count; i++)
        for (uint8_t w = 0; w < graph->op[i].weight_count; w++) {
            tensor const weight = graph->op[i].weight[w];
            ret_backward->parts[weight] = parts_of(graph, weight, ret_backward->due[weight]);
        }
    readers_count(graph, ret_backward);
}

struct work graph_gradient_sum(const struct graph_sharded *sharded, tensor of)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *sum = &graph->tensor[of];
    uint64_t elements = 0;
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t in = 0; !op->fused && in < op->in_count; in++)
            if (op->in[in] == of)
                elements += graph_elements(
                    graph, op->kind->passes_on ? &graph->tensor[op->out[0]].gradient_at : &sum->at,
                    0);
    }
    struct work work = {
        .math_format = graph->terms->formats.activations,
        .vector_flop = elements,
        .hbm_read_bytes = format_bytes(sum->gradient, elements),
        .hbm_write_bytes = format_bytes(sum->gradient, graph_elements(graph, &sum->at, 0)),
    };
    op_function(graph, WORK_FUNCTION_REST, OP_INPUT_GRADIENT, 0, &work);
    return work;
}

/* Where gradients of an op's results are whole, parts of those of its weights are of other rows. */
static enum op_axis parts_axis(const struct graph *graph, const struct graph_backward *backward,
                               const struct graph_op *op, tensor weight)
{
    uint32_t of_results = 0;
    for (uint8_t i = 0; i < op->out_count; i++) of_results |= backward->due[op->out[i]];
    bool const of_rows = (backward->due[weight] & ~of_results & graph->terms->axis_y) != 0;
    return of_rows ? OP_AXIS_TP : OP_AXIS_HOLDERS;
}

struct graph_partial graph_partial_of(const struct graph_sharded *sharded,
                                      const struct graph_backward *backward, uint8_t block)
{
    const struct graph *graph = sharded->graph;
    struct graph_partial partial = {.ranks = 1, .last = GRAPH_NONE};
    for (uint32_t i = 0; i < backward->count; i++) {
        const struct graph_gradient *gradient = &backward->gradient[i];
        const struct graph_op *op = &graph->op[gradient->op];
        bool const gives = op_gives_weights(op, gradient->pass);
        for (uint8_t w = 0; gives && op->block == block && w < op->weight_count; w++) {
            if (backward->parts[op->weight[w]] == 1) continue;
            partial.elements += graph_weight_elements(graph, op->weight[w]);
            partial.ranks = backward->parts[op->weight[w]];
            partial.axis = parts_axis(graph, backward, op, op->weight[w]);
            partial.last = gradient->op;
        }
    }
    return partial;
}
