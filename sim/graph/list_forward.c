/* The lines of a forward pass, and of what is repeated of it. */
#include "sim/graph/list_parts.h"

/* --- A compute --- */

/* Whether an array's rows, its last dimension, lie in parts over tp. */
static bool is_split(const struct graph_list *list, const struct sharding *array)
{
    struct sharding rows = {.dimension_count = 1};
    rows.dimension[0] = array->dimension[array->dimension_count - 1];
    return (sharding_axes(&rows) & graph_list_graph(list)->terms->axis_y) != 0;
}

/* "again, as norms does not keep it" of a step that is repeated where it is needed. */
static void again_add(const struct graph_list *list, const struct graph_step *step,
                      struct graph_phrase *remark)
{
    if (step->pass != OP_FORWARD)
        graph_phrase_join(remark, "; ", "again, as %s does not keep it", graph_list_policy(list));
}

static void result_add(struct graph_list *list, const struct graph_step *step, uint8_t result)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_op *op = &graph->op[step->op];
    const struct op_notation *notation = &op->kind->notation;
    struct graph_array const out = graph_list_made(list, op, op->out[result], false);
    struct graph_phrase remark = {.text = ""};
    if (op->weight_count != 0) (void)graph_list_weight(list, op->weight[0], false);
    if (notation->remark != NULL) graph_phrase_join(&remark, "", "%s", notation->remark);
    if (notation->remark_split != NULL && !op->sums_rows && is_split(list, &out.at))
        graph_phrase_join(&remark, "", "%s", notation->remark_split);
    if (notation->remark_further != NULL) {
        struct op_remark const further = notation->remark_further(graph);
        if (further.text[0] != '\0') graph_phrase_join(&remark, "; ", "%s", further.text);
    }
    if (notation->casts && out.format != graph->tensor[op->in[0]].format)
        graph_phrase_join(&remark, "", "in %s", format_name(out.format));
    again_add(list, step, &remark);
    graph_list_line(list, &out, remark.text, "%s = %s", graph_list_text(list, &out).text,
                    graph_list_applied(list, op, result).text);
}

/* Whether remat repeats all that a fused op reads: then whoever reads its result computes it on the
 * way again. */
static bool fused_repeats(const struct graph_list *list, const struct graph_op *fused)
{
    bool repeats = graph_remat_repeats(graph_list_graph(list)->terms->policy.remat);
    for (uint8_t i = 0; i < fused->in_count; i++) {
        uint8_t const maker = graph_list_graph(list)->tensor[fused->in[i]].made_by;
        repeats = repeats && maker != GRAPH_NONE && list->part->kept.again[maker];
    }
    return repeats;
}

/* What an op computes of its inputs on the way. A sum of the stream is listed where its block ends.
 */
static void fused_add(struct graph_list *list, const struct graph_op *op)
{
    bool const repeats = list->repeats;
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_op *fused = graph_fused(graph_list_graph(list), op->in[i]);
        if (fused == NULL || fused->kind->passes_on) continue;
        struct graph_array const out = graph_list_made(list, fused, fused->out[0], false);
        list->repeats = fused_repeats(list, fused);
        graph_list_line(
            list, NULL,
            fused->in_count > 1 ? "as the next matmul reads them" : "as the next matmul reads it",
            "%s = %s", graph_list_text(list, &out).text, graph_list_applied(list, fused, 0).text);
        list->repeats = repeats;
    }
}

static void product_add(struct graph_list *list, const struct graph_step *step,
                        const struct graph_product *product)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_op *op = &graph->op[step->op];
    const struct graph_sharded *sharded = &list->part->sharded;
    bool const last = product + 1 == op->as.matmul.product + op->product_count;
    bool const ends = product->out == graph->block[op->block].out;
    bool const split = graph->terms->policy.weights_split, tp = graph->terms->axis_y != 0;
    bool const again = (list->weights.gathers[1] >> product->weight & 1) != 0;
    struct graph_array const left = graph_list_read(list, op, product->left, false);
    struct graph_array const weight =
        graph_list_weight(list, product->weight, step->pass != OP_FORWARD);
    struct graph_array const out = graph_list_made(list, op, product->out, false);
    struct graph_phrase remark = {.text = ""};
    if (!last && product[1].out == product->out) graph_phrase_join(&remark, "", "added up");
    if (graph->tensor[product->weight].grouped)
        graph_phrase_join(&remark, "", "each expert by itself");
    bool const whole = (graph_scattered(sharded, op, product->out) |
                        graph_all_reduced(sharded, op, product->out)) == 0;
    if (!ends && tp && !split && whole)
        graph_phrase_join(&remark, "; ", "not sharded along contracting, so no comms");
    if (!ends && !tp && split && step->pass == OP_FORWARD && again)
        graph_phrase_join(&remark, "; ", "can throw away %s now",
                          graph_list_text(list, &weight).text);
    again_add(list, step, &remark);
    graph_list_product(list, &left, &weight, &out, remark.text);
}

static void copy_add(struct graph_list *list, const struct graph_step *step,
                     const struct graph_copy *copy)
{
    struct graph_array const out = graph_list_array(graph_list_graph(list), copy->out, false, 0);
    struct graph_array const in = graph_list_array(graph_list_graph(list), copy->in, false, 0);
    struct graph_phrase remark = {.text = "for each head"};
    again_add(list, step, &remark);
    graph_list_line(list, &out, remark.text, "%s = %s", graph_list_text(list, &out).text,
                    graph_list_text(list, &in).text);
}

static void compute_add(struct graph_list *list, const struct graph_step *step)
{
    const struct graph_op *op = &graph_list_graph(list)->op[step->op];
    fused_add(list, op);
    if (graph_list_formula(op) == NULL) {
        for (uint8_t i = 0; i < op->product_count; i++)
            product_add(list, step, &op->as.matmul.product[i]);
        for (uint8_t i = 0; i < op->as.matmul.copy_count; i++)
            copy_add(list, step, &op->as.matmul.copy[i]);
        return;
    }
    for (uint8_t i = 0; i < op->out_count; i++)
        if (graph_list_graph(list)->tensor[op->out[i]].role != GRAPH_STATISTIC)
            result_add(list, step, i);
}

/* --- A collective --- */

static void move_add(struct graph_list *list, const struct graph_step *step)
{
    bool const again = step->pass != OP_FORWARD;
    bool const waits = !again || list->part->kept.for_input[step->op];
    bool const gathers = step->of != GRAPH_NONE && step->move.kind == COLLECTIVE_ALL_GATHER;
    struct graph_phrase remark = {.text = ""};
    graph_phrase_join(&remark, "", "%son critical path", waits ? "" : "not ");
    if (again && gathers) {
        bool const parts = graph_list_graph(list)->terms->policy.remat == GRAPH_REMAT_NONE;
        list->shared[step->of] = true;
        graph_phrase_join(&remark, "; ",
                          "this could be skipped by sharing with (%u) from the forward pass, but "
                          "%s %s",
                          list->gathered_at[step->of], graph_list_policy(list),
                          parts ? "keeps a rank's part alone" : "does not keep it");
    } else {
        again_add(list, step, &remark);
    }
    graph_list_moved(list, step, remark.text);
    if (!again && gathers) list->gathered_at[step->of] = list->line;
}

void graph_list_step(struct graph_list *list, const struct graph_step *step)
{
    if (!step->is_compute) {
        move_add(list, step);
        return;
    }
    compute_add(list, step);
    /* "In[B, 2D] = Hidden, Embedded": ops behind this one that have no steps. */
    struct graph_step next = {.op = (uint8_t)(step->op + 1), .pass = step->pass};
    for (; graph_makes_silently(&list->part->sharded, next.op); next.op++)
        result_add(list, &next, 0);
}

/* --- The forward pass --- */

/* Whether remat repeats a step of the forward pass before the backward pass. */
static bool is_repeated(const struct graph_list *list, const struct graph_step *step,
                        const struct graph_steps *backward)
{
    if (!graph_remat_repeats(graph_list_graph(list)->terms->policy.remat)) return false;
    for (uint32_t i = 0; i < backward->count; i++) {
        const struct graph_step *again = &backward->step[i];
        if (op_is_forward(again->pass) && again->is_compute == step->is_compute &&
            again->op == step->op && again->of == step->of &&
            (step->is_compute || again->move.kind == step->move.kind))
            return true;
    }
    return false;
}

/* How the stream's sum is computed: in all blocks of a layer alike. */
static const char *sum_remark(const struct graph *graph)
{
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->in_count > 0 && graph_fused(graph, op->in[0]) != NULL &&
            op->kind->notation.remark_sum != NULL)
            return op->kind->notation.remark_sum;
    }
    return "";
}

/* The op whose input is the sum of the stream and a block's result, or NULL. */
static const struct graph_op *sum_of(const struct graph *graph, uint8_t block)
{
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->block == block + 1 && op->fused && op->kind->passes_on) return op;
    }
    return NULL;
}

/* "X += Out": what the next block reads first adds them up, so it is repeated with that. */
static void residual_add(struct graph_list *list, const struct graph_steps *backward, uint8_t block)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_op *sum = sum_of(graph, block);
    struct graph_array const x = graph_list_array(graph, graph->stream, false, 0);
    struct graph_array const out = graph_list_array(graph, graph->block[block].out, false, 0);
    list->repeats = false;
    for (uint32_t i = 0; sum != NULL && i < backward->count; i++) {
        const struct graph_step *step = &backward->step[i];
        if (step->is_compute && step->pass == OP_AGAIN && graph->op[step->op].in[0] == sum->out[0])
            list->repeats = graph_remat_repeats(graph->terms->policy.remat);
    }
    graph_list_line(list, &x, sum_remark(graph), "%s += %s", graph_list_text(list, &x).text,
                    graph_list_text(list, &out).text);
}

void graph_list_forward(struct graph_list *list)
{
    const struct graph *graph = graph_list_graph(list);
    struct graph_steps forward, backward;
    /* Without norms there is no stream: the block's result is the layer's. */
    bool const streams = graph_maker(graph, graph->stream) != NULL;
    const char *name = graph->terms->cache.is_there ? "Next[B_ZX]" : "Loss[B_ZX]";
    struct graph_array const loss = {.at = graph_sharding(graph, name, GRAPH_ACTIVATION)};
    struct graph_phrase const goal = graph_list_text(list, &loss);
    uint8_t block = 0;
    graph_list_steps(list, (struct graph_request){.backward = false}, &forward);
    graph_list_steps(list, (struct graph_request){.backward = true}, &backward);
    list->line = 0;
    strbuf_add(list->text, "\nForward pass: need to compute %s\n", goal.text);
    for (uint32_t i = 0; i < forward.count; i++) {
        const struct graph_step *step = &forward.step[i];
        for (; streams && block < graph->op[step->op].block; block++)
            residual_add(list, &backward, block);
        list->repeats = is_repeated(list, step, &backward);
        graph_list_step(list, step);
    }
    for (; streams && block < graph->block_count; block++) residual_add(list, &backward, block);
    list->repeats = false;
    list->forward_lines = list->line;
    if (!streams) graph_list_line(list, NULL, "", "%s = ...", goal.text);
}
