/* The lines of weights: their gathers, the sums of their gradients, and the update. */
#include "sim/graph/list_parts.h"

/* --- Weights that are read --- */

struct graph_array graph_list_weight(struct graph_list *list, tensor weight, bool backward)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_terms *terms = graph->terms;
    uint32_t const axes = sharding_axes(&graph->tensor[weight].at) & terms->axis_x;
    struct graph_array const part = graph_list_array(graph, weight, false, 0);
    struct graph_array const whole = graph_list_array(graph, weight, false, axes);
    bool const travels = (list->weights.gathers[backward] >> weight & 1) != 0;
    const char *remark = "not on critical path, can do it during previous layer";
    if (axes == 0 || list->weight_there[weight] || !travels) return whole;
    if (backward || terms->axis_y != 0) remark = "can be done ahead of time";
    if (backward && (list->weights.again >> weight & 1) != 0)
        remark = "shared with the repeated forward pass";
    list->weight_there[weight] = true;
    graph_list_collective(list, &part, &whole, COLLECTIVE_ALL_GATHER, axes, remark);
    return whole;
}

/* --- Gradients --- */

/* Whether a weight is of experts that only some ranks of an axis hold: it has no letter for these.
 */
static bool is_apart(const struct graph_list *list, tensor weight)
{
    return graph_list_graph(list)->tensor[weight].grouped && list->weights.grouped_ranks != 0;
}

/* A weight as its gradient is wanted: "W_in[D_X, F_Y]"; or that gradient. */
static struct graph_array wanted(const struct graph_list *list, tensor weight, bool gradient)
{
    bool const apart = is_apart(list, weight);
    return graph_list_array(apart ? graph_list_graph(list) : list->weights.state, weight, gradient,
                            0);
}

/* A sum over the axes of dimensions that the product contracts. */
struct graph_array graph_list_weight_gradient(const struct graph_list *list,
                                              const struct graph_array *from, tensor weight)
{
    const struct graph *graph = graph_list_graph(list);
    struct graph_array gradient = graph_list_array(graph, weight, true, graph->terms->axis_x);
    struct sharding contracted = {.dimension_count = 0};
    for (uint32_t d = 0; d < from->at.dimension_count; d++)
        if (!sharding_has(&gradient.at, from->at.dimension[d].name))
            contracted.dimension[contracted.dimension_count++] = from->at.dimension[d];
    gradient.at.unreduced = (sharding_axes(&contracted) & ~sharding_axes(&gradient.at)) |
                            list->part->backward.due[weight];
    if (is_apart(list, weight)) gradient.at.unreduced &= ~list->weights.axis_same;
    return gradient;
}

/* Weights of a block whose gradients lie in parts: "dW_K and dW_V". */
static struct graph_phrase partial_names(const struct graph_list *list, uint8_t block)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_span *span = &graph->block[block];
    struct graph_phrase names = {.text = ""}, last = {.text = ""};
    for (uint8_t i = span->first; i < span->first + span->count; i++)
        for (uint8_t w = 0; w < graph->op[i].weight_count; w++) {
            tensor const weight = graph->op[i].weight[w];
            if (list->part->backward.parts[weight] == 1) continue;
            if (last.text[0] != '\0') graph_phrase_join(&names, ", ", "%s", last.text);
            last = (struct graph_phrase){.text = ""};
            graph_phrase_join(&last, "", "d%s", graph->tensor[weight].at.name);
        }
    graph_phrase_join(&names, " and ", "%s", last.text);
    return names;
}

/* The sum of what ranks of tp have of a gradient: holders of one head, or all. */
static void parts_add(struct graph_list *list, uint8_t block, tensor weight,
                      struct graph_array *gradient)
{
    uint32_t const tp = graph_list_graph(list)->terms->axis_y;
    uint32_t const ranks = list->part->backward.parts[weight];
    struct graph_array const parts = *gradient;
    struct graph_phrase remark = {.text = ""};
    if (ranks == 1) return;
    graph_phrase_join(&remark, "", "one AllReduce for %s, can be done async",
                      partial_names(list, block).text);
    gradient->at.unreduced &= ~tp;
    if ((parts.at.unreduced & tp) != 0)
        graph_list_collective(list, &parts, gradient, COLLECTIVE_ALL_REDUCE, tp, remark.text);
    else
        graph_list_line(list, gradient, remark.text,
                        "%s = AllReduce(%s) over the %u chips that hold a head", gradient->at.name,
                        gradient->at.name, ranks);
}

/* ReduceScatter where the gradient is wanted split, AllReduce where it is not. */
void graph_list_reduce(struct graph_list *list, uint8_t block, tensor weight,
                       struct graph_array gradient)
{
    static const char remark[] = "not on critical path, can be done async";
    struct graph_array to = wanted(list, weight, true);
    if ((list->weights.reduces >> weight & 1) == 0) return;
    parts_add(list, block, weight, &gradient);
    uint32_t const due = gradient.at.unreduced & ~graph_list_graph(list)->terms->axis_y;
    uint32_t const scatter = due & sharding_axes(&to.at);
    to.at.unreduced = gradient.at.unreduced & ~scatter;
    if (scatter != 0) {
        graph_list_collective(list, &gradient, &to, COLLECTIVE_REDUCE_SCATTER, scatter, remark);
        gradient = to;
    }
    to.at.unreduced &= ~due;
    if (due != scatter)
        graph_list_collective(list, &gradient, &to, COLLECTIVE_ALL_REDUCE, due & ~scatter, remark);
    if (is_apart(list, weight) && list->weights.grouped_ranks > 1)
        graph_list_line(list, NULL, remark,
                        "%s = %s(%s) over the %u ranks that hold the same experts", to.at.name,
                        list->weights.grouped_scatters ? "ReduceScatter" : "AllReduce", to.at.name,
                        list->weights.grouped_ranks);
}

/* "dW_out[F_Y, D_X], dW_in[D_X, F_Y]", as the pass has to compute them: a block's in one line. */
void graph_list_goals(struct graph_list *list)
{
    const struct graph *graph = graph_list_graph(list);
    const char *between = "";
    for (uint8_t i = graph->op_count; i-- > 0;) {
        const struct graph_op *op = &graph->op[i];
        if (i + 1 < graph->op_count && op->block != op[1].block) between = ",\n  ";
        for (uint8_t w = 0; op->kind->weights_apart && w < op->weight_count; w++) {
            struct graph_array const goal = wanted(list, op->weight[w], true);
            strbuf_add(list->text, "%s%s", between, graph_list_text(list, &goal).text);
            between = ", ";
        }
    }
    strbuf_add(list->text, "\n");
}

/* --- The update --- */

/* "W_in[D, F] = AllGather_X(W_in[D_X, F])" */
static void updated_add(struct graph_list *list, tensor weight)
{
    static const char remark[] = "after the update of this rank's part";
    uint32_t const axis_x = graph_list_graph(list)->terms->axis_x;
    struct graph_array const from = wanted(list, weight, false);
    struct graph_array to = from;
    if (!is_apart(list, weight)) {
        to.at = sharding_gathered(&from.at, axis_x);
        graph_list_collective(list, &from, &to, COLLECTIVE_ALL_GATHER,
                              sharding_axes(&from.at) & axis_x, remark);
    } else if (list->weights.grouped_ranks > 1) {
        graph_list_line(list, &to, remark,
                        "%s = AllGather(%s) over the %u ranks that hold the same experts",
                        graph_list_text(list, &to).text, to.at.name, list->weights.grouped_ranks);
    }
}

void graph_list_update(struct graph_list *list)
{
    const struct graph *graph = graph_list_graph(list);
    list->line = 0;
    for (uint8_t i = graph->op_count; i-- > 0;)
        for (uint8_t w = 0; graph->op[i].kind->weights_apart && w < graph->op[i].weight_count; w++)
            updated_add(list, graph->op[i].weight[w]);
}
