/* The lines of a backward pass. */
#include <string.h>

#include "sim/graph/list_parts.h"

/* --- Gradients as arrays --- */

/* Of a result, as an op's gradients read it: gathered where the forward pass scattered it. */
static struct sharding d_out(const struct graph_list *list, const struct graph_op *op, tensor out)
{
    const struct graph *graph = graph_list_graph(list);
    uint32_t const scatter = graph_shard_of(list->sharded, op)->scatter;
    if (scatter == 0) out = graph_value_at(list->sharded, out, /* gradient= */ true);
    struct sharding const whole = sharding_gathered(&graph->tensor[out].gradient_at, scatter);
    struct sharding gradient = graph_list_gradient(&whole);
    gradient.unreduced |= list->backward->due[out];
    return gradient;
}

/* Of an input, as the op gives it: a sum where the forward pass gathered it. */
static struct sharding d_in(const struct graph_list *list, const struct graph_op *op, tensor in)
{
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[in];
    uint32_t const gather =
        graph_shard_of(list->sharded, op)->gather & sharding_axes(&of->gradient_at);
    struct sharding const whole = sharding_gathered(&of->gradient_at, gather);
    struct sharding gradient = graph_list_gradient(&whole);
    gradient.unreduced |= gather | list->backward->due[in];
    return gradient;
}

/* "dGate, dUp = silu'(dTmp)": the function's name with a prime; what has none is multiplied. */
static void prime_add(const struct graph_list *list, const struct graph_op *op, uint8_t result,
                      struct graph_phrase *what)
{
    const char *formula = graph_list_formula(op), *opens = strchr(formula, '(');
    const char *end = opens != NULL ? opens : formula + strlen(formula);
    struct sharding const gradient = d_out(list, op, op->out[result]);
    for (const char *at = formula; at < end; at++) {
        if (*at == '$')
            graph_phrase_add(what, "%s", op->name);
        else if (*at == '%' || *at == '+' || *at == '@')
            graph_phrase_array(what, list, &gradient);
        else
            graph_phrase_add(what, "%c", *at);
    }
    if (opens == NULL) return;
    graph_phrase_add(what, "'(");
    graph_phrase_array(what, list, &gradient);
    graph_phrase_add(what, ")");
}

/* What a product was multiplied with, where the forward pass gathered it and no step gathers it
 * again: it is kept so, or comes from the repetition. */
static void sharing_add(struct graph_list *list, const struct graph_op *op, tensor of)
{
    const struct graph *graph = graph_list_graph(list);
    uint32_t const axes =
        graph_shard_of(list->sharded, op)->gather & sharding_axes(&graph->tensor[of].at);
    bool const repeats = graph_remat_repeats(graph->terms->policy.remat);
    struct graph_phrase remark = {.length = 0};
    if (axes == 0 || list->shared[of]) return;
    list->shared[of] = true;
    graph_phrase_add(&remark,
                     "not on critical path; this can be skipped by sharing with (%u) %s the %s, "
                     "and is",
                     list->gathered_at[of], repeats ? "of" : "from",
                     repeats ? "repeated forward pass" : "forward pass");
    struct sharding const whole = sharding_gathered(&graph->tensor[of].at, axes);
    graph_list_collective(list, &graph->tensor[of].at, &whole, "AllGather", axes,
                          graph->tensor[of].format, remark.bytes);
}

/* Of an op that gives the gradient of weights, but is listed by no products: "dW_embedding[Vocab,
 * D] {U_X} = Lookup'(dRows[B_X, D])". */
static void scattered_add(struct graph_list *list, const struct graph_op *op, tensor weight)
{
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[weight];
    struct sharding const from = d_out(list, op, op->out[0]);
    struct sharding const whole = sharding_gathered(&of->at, graph_list_graph(list)->terms->axis_x);
    struct sharding gradient = graph_list_gradient(&whole);
    struct graph_phrase what = {.length = 0};
    gradient.unreduced = graph_list_summed(list, &from, weight);
    graph_phrase_array(&what, list, &gradient);
    graph_phrase_add(&what, " = ");
    prime_add(list, op, 0, &what);
    graph_list_add(list, &gradient, of->gradient, NULL, &what);
    graph_list_reduce(list, op->block, weight, gradient);
}

static void weight_gradients_add(struct graph_list *list, const struct graph_op *op)
{
    const struct graph *graph = graph_list_graph(list);
    bool const products = graph_list_formula(op) == NULL;
    for (uint8_t w = 0; !products && w < op->weight_count; w++)
        scattered_add(list, op, op->weight[w]);
    for (uint8_t i = 0; products && i < op->as.matmul.product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        struct graph_phrase remark = {.length = 0};
        const struct graph_tensor *weight = &graph->tensor[product->weight];
        sharing_add(list, op, product->left);
        struct sharding const left = graph_list_in(list, op, product->left);
        struct sharding const right = d_out(list, op, product->out);
        struct sharding const whole = sharding_gathered(&weight->at, graph->terms->axis_x);
        struct sharding gradient = graph_list_gradient(&whole);
        gradient.unreduced = graph_list_summed(list, &left, product->weight);
        if (weight->adds && !graph->terms->policy.adds)
            graph_phrase_add(&remark, "added to that of an earlier use");
        graph_list_product(list, &left, &right, &gradient, weight->gradient, &remark);
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

static void product_remark(struct graph_list *list, const struct graph_op *op, uint8_t index,
                           const struct sharding *right, const struct sharding *weight,
                           struct graph_phrase *remark)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_product *product = &op->as.matmul.product[index];
    bool const last = index + 1 == op->as.matmul.product_count;
    bool const adds = !last && product[1].left == product->left;
    bool const ends = !adds && list->backward->readers[product->left] == 1;
    bool const dx_first = graph->terms->policy.dx_first || op->one_kernel;
    bool const read =
        last && !dx_first && !list->halves && graph_shard_of(list->sharded, op)->scatter != 0;
    bool const whole =
        (sharding_axes(&graph->tensor[product->weight].at) & graph->terms->axis_x) != 0;
    if (adds) graph_phrase_add(remark, "added up");
    if (ends && is_stream(graph, product->left))
        graph_phrase_add(remark, "needed for previous layers");
    if (!read && !whole) return;
    graph_phrase_join(remark, "; ");
    graph_phrase_add(remark, "can throw away ");
    if (read) graph_phrase_array(remark, list, right);
    if (read && whole) graph_phrase_add(remark, " and ");
    if (whole) graph_phrase_array(remark, list, weight);
    graph_phrase_add(remark, " here");
}

/* What was computed on the way has its gradient on the way, too. */
static void fused_gradients_add(struct graph_list *list, const struct graph_op *op)
{
    const struct graph *graph = graph_list_graph(list);
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_op *fused = graph_fused(graph, op->in[i]);
        struct graph_phrase what = {.length = 0}, remark = {.length = 0};
        if (fused == NULL || fused->kind->passes_on) continue;
        for (uint8_t k = 0; k < fused->in_count; k++) {
            struct sharding const gradient = d_in(list, fused, fused->in[k]);
            graph_phrase_join(&what, ", ");
            graph_phrase_array(&what, list, &gradient);
        }
        graph_phrase_add(&what, " = ");
        prime_add(list, fused, 0, &what);
        graph_phrase_add(&remark, "as the matmul before writes it");
        graph_list_add(list, NULL, 0, &remark, &what);
    }
}

static void input_gradients_add(struct graph_list *list, const struct graph_op *op)
{
    const struct graph *graph = graph_list_graph(list);
    for (uint8_t i = 0; i < op->as.matmul.product_count; i++) {
        const struct graph_product *product = &op->as.matmul.product[i];
        struct graph_phrase remark = {.length = 0};
        struct sharding const right = d_out(list, op, product->out);
        struct sharding const weight = graph_list_weight(list, product->weight, true);
        struct sharding const left = d_in(list, op, product->left);
        product_remark(list, op, i, &right, &weight, &remark);
        graph_list_product(list, &right, &weight, &left, graph->tensor[product->left].gradient,
                           &remark);
    }
    for (uint8_t i = 0; i < op->as.matmul.copy_count; i++) {
        const struct graph_copy *copy = &op->as.matmul.copy[i];
        struct graph_phrase what = {.length = 0}, remark = {.length = 0};
        struct sharding const to = d_in(list, op, copy->in), from = d_out(list, op, copy->out);
        graph_phrase_array(&what, list, &to);
        graph_phrase_add(&what, " = sum of ");
        graph_phrase_array(&what, list, &from);
        graph_phrase_add(&remark, "over this rank's heads");
        graph_list_add(list, &to, graph->tensor[copy->in].gradient, &remark, &what);
    }
    fused_gradients_add(list, op);
}

/* --- Other computes --- */

/* Of a function of one input; that of the stream's sum goes on: "dX[B, D_Y] += Norm'(dIn[B, D_Y])".
 */
static void one_gradient_add(struct graph_list *list, const struct graph_op *op, uint8_t input)
{
    const struct graph *graph = graph_list_graph(list);
    bool const streams = graph_fused(graph, op->in[input]) != NULL;
    bool const sums = (streams && !graph->begins_backward) || graph->tensor[op->in[input]].shared;
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    struct sharding const to = d_in(list, op, op->in[input]);
    graph_phrase_array(&what, list, &to);
    graph_phrase_add(&what, sums ? " += " : " = ");
    prime_add(list, op, input, &what);
    if (sums || streams) graph_phrase_add(&remark, "needed for previous layers");
    graph_list_add(list, &to, graph->tensor[op->in[input]].gradient, &remark, &what);
}

/* Of one operand of a product whose gradients are products too: "dQ[B, N, H] = dS[B, N, T] *_T
 * K[B, K, H]". The left one's contracts the result's columns, the right one's its rows. */
static void operand_gradient_add(struct graph_list *list, const struct graph_op *op,
                                 enum op_pass pass)
{
    const struct graph *graph = graph_list_graph(list);
    bool const left = pass == OP_LEFT_GRADIENT;
    tensor const of = op->in[left ? 0 : 1], other = op->in[left ? 1 : 0];
    struct sharding const to = d_in(list, op, of), from = d_out(list, op, op->out[0]);
    struct sharding const factor = graph_list_in(list, op, other);
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    graph_phrase_array(&what, list, &to);
    graph_phrase_add(&what, " = ");
    graph_phrase_array(&what, list, left ? &from : &factor);
    graph_phrase_add(&what, " *_%s ", from.dimension[left ? from.dimension_count - 1 : 0].name);
    graph_phrase_array(&what, list, left ? &factor : &from);
    graph_list_add(list, &to, graph->tensor[of].gradient, &remark, &what);
}

/* Of several inputs; where these stand by name, all but the first gradient do. */
static void all_gradients_add(struct graph_list *list, const struct graph_op *op)
{
    const struct graph *graph = graph_list_graph(list);
    bool const names = strchr(graph_list_formula(op), '@') != NULL;
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    struct sharding const first = d_in(list, op, op->in[0]);
    for (uint8_t i = 0; i < op->in_count; i++) {
        struct sharding const gradient = d_in(list, op, op->in[i]);
        graph_phrase_join(&what, ", ");
        if (names && i > 0)
            graph_phrase_add(&what, "%s", gradient.name);
        else
            graph_phrase_array(&what, list, &gradient);
    }
    graph_phrase_add(&what, " = ");
    prime_add(list, op, 0, &what);
    if (op->kind->notation.remark_backward != NULL)
        graph_phrase_add(&remark, "%s", op->kind->notation.remark_backward);
    graph_list_add(list, &first, graph->tensor[op->in[0]].gradient, &remark, &what);
}

/* A gradient that passes on: copied where it is wanted in another format, else the same array. */
static void copies_add(struct graph_list *list, const struct graph_op *op)
{
    const struct graph *graph = graph_list_graph(list);
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_tensor *in = &graph->tensor[op->in[i]];
        struct graph_phrase what = {.length = 0}, remark = {.length = 0};
        bool const same = in->gradient == graph->tensor[op->out[0]].gradient;
        struct sharding const to = d_in(list, op, op->in[i]);
        graph_phrase_array(&what, list, &to);
        graph_phrase_add(&what, " = ");
        prime_add(list, op, 0, &what);
        if (!same) graph_phrase_add(&remark, "in %s", format_name(in->gradient));
        graph_list_add(list, same ? NULL : &to, in->gradient, &remark, &what);
    }
}

/* "dIn = dIn of Router + dSent + dIn of shared.Gate,Up" */
static void sum_add(struct graph_list *list, const struct graph_step *step)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_tensor *of = &graph->tensor[step->of];
    struct sharding const sum = graph_list_gradient(&of->gradient_at);
    struct graph_phrase what = {.length = 0}, terms = {.length = 0};
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t in = 0; !op->fused && in < op->in_count; in++) {
            if (op->in[in] != step->of) continue;
            tensor const from =
                op->kind->passes_on ? graph_value_at(list->sharded, op->out[0], true) : GRAPH_NONE;
            graph_phrase_join(&terms, " + ");
            if (from != GRAPH_NONE)
                graph_phrase_add(&terms, "d%s", graph->tensor[from].at.name);
            else
                graph_phrase_add(&terms, "d%s of %s", of->at.name, op->name);
        }
    }
    graph_phrase_array(&what, list, &sum);
    graph_phrase_add(&what, " = %s", terms.bytes);
    graph_list_add(list, &sum, of->gradient, NULL, &what);
}

static void compute_add(struct graph_list *list, const struct graph_step *step)
{
    const struct graph_op *op = &graph_list_graph(list)->op[step->op];
    if (step->of != GRAPH_NONE) {
        sum_add(list, step);
    } else if (op->kind->weights_apart) {
        if (op_gives_weight(step->pass)) weight_gradients_add(list, op);
        if (op_gives_input(step->pass)) input_gradients_add(list, op);
    } else if (op->kind->inputs_apart) {
        operand_gradient_add(list, op, step->pass);
    } else if (op->kind->passes_on) {
        copies_add(list, op);
    } else if (op->in_count == op->out_count) {
        for (uint8_t i = 0; i < op->in_count; i++) one_gradient_add(list, op, i);
    } else {
        all_gradients_add(list, op);
    }
}

/* --- Collectives --- */

static void gradient_moved(struct graph_list *list, const struct graph_step *step)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_tensor *of = &graph->tensor[step->of];
    const struct graph_shard *shard = graph_shard_of(list->sharded, &graph->op[step->op]);
    bool const gathers = step->move.kind == COLLECTIVE_ALL_GATHER;
    uint32_t const axes =
        gathers ? shard->scatter : shard->gather & sharding_axes(&of->gradient_at);
    tensor const there = graph_value_at(list->sharded, step->of, /* gradient= */ true);
    struct sharding const own = graph_list_gradient(&of->gradient_at);
    struct sharding const from = graph_list_gradient(&graph->tensor[there].gradient_at);
    struct sharding whole = sharding_gathered(&own, axes);
    if (!gathers) whole.unreduced |= axes;
    graph_list_collective(list, gathers ? &from : &whole, gathers ? &whole : &own,
                          collective_kind_name(step->move.kind), axes, of->gradient,
                          "on critical path");
}

static void move_add(struct graph_list *list, const struct graph_step *step)
{
    struct graph_phrase remark = {.length = 0};
    list->tell(list->context, step);
    if (graph_step_sums_weights(graph_list_graph(list), step))
        return; /* Listed with each of the gradients. */
    graph_phrase_add(&remark, "on critical path");
    if (step->of != GRAPH_NONE)
        gradient_moved(list, step);
    else
        graph_list_moved(list, step, &remark);
}

/* --- The pass --- */

/* "1 to 21, 23": lines that are repeated. */
static void repetition_add(struct graph_list *list)
{
    struct graph_phrase lines = {.length = 0};
    for (uint32_t i = 1; i <= list->forward_lines; i++) {
        uint32_t last = i;
        if (!list->repeated[i]) continue;
        while (last < list->forward_lines && list->repeated[last + 1]) last++;
        graph_phrase_join(&lines, ", ");
        graph_phrase_add(&lines, "%u", i);
        if (last > i) graph_phrase_add(&lines, " to %u", last);
        i = last;
    }
    strbuf_add(list->text,
               "  remat %s: first steps %s of the forward pass again, with their collectives\n",
               graph_list_policy(list), lines.bytes);
}

/* "dOut[B_X, D_Y] = dX": where a block's backward pass begins. */
static void begin_add(struct graph_list *list, uint8_t block)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_tensor *out = &graph->tensor[graph->block[block].out];
    struct sharding const gradient = graph_list_gradient(&out->gradient_at);
    struct graph_phrase what = {.length = 0};
    graph_phrase_array(&what, list, &gradient);
    if (block + 1 == graph->block_count)
        graph_phrase_add(&what, " = ...");
    else
        graph_phrase_add(&what, " = d%s", graph->tensor[graph->stream].at.name);
    graph_list_add(list, NULL, 0, NULL, &what);
}

/* A pass begins with no line of its own, but for the later half of weights. */
static void pass_begin(struct graph_list *list, const struct graph_steps *steps)
{
    list->halves = steps->request.half != GRAPH_WHOLE;
    if (!steps->request.backward || steps->request.half == GRAPH_WEIGHT_HALF) return;
    memset(list->shared, 0, sizeof list->shared);
    memset(list->weight_there, 0, sizeof list->weight_there);
}

static void step_add(struct graph_list *list, const struct graph_step *step)
{
    if (op_is_forward(step->pass)) {
        graph_list_step(list, step);
        return;
    }
    /* "dHidden, dEmbedded = dIn[B, 2D]": ops behind this one that have no steps. */
    uint8_t next = (uint8_t)(step->op + 1);
    bool const gives = step->is_compute && op_gives_input(step->pass);
    for (; gives && graph_makes_silently(list->sharded, next); next++)
        all_gradients_add(list, &graph_list_graph(list)->op[next]);
    (step->is_compute ? compute_add : move_add)(list, step);
}

void graph_list_backward(struct graph_list *list, const struct graph_steps *steps)
{
    const struct graph *graph = graph_list_graph(list);
    bool const repeats = graph_remat_repeats(graph->terms->policy.remat);
    bool const begins = steps->request.half != GRAPH_WEIGHT_HALF;
    uint8_t block = graph->block_count;
    pass_begin(list, steps);
    if (begins) {
        list->line = 0;
        strbuf_add(list->text, "\nBackward pass: need to compute ");
        graph_list_goals(list);
        if (repeats) repetition_add(list);
    }
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct graph_step *step = &steps->step[i];
        if (op_is_forward(step->pass) && repeats) {
            if (!step->is_compute) list->tell(list->context, step);
            continue;
        }
        if (begins && graph->op[step->op].block != block) {
            block = graph->op[step->op].block;
            begin_add(list, block);
        }
        step_add(list, step);
    }
}

void graph_list_end(struct graph_list *list, const struct graph_steps *steps)
{
    pass_begin(list, steps);
    for (uint32_t i = 0; i < steps->count; i++) step_add(list, &steps->step[i]);
}
