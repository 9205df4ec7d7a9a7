/* The lines of a forward pass, and of what is repeated of it. */
#include <string.h>

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
    if (step->pass == OP_FORWARD) return;
    graph_phrase_join(remark, "; ");
    graph_phrase_add(remark, "again, as %s does not keep it", graph_list_policy(list));
}

const char *graph_list_formula(const struct graph_op *op)
{
    return op->formula != NULL ? op->formula : op->kind->notation.formula;
}

/* "silu(Gate[B, F]) * Up[B, F]": a formula with an op's inputs, from one of them on. */
static void formula_add(struct graph_list *list, const struct graph_op *op, uint8_t input,
                        struct graph_phrase *what)
{
    for (const char *at = graph_list_formula(op); *at != '\0'; at++) {
        if (*at == '%') {
            struct sharding const in = graph_list_in(list, op, op->in[input++]);
            graph_phrase_array(what, list, &in);
        } else if (*at == '@' || *at == '+') {
            for (uint8_t i = 0; i < op->in_count; i++) {
                struct sharding const in = graph_list_in(list, op, op->in[i]);
                if (i > 0) graph_phrase_add(what, *at == '@' ? ", " : " + ");
                if (*at == '@')
                    graph_phrase_add(what, "%s", in.name);
                else
                    graph_phrase_array(what, list, &in);
            }
        } else if (*at == '$') {
            graph_phrase_add(what, "%s", op->name);
        } else if (*at == '&') {
            struct sharding const weight = graph_list_weight(list, op->weight[0], false);
            graph_phrase_array(what, list, &weight);
        } else {
            graph_phrase_add(what, "%c", *at);
        }
    }
}

static void result_add(struct graph_list *list, const struct graph_step *step, uint8_t result)
{
    const struct graph_op *op = &graph_list_graph(list)->op[step->op];
    const struct graph_tensor *of = &graph_list_graph(list)->tensor[op->out[result]];
    const struct op_notation *notation = &op->kind->notation;
    const struct graph_terms *terms = graph_list_graph(list)->terms;
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    struct sharding const out = graph_list_out(list, op, result);
    graph_phrase_array(&what, list, &out);
    graph_phrase_add(&what, " = ");
    formula_add(list, op, result, &what);
    if (notation->remark != NULL) graph_phrase_add(&remark, "%s", notation->remark);
    if (notation->remark_split != NULL && is_split(list, &out))
        graph_phrase_add(&remark, "%s", notation->remark_split);
    if (op->kind->shares_sequence && terms->sequence.window != 0)
        graph_phrase_add(&remark, "; %llu keys at most",
                         (unsigned long long)terms->sequence.window);
    if (strcmp(graph_list_formula(op), "%") == 0 &&
        of->format != graph_list_graph(list)->tensor[op->in[0]].format)
        graph_phrase_add(&remark, "in %s", format_name(of->format));
    again_add(list, step, &remark);
    graph_list_add(list, &out, of->format, &remark, &what);
}

/* Whether remat repeats all that a fused op reads: then whoever reads its result computes it on the
 * way again. */
static bool fused_repeats(const struct graph_list *list, const struct graph_op *fused)
{
    bool repeats = graph_remat_repeats(graph_list_graph(list)->terms->policy.remat);
    for (uint8_t i = 0; i < fused->in_count; i++) {
        uint8_t const maker = graph_list_graph(list)->tensor[fused->in[i]].made_by;
        repeats = repeats && maker != GRAPH_NONE && list->kept->again[maker];
    }
    return repeats;
}

/* What an op computes of its inputs on the way. A sum of the stream is listed where its block ends.
 */
static void fused_add(struct graph_list *list, const struct graph_op *op)
{
    for (uint8_t i = 0; i < op->in_count; i++) {
        const struct graph_op *fused = graph_fused(graph_list_graph(list), op->in[i]);
        struct graph_phrase what = {.length = 0}, remark = {.length = 0};
        if (fused == NULL || fused->kind->passes_on) continue;
        struct sharding const out = graph_list_out(list, fused, 0);
        graph_phrase_array(&what, list, &out);
        graph_phrase_add(&what, " = ");
        formula_add(list, fused, 0, &what);
        graph_phrase_add(&remark, "as the next matmul reads %s",
                         fused->in_count > 1 ? "them" : "it");
        bool const repeats = list->repeats;
        list->repeats = fused_repeats(list, fused);
        graph_list_add(list, NULL, 0, &remark, &what);
        list->repeats = repeats;
    }
}

static void product_add(struct graph_list *list, const struct graph_step *step,
                        const struct graph_product *product)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_op *op = &graph->op[step->op];
    const struct graph_terms *terms = graph->terms;
    const struct graph_shard *shard = graph_shard_of(list->sharded, op);
    struct graph_phrase remark = {.length = 0};
    const struct graph_matmul *matmul = &op->as.matmul;
    bool const last = product + 1 == matmul->product + matmul->product_count;
    bool const ends = product->out == graph->block[op->block].out;
    bool const reduces = (shard->scatter | shard->all_reduce) != 0;
    struct sharding const left = graph_list_in(list, op, product->left);
    struct sharding const weight =
        graph_list_weight(list, product->weight, step->pass != OP_FORWARD);
    struct sharding out = sharding_gathered(&graph->tensor[product->out].at, shard->scatter);
    out.unreduced |= shard->scatter | shard->all_reduce;
    if (!last && product[1].out == product->out) graph_phrase_add(&remark, "added up");
    if (graph->tensor[product->weight].grouped) graph_phrase_add(&remark, "each expert by itself");
    if (!ends && terms->axis_y != 0 && !terms->policy.weights_split && !reduces) {
        graph_phrase_join(&remark, "; ");
        graph_phrase_add(&remark, "not sharded along contracting, so no comms");
    }
    bool const again = (list->weights->gathers[1] >> product->weight & 1) != 0;
    if (!ends && terms->axis_y == 0 && terms->policy.weights_split && step->pass == OP_FORWARD &&
        again) {
        graph_phrase_join(&remark, "; ");
        graph_phrase_add(&remark, "can throw away ");
        graph_phrase_array(&remark, list, &weight);
        graph_phrase_add(&remark, " now");
    }
    again_add(list, step, &remark);
    graph_list_product(list, &left, &weight, &out, graph->tensor[product->out].format, &remark);
}

static void copy_add(struct graph_list *list, const struct graph_step *step,
                     const struct graph_copy *copy)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_tensor *out = &graph->tensor[copy->out];
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    graph_phrase_array(&what, list, &out->at);
    graph_phrase_add(&what, " = ");
    graph_phrase_array(&what, list, &graph->tensor[copy->in].at);
    graph_phrase_add(&remark, "for each head");
    again_add(list, step, &remark);
    graph_list_add(list, &out->at, out->format, &remark, &what);
}

static void compute_add(struct graph_list *list, const struct graph_step *step)
{
    const struct graph_op *op = &graph_list_graph(list)->op[step->op];
    fused_add(list, op);
    if (graph_list_formula(op) == NULL) {
        for (uint8_t i = 0; i < op->as.matmul.product_count; i++)
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

void graph_list_moved(struct graph_list *list, const struct graph_step *step,
                      const struct graph_phrase *remark)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_op *op = &graph->op[step->op];
    bool const gradient = !op_is_forward(step->pass) && !step->move.before;
    bool const one = step->move.carries && step->move.of != OP_MOVES_ALL;
    uint8_t const of = one ? step->move.of : 0;
    const char *kind = collective_kind_name(step->move.kind), *d = gradient ? "d" : "";
    struct graph_phrase what = {.length = 0}, names = {.length = 0};
    for (uint8_t i = 1; !one && i < op->in_count; i++) {
        graph_phrase_join(&names, ", ");
        graph_phrase_add(&names, "%s%s", d, graph->tensor[op->in[i]].at.name);
    }
    if (step->move.carries) {
        tensor const to = gradient ? op->in[of] : op->out[of];
        tensor const from =
            graph_value_at(list->sharded, gradient ? op->out[of] : op->in[of], gradient);
        const struct graph_tensor *made = &graph->tensor[to], *sent = &graph->tensor[from];
        struct sharding result = gradient ? graph_list_gradient(&made->gradient_at) : made->at;
        struct sharding const operand =
            gradient ? graph_list_gradient(&sent->gradient_at) : sent->at;
        graph_phrase_array(&what, list, &result);
        char letters[SHARDING_AXES_MAX + 1];
        enum op_axis const axis = step->move.axis;
        uint32_t const axes = axis == OP_AXIS_SEQUENCE ? graph->terms->axis_c
                              : axis != OP_AXIS_TP     ? 0
                                                       : graph->terms->axis_y;
        graph_phrase_add(&what, " = %s%s%s(", kind, axes != 0 ? "_" : "",
                         sharding_axes_text(graph_list_mesh(list), axes, letters));
        graph_phrase_array(&what, list, &operand);
        graph_phrase_add(&what, ")");
        if (axis == OP_AXIS_EP) /* It has no letter. */
            graph_phrase_add(&what, " over the %u ranks of ep", graph->terms->ranks_exchange);
        if (axis == OP_AXIS_HOLDERS)
            graph_phrase_add(&what, " over the %u ranks with the same heads",
                             graph->terms->cache.batch_ways * graph->terms->cache.sequence_ways);
        struct graph_phrase why = *remark;
        if (names.length != 0) graph_phrase_add(&why, "; with %s", names.bytes);
        graph_list_add(list, &result, gradient ? made->gradient : made->format, &why, &what);
        return;
    }
    if (gradient)
        graph_phrase_add(&what, "%s of this rank = %s(%s) over the sequence's %u ranks",
                         names.bytes, kind, names.bytes, graph->terms->sequence.parts);
    else
        graph_phrase_add(&what, "%s of the sequence = %s(%s) over its %u ranks", names.bytes, kind,
                         names.bytes, graph->terms->sequence.parts);
    struct graph_phrase round = {.length = 0};
    graph_phrase_add(&round, "part by part, while attention runs");
    bool const rounds = op->kind->passes_round && step->move.kind != COLLECTIVE_PERMUTE;
    graph_list_add(list, NULL, 0, rounds ? &round : remark, &what);
}

/* Over tp, of a tensor. */
static void tensor_moved(struct graph_list *list, const struct graph_step *step,
                         const struct graph_phrase *remark)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_tensor *of = &graph->tensor[step->of];
    const struct graph_shard *shard = graph_shard_of(list->sharded, &graph->op[step->op]);
    bool const gathers = step->move.kind == COLLECTIVE_ALL_GATHER;
    uint32_t const axes = gathers ? list->sharded->gathered[step->of]
                          : step->move.kind == COLLECTIVE_REDUCE_SCATTER ? shard->scatter
                                                                         : shard->all_reduce;
    struct sharding const there =
        graph->tensor[graph_value_at(list->sharded, step->of, /* gradient= */ false)].at;
    struct sharding whole = sharding_gathered(&of->at, axes);
    if (!gathers) whole.unreduced |= axes;
    graph_list_collective(list, gathers ? &there : &whole, gathers ? &whole : &of->at,
                          collective_kind_name(step->move.kind), axes, of->format, remark->bytes);
    if (gathers && step->pass == OP_FORWARD) list->gathered_at[step->of] = list->line;
}

static void forward_move_add(struct graph_list *list, const struct graph_step *step)
{
    struct graph_phrase remark = {.length = 0};
    bool const again = step->pass != OP_FORWARD;
    bool const waits = !again || list->kept->for_input[step->op];
    list->tell(list->context, step);
    graph_phrase_add(&remark, waits ? "on critical path" : "not on critical path");
    if (again && step->of != GRAPH_NONE && step->move.kind == COLLECTIVE_ALL_GATHER) {
        list->shared[step->of] = true;
        graph_phrase_add(&remark,
                         "; this could be skipped by sharing with (%u) from the forward pass, but "
                         "%s %s",
                         list->gathered_at[step->of], graph_list_policy(list),
                         graph_list_graph(list)->terms->policy.remat == GRAPH_REMAT_NONE
                             ? "keeps a rank's part alone"
                             : "does not keep it");
    } else {
        again_add(list, step, &remark);
    }
    (step->of != GRAPH_NONE ? tensor_moved : graph_list_moved)(list, step, &remark);
}

void graph_list_step(struct graph_list *list, const struct graph_step *step)
{
    if (!step->is_compute) {
        forward_move_add(list, step);
        return;
    }
    compute_add(list, step);
    /* "In[B, 2D] = Hidden, Embedded": ops behind this one that have no steps. */
    struct graph_step next = {.op = (uint8_t)(step->op + 1), .pass = step->pass};
    for (; graph_makes_silently(list->sharded, next.op); next.op++) result_add(list, &next, 0);
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

/* The op whose input is the sum of the stream and a block's result, or NULL. */
static const struct graph_op *sum_of(const struct graph *graph, uint8_t block)
{
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        if (op->block == block + 1 && op->fused && op->kind->passes_on) return op;
    }
    return NULL;
}

/* "X += Out": the next block's norm adds them up, so it is repeated with that one. */
static void residual_add(struct graph_list *list, uint8_t block, const struct graph_steps *backward)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_op *sum = sum_of(graph, block);
    struct graph_phrase what = {.length = 0}, remark = {.length = 0};
    struct sharding x = graph->tensor[graph->stream].at;
    graph_phrase_array(&what, list, &x);
    graph_phrase_add(&what, " += ");
    graph_phrase_array(&what, list, &graph->tensor[graph->block[block].out].at);
    graph_phrase_add(&remark, "with the next norm");
    list->repeats = false;
    for (uint32_t i = 0; sum != NULL && i < backward->count; i++) {
        const struct graph_step *step = &backward->step[i];
        if (step->is_compute && step->pass == OP_AGAIN && graph->op[step->op].in[0] == sum->out[0])
            list->repeats = graph_remat_repeats(graph->terms->policy.remat);
    }
    graph_list_add(list, &x, graph->tensor[graph->stream].format, &remark, &what);
}

void graph_list_forward(struct graph_list *list, const struct graph_steps *forward,
                        const struct graph_steps *backward)
{
    const struct graph *graph = graph_list_graph(list);
    /* Without norms there is no stream: the block's result is the layer's. */
    bool const streams = graph_maker(graph, graph->stream) != NULL;
    bool const answers = graph->terms->cache.is_there;
    struct sharding const loss =
        graph_sharding(graph, answers ? "Next[B_ZX]" : "Loss[B_ZX]", GRAPH_ACTIVATION);
    char buffer[SHARDING_TEXT_BYTES];
    uint8_t block = 0;
    list->line = 0;
    strbuf_add(list->text, "\nForward pass: need to compute %s\n",
               sharding_text(graph_list_mesh(list), &loss, buffer));
    for (uint32_t i = 0; i < forward->count; i++) {
        const struct graph_step *step = &forward->step[i];
        for (; streams && block < graph->op[step->op].block; block++)
            residual_add(list, block, backward);
        list->repeats = is_repeated(list, step, backward);
        graph_list_step(list, step);
    }
    for (; streams && block < graph->block_count; block++) residual_add(list, block, backward);
    list->repeats = false;
    list->forward_lines = list->line;
    if (streams) return;
    struct graph_phrase what = {.length = 0};
    graph_phrase_array(&what, list, &loss);
    graph_phrase_add(&what, " = ...");
    graph_list_add(list, NULL, 0, NULL, &what);
}
