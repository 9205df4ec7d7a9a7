/* Names of a layer's ops, by its blocks, the graph's ops and what is moved. */
#include "sim/step/emit.h"
#include "sim/step/emit_parts.h"

/* In the arena. Before an op's own prefix stands that of its end. `op` NULL: without any. */
static const char *label(const struct emit *emit, const struct graph_op *op, const char *name,
                         bool gradient)
{
    bool const ends = op != NULL && emit->end != NULL;
    return builder_format(&emit->lower->build, "%s%s", ends ? emit->end->use[op->block].prefix : "",
                          graph_label(emit->graph, op, name, gradient).text);
}

/* By pass, of passes that op_is_aside(). */
static const char *const aside_names[] = {
    [OP_CAST] = "cast",
    [OP_CAST_SECOND] = "transpose",
    [OP_CAST_WEIGHTS] = "weights cast",
    [OP_INPUT_CASTS] = "input casts",
    [OP_AUTOCAST_WEIGHTS] = "weights in 16 bits",
    [OP_SHARDS] = "shard copies",
    [OP_PADS] = "copies",
    [OP_BIASES] = "bias gradients",
    [OP_GRADIENT_CASTS] = "gradient casts",
    [OP_SUMS] = "gradient sums",
    [OP_COPIES] = "gradient copies",
};

const char *emit_compute_name(const struct emit *emit, const struct graph_step *step)
{
    const struct graph_op *op = &emit->graph->op[step->op];
    const char *name = graph_op_name(op);
    bool const weights = op_gives_weight(step->pass);
    if (op_is_forward(step->pass)) {
        name = label(emit, op, name, false);
        return step->pass == OP_FORWARD ? name
                                        : builder_format(&emit->lower->build, "%s again", name);
    }
    if (step->of != GRAPH_NONE) return label(emit, op, "dMerge", false);
    if (op_is_aside(step->pass))
        return builder_format(&emit->lower->build, "%s %s",
                              label(emit, op, name, step->pass == OP_CAST),
                              aside_names[step->pass]);
    if (step->pass == OP_RIGHT_GRADIENT)
        return label(emit, op, graph_moved_as(emit->graph, op->in[1]), true);
    const struct graph_gradients *named = &op->gradients;
    if (!weights && named->input_name != NULL) return label(emit, op, named->input_name, false);
    if (step->pass == OP_LEFT_GRADIENT)
        return label(emit, op, graph_moved_as(emit->graph, op->in[0]), true);
    if (step->pass == OP_WEIGHT_GRADIENT && named->weight_name != NULL)
        return label(emit, op, named->weight_name, false);
    return label(emit, op, name, true);
}

/* "dW_K dW_V": the matrices of a block whose gradients ranks of tp have parts of. */
static const char *partial_names(const struct emit *emit, uint8_t block)
{
    const struct graph_derived *derived = emit->of->derived;
    const struct graph_span *span = &emit->graph->block[block];
    const char *names = "";
    for (uint8_t i = span->first; i < span->first + span->count; i++)
        for (uint8_t w = 0; w < emit->graph->op[i].weight_count; w++) {
            tensor const weight = emit->graph->op[i].weight[w];
            const struct sharding *at = &emit->graph->tensor[weight].at;
            if (at->dimension_count < 2 || derived->backward.parts[weight] == 1) continue;
            names = builder_format(&emit->lower->build, "%s%sd%s", names,
                                   names[0] == '\0' ? "" : " ", at->name);
        }
    return names;
}

const char *emit_moved_name(const struct emit *emit, const struct graph_step *step)
{
    uint8_t const block = emit->graph->op[step->op].block;
    if (graph_step_sums_weights(emit->graph, step)) return partial_names(emit, block);
    return builder_format(&emit->lower->build, "%s%s",
                          emit->end != NULL ? emit->end->use[block].prefix : "",
                          graph_step_label(emit->graph, step).text);
}

const char *emit_value_name(const struct emit *emit, struct graph_value value)
{
    const struct graph *graph = emit->graph;
    const struct graph_op *maker = graph_maker(graph, value.of);
    if (!value.full && (maker == NULL || value.of == graph->added))
        return value.gradient ? lower_stream_gradient : lower_stream_activation;
    if (maker == NULL) maker = &graph->op[0];
    return label(emit, maker, graph_moved_as(graph, value.of), value.gradient);
}
