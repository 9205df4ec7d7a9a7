/* The lines of weights: their gathers, the sums of their gradients, and the update. */
#include "sim/graph/list_parts.h"

/* --- Weights that are read --- */

struct sharding graph_list_weight(struct graph_list *list, tensor weight, bool backward)
{
    const struct graph_terms *terms = graph_list_graph(list)->terms;
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[weight];
    uint32_t const axes = sharding_axes(&of->at) & terms->axis_x;
    struct sharding const whole = sharding_gathered(&of->at, axes);
    bool const travels = (list->weights->gathers[backward] >> weight & 1) != 0;
    const char *remark = "not on critical path, can do it during previous layer";
    if (axes == 0 || list->weight_there[weight] || !travels) return whole;
    if (backward || terms->axis_y != 0) remark = "can be done ahead of time";
    if (backward && graph_remat_repeats(terms->policy.remat))
        remark = "shared with the repeated forward pass";
    list->weight_there[weight] = true;
    graph_list_collective(list, &of->at, &whole, "AllGather", axes, of->format, remark);
    return whole;
}

/* --- Gradients --- */

/* A weight as its gradient is wanted: "W_in[D_X, F_Y]". Experts that only some ranks of an axis
 * hold have no letter for these. */
static struct sharding wanted(const struct graph_list *list, tensor weight)
{
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[weight];
    bool const apart = of->grouped && list->weights->grouped_ranks != 0;
    return apart ? of->at : list->weights->state->tensor[weight].at;
}

/* Axes that a weight's gradient is a sum over: of the dimensions that its product contracts. */
uint32_t graph_list_summed(const struct graph_list *list, const struct sharding *left,
                           tensor weight)
{
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[weight];
    struct sharding contracted = {.dimension_count = 0};
    for (uint32_t d = 0; d < left->dimension_count; d++)
        if (!sharding_has(&of->at, left->dimension[d].name))
            contracted.dimension[contracted.dimension_count++] = left->dimension[d];
    uint32_t axes = sharding_axes(&contracted) | list->backward->due[weight];
    if (of->grouped && list->weights->grouped_ranks != 0) axes &= ~list->weights->axis_same;
    return axes;
}

void graph_list_collective(struct graph_list *list, const struct sharding *from,
                           const struct sharding *to, const char *kind, uint32_t axes,
                           enum format format, const char *remark_text)
{
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    char letters[SHARDING_AXES_MAX + 1];
    graph_phrase_array(&what, list, to);
    graph_phrase_add(&what, " = %s_%s(", kind,
                     sharding_axes_text(graph_list_mesh(list), axes, letters));
    graph_phrase_array(&what, list, from);
    graph_phrase_add(&what, ")");
    graph_phrase_add(&remark, "%s", remark_text);
    graph_list_add(list, to, format, &remark, &what);
}

/* Weights of a block whose gradients lie in parts: "dW_K and dW_V". */
static void partial_names(const struct graph_list *list, uint8_t block, struct graph_phrase *names)
{
    const struct graph *graph = graph_list_graph(list);
    uint32_t left = 0;
    for (uint32_t way = 0; way < 2; way++)
        for (uint8_t i = graph->block[block].first;
             i < graph->block[block].first + graph->block[block].count; i++)
            for (uint8_t w = 0; w < graph->op[i].weight_count; w++) {
                tensor const weight = graph->op[i].weight[w];
                if (list->backward->parts[weight] == 1) continue;
                if (way == 0) {
                    left++;
                    continue;
                }
                graph_phrase_join(names, --left == 0 ? " and " : ", ");
                graph_phrase_add(names, "d%s", graph->tensor[weight].at.name);
            }
}

static bool is_reduced(const struct graph_list *list, tensor weight)
{
    return (list->weights->reduces >> weight & 1) != 0;
}

/* The sum of what ranks of tp have of a gradient: holders of one head, or all. */
static void parts_add(struct graph_list *list, uint8_t block, tensor weight,
                      struct sharding *gradient)
{
    uint32_t const tp = graph_list_graph(list)->terms->axis_y;
    enum format const format = graph_list_graph(list)->tensor[weight].gradient;
    struct graph_phrase remark = {.length = 0}, what = {.length = 0}, names = {.length = 0};
    if (list->backward->parts[weight] == 1 || !is_reduced(list, weight)) return;
    partial_names(list, block, &names);
    graph_phrase_add(&remark, "one AllReduce for %s, can be done async", names.bytes);
    if ((gradient->unreduced & tp) != 0) {
        struct sharding to = *gradient;
        to.unreduced &= ~tp;
        graph_list_collective(list, gradient, &to, "AllReduce", tp, format, remark.bytes);
        *gradient = to;
        return;
    }
    graph_phrase_add(&what, "%s = AllReduce(%s) over the %u chips that hold a head", gradient->name,
                     gradient->name, list->backward->parts[weight]);
    graph_list_add(list, gradient, format, &remark, &what);
}

/* ReduceScatter where the gradient is wanted split, AllReduce where it is not. */
static void reductions_add(struct graph_list *list, tensor weight, struct sharding gradient)
{
    static const char remark[] = "not on critical path, can be done async";
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[weight];
    const struct graph_list_weights *weights = list->weights;
    struct sharding const state = wanted(list, weight);
    uint32_t const due = gradient.unreduced & ~graph_list_graph(list)->terms->axis_y;
    uint32_t const scatter = due & sharding_axes(&state);
    struct sharding to = graph_list_gradient(&state);
    struct graph_phrase what = {.length = 0}, why = {.length = 0};
    if (!is_reduced(list, weight)) return;
    to.unreduced = gradient.unreduced & ~scatter;
    if (scatter != 0) {
        graph_list_collective(list, &gradient, &to, "ReduceScatter", scatter, of->gradient, remark);
        gradient = to;
    }
    to.unreduced &= ~due;
    if ((due & ~scatter) != 0)
        graph_list_collective(list, &gradient, &to, "AllReduce", due & ~scatter, of->gradient,
                              remark);
    if (!of->grouped || weights->grouped_ranks < 2) return;
    graph_phrase_add(&why, "%s", remark);
    graph_phrase_add(&what, "%s = %s(%s) over the %u ranks that hold the same experts", to.name,
                     weights->grouped_scatters ? "ReduceScatter" : "AllReduce", to.name,
                     weights->grouped_ranks);
    graph_list_add(list, NULL, 0, &why, &what);
}

void graph_list_reduce(struct graph_list *list, uint8_t block, tensor weight,
                       struct sharding gradient)
{
    parts_add(list, block, weight, &gradient);
    reductions_add(list, weight, gradient);
}

/* "dW_out[F_Y, D_X], dW_in[D_X, F_Y]", as the pass has to compute them, from the last block on. */
void graph_list_goals(struct graph_list *list)
{
    const struct graph *graph = graph_list_graph(list);
    for (uint8_t block = graph->block_count; block-- > 0;) {
        const struct graph_span *span = &graph->block[block];
        struct graph_phrase goals = {.length = 0};
        for (uint8_t i = (uint8_t)(span->first + span->count); i-- > span->first;)
            for (uint8_t w = 0; graph->op[i].kind->weights_apart && w < graph->op[i].weight_count;
                 w++) {
                struct sharding const state = wanted(list, graph->op[i].weight[w]);
                struct sharding const gradient = graph_list_gradient(&state);
                graph_phrase_join(&goals, ", ");
                graph_phrase_array(&goals, list, &gradient);
            }
        strbuf_add(list->text, "%s%s\n", goals.bytes, block > 0 ? "," : "");
        if (block > 0) strbuf_add(list->text, "  ");
    }
}

/* "W_in[D, F] = AllGather_X(W_in[D_X, F])" */
static void updated_add(struct graph_list *list, tensor weight)
{
    static const char remark[] = "after the update of this rank's part";
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[weight];
    uint32_t const ranks = list->weights->grouped_ranks;
    struct sharding const from = wanted(list, weight);
    uint32_t const axes = sharding_axes(&from) & graph_list_graph(list)->terms->axis_x;
    struct sharding const to = sharding_gathered(&from, axes);
    struct graph_phrase what = {.length = 0}, why = {.length = 0};
    if (!of->grouped || ranks == 0) {
        graph_list_collective(list, &from, &to, "AllGather", axes, of->format, remark);
    } else if (ranks > 1) {
        graph_phrase_array(&what, list, &of->at);
        graph_phrase_add(&what, " = AllGather(%s) over the %u ranks that hold the same experts",
                         of->at.name, ranks);
        graph_phrase_add(&why, "%s", remark);
        graph_list_add(list, &of->at, of->format, &why, &what);
    }
}

void graph_list_update(struct graph_list *list)
{
    const struct graph *graph = graph_list_graph(list);
    list->line = 0;
    for (uint8_t block = graph->block_count; block-- > 0;) {
        const struct graph_span *span = &graph->block[block];
        for (uint8_t i = (uint8_t)(span->first + span->count); i-- > span->first;) {
            const struct graph_op *op = &graph->op[i];
            for (uint8_t w = 0; op->kind->weights_apart && w < op->weight_count; w++)
                updated_add(list, op->weight[w]);
        }
    }
}
