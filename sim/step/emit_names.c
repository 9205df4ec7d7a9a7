/* Names of a layer's ops, by its blocks, the graph's ops and what is moved. */
#include <stdio.h>
#include <string.h>

#include "sim/step/emit.h"
#include "sim/step/emit_parts.h"

enum { NAME_BYTES = 96 };

/* "attention." of the block; "shared." of "shared.Out". */
static int prefix_of(const struct emit *emit, const struct graph_op *op, const char **ret_prefix)
{
    const char *dot = strchr(op->name, '.');
    const char *prefix = emit->graph->block[op->block].block->prefix;
    if (!ranks_is_decoder(emit->lower->ranks)) prefix = "";
    *ret_prefix = dot != NULL ? op->name : prefix;
    return dot != NULL ? (int)(dot + 1 - op->name) : (int)strlen(prefix);
}

static const char *own_name(const struct graph_op *op)
{
    const char *dot = strchr(op->name, '.');
    return dot != NULL ? dot + 1 : op->name;
}

/* "dNorm" of "norm". */
static void gradient_name(const char *name, char ret_name[NAME_BYTES])
{
    bool const small = name[0] >= 'a' && name[0] <= 'z';
    (void)snprintf(ret_name, NAME_BYTES, "d%c%s", small ? name[0] - 'a' + 'A' : name[0], name + 1);
}

/* What stands before a block's prefix. */
static const char *outer_prefix(const struct emit *emit, const struct graph_op *op)
{
    return emit->end != NULL ? emit->end->use[op->block].prefix : "";
}

static const char *tensor_name(const struct emit *emit, tensor of, bool gradient,
                               char buffer[NAME_BYTES])
{
    const struct graph_tensor *at = &emit->graph->tensor[of];
    const char *name = at->moved_as != NULL ? at->moved_as : at->at.name;
    if (!gradient) return name;
    gradient_name(name, buffer);
    return buffer;
}

const char *emit_compute_name(const struct emit *emit, const struct graph_step *step)
{
    const struct graph_op *op = &emit->graph->op[step->op];
    const char *prefix = NULL, *name = own_name(op), *again = "";
    char buffer[NAME_BYTES];
    int const length = prefix_of(emit, op, &prefix);
    if (op_is_forward(step->pass)) {
        again = step->pass == OP_FORWARD ? "" : " again";
    } else if (step->of != GRAPH_NONE) {
        name = "dMerge";
    } else if (step->pass == OP_RIGHT_GRADIENT) {
        name = tensor_name(emit, op->in[1], true, buffer);
    } else if (step->pass == OP_LEFT_GRADIENT && op->input_name == NULL) {
        name = tensor_name(emit, op->in[0], true, buffer);
    } else if (step->pass != OP_WEIGHT_GRADIENT && step->pass != OP_BOTH_GRADIENTS &&
               op->input_name != NULL) {
        name = op->input_name;
    } else if (step->pass == OP_WEIGHT_GRADIENT && op->weight_name != NULL) {
        name = op->weight_name;
    } else {
        gradient_name(name, buffer);
        name = buffer;
    }
    return builder_format(&emit->lower->build, "%s%.*s%s%s", outer_prefix(emit, op), length, prefix,
                          name, again);
}

/* Of whole sequences and of parts, the part. */
static tensor part_of(const struct emit *emit, const struct graph_step *step)
{
    const struct graph_op *op = &emit->graph->op[step->op];
    tensor const in = op->in[step->move.of], out = op->out[step->move.of];
    bool const whole =
        (sharding_axes(&emit->graph->tensor[in].at) & emit->graph->terms->axis_c) != 0;
    return whole ? out : in;
}

/* "K V": of all inputs but the first. */
static const char *gathered_names(const struct emit *emit, const struct graph_op *op, bool gradient)
{
    struct builder *build = &emit->lower->build;
    const char *names = "";
    for (uint8_t i = 1; i < op->in_count; i++) {
        char one[NAME_BYTES];
        names = builder_format(build, "%s%s%s", names, i > 1 ? " " : "",
                               tensor_name(emit, op->in[i], gradient, one));
    }
    return names;
}

const char *emit_moved_name(const struct emit *emit, const struct graph_step *step)
{
    const struct graph_op *op = &emit->graph->op[step->op];
    struct builder *build = &emit->lower->build;
    bool const gradient = !op_is_forward(step->pass) && !step->move.before;
    char one[NAME_BYTES];
    const char *prefix = NULL;
    if (step->move.carries && step->move.of != OP_MOVES_ALL)
        return builder_format(build, "%s", tensor_name(emit, part_of(emit, step), gradient, one));
    int const length = prefix_of(emit, op, &prefix);
    if (step->move.carries) {
        gradient_name(op->name, one);
        bool const alone = step->move.axis == OP_AXIS_EP;
        return builder_format(build, "%s%.*s%s", outer_prefix(emit, op), alone ? 0 : length, prefix,
                              gradient ? one : op->name);
    }
    if (step->of == GRAPH_NONE) return gathered_names(emit, op, gradient);
    return builder_format(build, "%s%.*s%s", outer_prefix(emit, op), length, prefix,
                          tensor_name(emit, step->of, gradient, one));
}

const char *emit_value_name(const struct emit *emit, struct graph_value value)
{
    const struct graph *graph = emit->graph;
    const struct graph_op *maker = graph_maker(graph, value.of);
    const char *prefix = NULL;
    char name[NAME_BYTES];
    if (!value.full && (maker == NULL || value.of == graph->added))
        return value.gradient ? lower_stream_gradient : lower_stream_activation;
    if (maker == NULL) maker = &graph->op[0];
    int const length = prefix_of(emit, maker, &prefix);
    return builder_format(&emit->lower->build, "%s%.*s%s", outer_prefix(emit, maker), length,
                          prefix, tensor_name(emit, value.of, value.gradient, name));
}
