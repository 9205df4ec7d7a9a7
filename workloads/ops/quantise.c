/*
 * The input of a linear layer is cast to fp8 as its recipe says (sim/kernels/recipe.h). Where tp
 * gathers the array, each rank casts its part before the gather; the gradient of the weights makes
 * a second array of the whole array, where it wants one. Elsewhere one cast writes both arrays. The
 * gradient that comes back is that of the array before the cast: nothing is done to it.
 */
#include "sim/graph/casts.h"
#include "sim/graph/op.h"

static void work(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work)
{
    const struct graph *graph = sharded->graph;
    *ret_work = (struct work){.math_format = graph->terms->formats.activations};
    if (!op_is_forward(pass)) return;
    bool const before = graph->terms->policy.casts.way->travels;
    bool const travels = before && sharded->gathered[op->out[0]] != 0;
    struct recipe_cast const cast = graph_cast_of(graph, op->as.quantise.array, travels);
    graph_cast_add(cast,
                   before ? op_out_elements(sharded, op, 0)
                          : graph_gathered_elements(sharded, op->out[0]),
                   ret_work);
}

const struct op_kind op_kind_quantise = {
    .name = "quantise",
    .help = "what products multiply in fp8, cast with its scales",
    .source = "the recipe's",
    .notation = {.formula = "%", .casts = true},
    .work = work,
    .passes_on = true,
    .quantises = true,
};
