/* The lines of a backward pass. */
#include <string.h>

#include "sim/graph/list_parts.h"

/* --- Gradients of weights --- */

/* What a product was multiplied with, where the forward pass gathered it and no step gathers it
 * again: it is kept so, or comes from the repetition. */
static void sharing_add(struct graph_list *list, const struct graph_op *op, tensor of)
{
    const struct graph *graph = graph_list_graph(list);
    uint32_t const axes =
        graph_shard_of(&list->part->sharded, op)->gather & sharding_axes(&graph->tensor[of].at);
    bool const repeats = graph_remat_repeats(graph->terms->policy.remat);
    struct graph_array const part = graph_list_array(graph, of, false, 0);
    struct graph_array const whole = graph_list_array(graph, of, false, axes);
    struct graph_phrase remark = {.text = ""};
    if (axes == 0 || list->shared[of]) return;
    list->shared[of] = true;
    graph_phrase_join(&remark, "",
                      "not on critical path; this can be skipped by sharing with (%u) %s forward "
                      "pass, and is",
                      list->gathered_at[of], repeats ? "of the repeated" : "from the");
    graph_list_collective(list, &part, &whole, COLLECTIVE_ALL_GATHER, axes, remark.text);
}

/* Products give them, or an op that no products list: "dW_embedding[Vocab, D] {U_X} =
 * Lookup'(dRows[B_X, D])". */
static void weight_gradients_add(struct graph_list *list, const struct graph_op *op)
{
    const struct graph *graph = graph_list_graph(list);
    bool const products = graph_list_formula(op) == NULL;
    for (uint8_t w = 0; !products && w < op->weight_count; w++) {
        struct graph_array const from = graph_list_read(list, op, op->out[0], true);
        struct graph_array const gradient = graph_list_weight_gradient(list, &from, op->weight[w]);
        graph_list_line(list, &gradient, "", "%s = %s", graph_list_text(list, &gradient).text,
                        graph_list_primed(list, op, 0).text);
        graph_list_reduce(list, op->block, op->weight[w], gradient);
    }
    for (uint8_t i = 0; products && i < op->product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        bool const adds = graph->tensor[product->weight].adds && !graph->terms->policy.adds;
        sharing_add(list, op, product->left);
        struct graph_array const left = graph_list_read(list, op, product->left, false);
        struct graph_array const right = graph_list_read(list, op, product->out, true);
        struct graph_array const gradient =
            graph_list_weight_gradient(list, &left, product->weight);
        graph_list_product(list, &left, &right, &gradient,
                           adds ? "added to that of an earlier use" : "");
        graph_list_reduce(list, op->block, product->weight, gradient);
    }
}

/* --- Gradients of inputs --- */

/* Whether a tensor is what the layer's stream gives a block: the gradient goes to other layers. */
static bool is_stream(const struct graph *graph, tensor of)
{
    const struct graph_op *maker = graph_maker(graph, of);
    if (maker == NULL) return true;
    const struct graph_op *fused = graph_fused(graph, maker->in[0]);
    return fused != NULL && fused->kind->passes_on;
}

static struct graph_phrase product_remark(const struct graph_list *list, const struct graph_op *op,
                                          uint8_t index, const struct graph_array *right,
                                          const struct graph_array *weight)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_product *product = &op->as.matmul.product[index];
    bool const last = index + 1 == op->product_count;
    bool const adds = !last && product[1].left == product->left;
    bool const ends = !adds && list->part->backward.readers[product->left] == 1;
    bool const dx_first = graph->terms->policy.dx_first || op->gradients.one_kernel;
    struct graph_phrase remark = {.text = ""}, read = {.text = ""};
    if (adds) graph_phrase_join(&remark, "", "added up");
    if (ends && is_stream(graph, product->left))
        graph_phrase_join(&remark, "", "needed for previous layers");
    if (last && !dx_first && !list->halves &&
        graph_shard_of(&list->part->sharded, op)->scatter != 0)
        graph_phrase_join(&read, "", "%s", graph_list_text(list, right).text);
    if ((sharding_axes(&graph->tensor[product->weight].at) & graph->terms->axis_x) != 0)
        graph_phrase_join(&read, " and ", "%s", graph_list_text(list, weight).text);
    if (read.text[0] != '\0') graph_phrase_join(&remark, "; ", "can throw away %s here", read.text);
    return remark;
}

static void products_add(struct graph_list *list, const struct graph_op *op)
{
    for (uint8_t i = 0; i < op->product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        struct graph_array const right = graph_list_read(list, op, product->out, true);
        struct graph_array const weight = graph_list_weight(list, product->weight, true);
        struct graph_array const left = graph_list_made(list, op, product->left, true);
        graph_list_product(list, &right, &weight, &left,
                           product_remark(list, op, i, &right, &weight).text);
    }
    for (uint8_t i = 0; i < op->as.matmul.copy_count; i++) {
        const struct graph_copy *copy = &op->as.matmul.copy[i];
        struct graph_array const to = graph_list_made(list, op, copy->in, true);
        struct graph_array const from = graph_list_read(list, op, copy->out, true);
        graph_list_line(list, &to, "over this rank's heads", "%s = sum of %s",
                        graph_list_text(list, &to).text, graph_list_text(list, &from).text);
    }
}

/* Of a function, some inputs' gradients: "dGate, dUp = silu'(dTmp)". Where its formula has inputs
 * by name, all but the first stand by name here, too. */
static void function_add(struct graph_list *list, const struct graph_op *op, uint8_t first,
                         uint8_t count, const char *sign, bool sized, const char *remark)
{
    bool const names = strchr(graph_list_formula(op), '@') != NULL;
    struct graph_array const made = graph_list_made(list, op, op->in[first], true);
    struct graph_phrase gradients = graph_list_text(list, &made);
    for (uint8_t i = (uint8_t)(first + 1); i < first + count; i++) {
        struct graph_array const gradient = graph_list_made(list, op, op->in[i], true);
        graph_phrase_join(&gradients, ", ", "%s",
                          names ? gradient.at.name : graph_list_text(list, &gradient).text);
    }
    graph_list_line(list, sized ? &made : NULL, remark, "%s %s %s", gradients.text, sign,
                    graph_list_primed(list, op, op->in_count == op->out_count ? first : 0).text);
}

/* Of one input, where each has a result: that of the stream's sum goes on, "dX[B, D_Y] +=
 * Norm'(dIn[B, D_Y])". */
static void one_add(struct graph_list *list, const struct graph_op *op, uint8_t input)
{
    const struct graph *graph = graph_list_graph(list);
    bool const streams = graph_fused(graph, op->in[input]) != NULL;
    bool const sums = (streams && !graph->begins_backward) || graph->tensor[op->in[input]].shared;
    function_add(list, op, input, 1, sums ? "+=" : "=", true,
                 sums || streams ? "needed for previous layers" : "");
}

static void all_add(struct graph_list *list, const struct graph_op *op)
{
    const char *remark = op->kind->notation.remark_backward;
    function_add(list, op, 0, op->in_count, "=", true, remark != NULL ? remark : "");
}

/* What passes on is copied where it is wanted in another format, else the same array. */
static void copy_add(struct graph_list *list, const struct graph_op *op, uint8_t input)
{
    const struct graph *graph = graph_list_graph(list);
    enum format const format = graph->tensor[op->in[input]].gradient;
    bool const same = format == graph->tensor[op->out[0]].gradient;
    struct graph_phrase remark = {.text = ""};
    if (!same) graph_phrase_join(&remark, "", "in %s", format_name(format));
    function_add(list, op, input, 1, "=", !same, remark.text);
}

/* What was computed on the way has its gradient on the way, too. */
static void fused_add(struct graph_list *list, const struct graph_op *op)
{
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_op *fused = graph_fused(graph_list_graph(list), op->in[i]);
        if (fused != NULL && !fused->kind->passes_on)
            function_add(list, fused, 0, fused->in_count, "=", false,
                         "as the matmul before writes it");
    }
}

/* Of one operand of a product whose gradients are products too: "dQ[B, N, H] = dS[B, N, T] *_T
 * K[B, K, H]". The left one's contracts the result's columns, the right one's its rows. */
static void operand_add(struct graph_list *list, const struct graph_op *op, enum op_pass pass)
{
    bool const left = pass == OP_LEFT_GRADIENT;
    struct graph_array const to = graph_list_made(list, op, op->in[left ? 0 : 1], true);
    struct graph_array const from = graph_list_read(list, op, op->out[0], true);
    struct graph_array const factor = graph_list_read(list, op, op->in[left ? 1 : 0], false);
    graph_list_line(list, &to, "", "%s = %s *_%s %s", graph_list_text(list, &to).text,
                    graph_list_text(list, left ? &from : &factor).text,
                    from.at.dimension[left ? from.at.dimension_count - 1 : 0].name,
                    graph_list_text(list, left ? &factor : &from).text);
}

/* "dIn = dIn of Router + dSent + dIn of shared.Gate,Up" */
static void sum_add(struct graph_list *list, const struct graph_step *step)
{
    const struct graph *graph = graph_list_graph(list);
    struct graph_array const sum = graph_list_array(graph, step->of, true, 0);
    struct graph_phrase terms = {.text = ""};
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t in = 0; !op->fused && in < op->in_count; in++) {
            if (op->in[in] != step->of) continue;
            tensor const from = op->kind->passes_on
                                    ? graph_value_at(&list->part->sharded, op->out[0], true)
                                    : GRAPH_NONE;
            if (from != GRAPH_NONE)
                graph_phrase_join(&terms, " + ", "d%s", graph->tensor[from].at.name);
            else
                graph_phrase_join(&terms, " + ", "%s of %s", sum.at.name, op->name);
        }
    }
    graph_list_line(list, &sum, "", "%s = %s", graph_list_text(list, &sum).text, terms.text);
}

/* --- The pass --- */

static void compute_add(struct graph_list *list, const struct graph_step *step)
{
    const struct graph_op *op = &graph_list_graph(list)->op[step->op];
    if (step->of != GRAPH_NONE) {
        sum_add(list, step);
    } else if (op->kind->weights_apart) {
        if (op_gives_weight(step->pass)) weight_gradients_add(list, op);
        if (!op_gives_input(step->pass)) return;
        products_add(list, op);
        fused_add(list, op);
    } else if (op->kind->inputs_apart) {
        operand_add(list, op, step->pass);
    } else if (op->kind->passes_on || op->in_count == op->out_count) {
        for (uint8_t i = 0; i < op->in_count; i++)
            (op->kind->passes_on ? copy_add : one_add)(list, op, i);
    } else {
        all_add(list, op);
    }
}

/* "1 to 21, 23": lines that are repeated. */
static void repetition_add(struct graph_list *list)
{
    struct graph_phrase lines = {.text = ""};
    for (uint32_t i = 1; i <= list->forward_lines; i++) {
        uint32_t const first = i;
        if (!list->repeated[i]) continue;
        while (i < list->forward_lines && list->repeated[i + 1]) i++;
        graph_phrase_join(&lines, ", ", "%u", first);
        if (i > first) graph_phrase_join(&lines, " to ", "%u", i);
    }
    strbuf_add(list->text,
               "  remat %s: first steps %s of the forward pass again, with their collectives\n",
               graph_list_policy(list), lines.text);
}

/* "dOut[B_X, D_Y] = dX": where a block's backward pass begins. */
static void begin_add(struct graph_list *list, uint8_t block)
{
    const struct graph *graph = graph_list_graph(list);
    struct graph_array const out = graph_list_array(graph, graph->block[block].out, true, 0);
    struct graph_array const x = graph_list_array(graph, graph->stream, true, 0);
    graph_list_line(list, NULL, "", "%s = %s", graph_list_text(list, &out).text,
                    block + 1 == graph->block_count ? "..." : x.at.name);
}

/* A pass begins with no line of its own, but for the later half of weights. */
static void pass_begin(struct graph_list *list, struct graph_request request,
                       struct graph_steps *ret_steps)
{
    graph_list_steps(list, request, ret_steps);
    list->halves = request.half != GRAPH_WHOLE;
    if (!request.backward || request.half == GRAPH_WEIGHT_HALF) return;
    memset(list->shared, 0, sizeof list->shared);
    memset(list->weight_there, 0, sizeof list->weight_there);
}

static void step_add(struct graph_list *list, const struct graph_step *step)
{
    if (op_is_forward(step->pass)) {
        graph_list_step(list, step);
        return;
    }
    if (!step->is_compute) {
        /* Sums of weights' gradients are listed with each of the gradients. */
        if (!graph_step_sums_weights(graph_list_graph(list), step))
            graph_list_moved(list, step, "on critical path");
        return;
    }
    /* "dHidden, dEmbedded = dIn[B, 2D]": ops behind this one that have no steps. */
    uint8_t next = (uint8_t)(step->op + 1);
    for (; op_gives_input(step->pass) && graph_makes_silently(&list->part->sharded, next); next++)
        all_add(list, &graph_list_graph(list)->op[next]);
    compute_add(list, step);
}

void graph_list_backward(struct graph_list *list, enum graph_half half)
{
    const struct graph *graph = graph_list_graph(list);
    bool const repeats = graph_remat_repeats(graph->terms->policy.remat);
    bool const begins = half != GRAPH_WEIGHT_HALF;
    uint8_t block = graph->block_count;
    struct graph_steps steps;
    pass_begin(list, (struct graph_request){.backward = true, .half = half}, &steps);
    if (begins) {
        list->line = 0;
        strbuf_add(list->text, "\nBackward pass: need to compute ");
        graph_list_goals(list);
        if (repeats) repetition_add(list);
    }
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        if (op_is_forward(step->pass) && i < steps.repeated) continue;
        if (begins && graph->op[step->op].block != block) {
            block = graph->op[step->op].block;
            begin_add(list, block);
        }
        step_add(list, step);
    }
}

void graph_list_end(struct graph_list *list, struct graph_request request)
{
    struct graph_steps steps;
    pass_begin(list, request, &steps);
    for (uint32_t i = 0; i < steps.count; i++) step_add(list, &steps.step[i]);
}
