/* What the lines of a listing are made of: text, arrays, formulas, products, collectives. */
#include "sim/graph/list_parts.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/quantity.h"
#include "sim/graph/print.h"

enum { SHAPE_COLUMN = 66, BYTES_COLUMN = 88, REMARK_COLUMN = 99 };

/* --- Text --- */

void graph_phrase_join(struct graph_phrase *phrase, const char *between, const char *format, ...)
{
    size_t used = strlen(phrase->text);
    va_list arguments;
    if (used != 0) (void)snprintf(phrase->text + used, sizeof phrase->text - used, "%s", between);
    used = strlen(phrase->text);
    va_start(arguments, format);
    (void)vsnprintf(phrase->text + used, sizeof phrase->text - used, format, arguments);
    va_end(arguments);
}

void graph_list_line(struct graph_list *list, const struct graph_array *made, const char *remark,
                     const char *format, ...)
{
    struct strbuf *text = list->text;
    va_list arguments;
    list->line++;
    SIM_ASSERT(list->line < GRAPH_LINES_MAX);
    if (list->repeats) list->repeated[list->line] = true;
    strbuf_add(text, "%3u. ", list->line);
    va_start(arguments, format);
    strbuf_add_list(text, format, arguments);
    va_end(arguments);
    if (made != NULL) {
        const struct sharding_mesh *mesh = &graph_list_graph(list)->terms->mesh;
        char shape[SHARDING_TEXT_BYTES], bytes[QUANTITY_TEXT_BYTES];
        uint64_t const elements = sharding_local_elements(mesh, &made->at);
        strbuf_pad(text, SHAPE_COLUMN);
        strbuf_add(text, "%s", sharding_shape_text(mesh, &made->at, shape));
        strbuf_pad(text, BYTES_COLUMN);
        strbuf_add(
            text, "%s",
            quantity_text_bytes(bytes, (double)graph_bytes(made->role, made->format, elements)));
    }
    if (remark[0] != '\0') {
        strbuf_pad(text, REMARK_COLUMN);
        strbuf_add(text, "(%s)", remark);
    }
    strbuf_add(text, "\n");
}

struct graph_phrase graph_list_text(const struct graph_list *list, const struct graph_array *array)
{
    struct graph_phrase phrase;
    (void)sharding_text(&graph_list_graph(list)->terms->mesh, &array->at, phrase.text);
    return phrase;
}

const char *graph_list_policy(const struct graph_list *list)
{
    return graph_policy_name(&graph_list_graph(list)->terms->policy);
}

/* --- Arrays --- */

struct graph_array graph_list_array(const struct graph *graph, tensor of, bool gradient,
                                    uint32_t gathered)
{
    const struct graph_tensor *at = &graph->tensor[of];
    struct graph_array array = {sharding_gathered(gradient ? &at->gradient_at : &at->at, gathered),
                                gradient ? at->gradient : at->format,
                                gradient ? GRAPH_ACTIVATION : at->role};
    if (gradient)
        (void)snprintf(array.at.name, sizeof array.at.name, "d%.*s", (int)sizeof array.at.name - 2,
                       at->gradient_at.name);
    return array;
}

/* With the sums that stay due of it. */
static struct graph_array between(const struct graph_list *list, tensor of, bool gradient,
                                  uint32_t gathered)
{
    struct graph_array array = graph_list_array(graph_list_graph(list), of, gradient, gathered);
    if (gradient) array.at.unreduced |= list->part->backward.due[of];
    return array;
}

struct graph_array graph_list_read(const struct graph_list *list, const struct graph_op *op,
                                   tensor of, bool gradient)
{
    const struct graph_sharded *sharded = &list->part->sharded;
    const struct sharding *at = &graph_list_graph(list)->tensor[of].at;
    uint32_t const axes = gradient ? graph_scattered(sharded, op, of)
                                   : graph_shard_of(sharded, op)->gather & sharding_axes(at);
    if (axes == 0) of = graph_value_at(&list->part->sharded, of, gradient);
    return between(list, of, gradient, axes);
}

struct graph_array graph_list_made(const struct graph_list *list, const struct graph_op *op,
                                   tensor of, bool gradient)
{
    const struct graph_sharded *sharded = &list->part->sharded;
    const struct sharding *at = &graph_list_graph(list)->tensor[of].gradient_at;
    uint32_t const axes = gradient ? graph_shard_of(sharded, op)->gather & sharding_axes(at)
                                   : graph_scattered(sharded, op, of);
    struct graph_array array = between(list, of, gradient, axes);
    array.at.unreduced |=
        axes | (gradient ? sharded->summed[of] : graph_all_reduced(sharded, op, of));
    return array;
}

/* --- Formulas --- */

const char *graph_list_formula(const struct graph_op *op)
{
    return op->formula != NULL ? op->formula : op->kind->notation.formula;
}

struct graph_phrase graph_list_applied(struct graph_list *list, const struct graph_op *op,
                                       uint8_t first)
{
    struct graph_phrase formula = {.text = ""};
    for (const char *at = graph_list_formula(op); *at != '\0'; at++) {
        bool const names = *at == '@', all = names || *at == '+';
        uint8_t const end = (uint8_t)(all ? op->in_count : *at == '%' ? first + 1 : 0);
        for (uint8_t i = all ? 0 : first; i < end; i++) {
            struct graph_array const in = graph_list_read(list, op, op->in[i], false);
            graph_phrase_join(&formula, all && i > 0 ? (names ? ", " : " + ") : "", "%s",
                              names ? in.at.name : graph_list_text(list, &in).text);
        }
        if (*at == '%') first++;
        if (*at == '$') graph_phrase_join(&formula, "", "%s", op->name);
        if (*at == '&') {
            struct graph_array const weight = graph_list_weight(list, op->weight[0], false);
            graph_phrase_join(&formula, "", "%s", graph_list_text(list, &weight).text);
        }
        if (strchr("%@+$&", *at) == NULL) graph_phrase_join(&formula, "", "%c", *at);
    }
    return formula;
}

/* The first behind a factor of a formula, "% * ". */
static const char *factor_skip(const char *at)
{
    SIM_ASSERT(at[1] == ' ' && at[2] == '*' && at[3] == ' ');
    return at + 4;
}

/* The function's name with a prime; what has none is multiplied. Inputs before the function are its
 * factors, as those behind it are: neither are in the gradient's name. */
struct graph_phrase graph_list_primed(const struct graph_list *list, const struct graph_op *op,
                                      uint8_t result)
{
    struct graph_array const gradient = graph_list_read(list, op, op->out[result], true);
    struct graph_phrase const text = graph_list_text(list, &gradient);
    struct graph_phrase formula = {.text = ""};
    const char *at = graph_list_formula(op);
    bool const called = strchr(at, '(') != NULL;
    for (; *at != '\0'; at++) {
        while (called && strchr("%@+", *at) != NULL) at = factor_skip(at);
        if (*at == '(') {
            graph_phrase_join(&formula, "", "'(%s)", text.text);
            break;
        }
        if (*at == '$')
            graph_phrase_join(&formula, "", "%s", op->name);
        else if (strchr("%@+", *at) != NULL)
            graph_phrase_join(&formula, "", "%s", text.text);
        else
            graph_phrase_join(&formula, "", "%c", *at);
    }
    return formula;
}

void graph_list_product(struct graph_list *list, const struct graph_array *left,
                        const struct graph_array *right, const struct graph_array *result,
                        const char *remark)
{
    struct graph_phrase contracted = {.text = ""};
    for (uint32_t d = 0; d < left->at.dimension_count; d++) {
        const char *name = left->at.dimension[d].name;
        if (sharding_has(&right->at, name) && !sharding_has(&result->at, name))
            graph_phrase_join(&contracted, "", "%s", name);
    }
    graph_list_line(list, result, remark, "%s = %s *_%s %s", graph_list_text(list, result).text,
                    graph_list_text(list, left).text, contracted.text,
                    graph_list_text(list, right).text);
}

/* --- Collectives --- */

void graph_list_collective(struct graph_list *list, const struct graph_array *from,
                           const struct graph_array *to, enum collective_kind kind, uint32_t axes,
                           const char *remark)
{
    char letters[SHARDING_AXES_MAX + 1];
    graph_list_line(list, to, remark, "%s = %s_%s(%s)", graph_list_text(list, to).text,
                    collective_kind_name(kind),
                    sharding_axes_text(&graph_list_graph(list)->terms->mesh, axes, letters),
                    graph_list_text(list, from).text);
}

/* The axis of a collective's ranks; 0: the notation has no letter for the ranks. */
static uint32_t axis_of(const struct graph_terms *terms, enum op_axis axis)
{
    uint32_t const axes[] = {[OP_AXIS_TP] = terms->axis_y,
                             [OP_AXIS_TP_D] = terms->axis_w,
                             [OP_AXIS_EP] = 0,
                             [OP_AXIS_SEQUENCE] = terms->axis_c,
                             [OP_AXIS_HOLDERS] = 0};
    return axes[axis];
}

/* Over tp or tp_d, of a tensor or its gradient. */
static void tensor_moved(struct graph_list *list, const struct graph_step *step, tensor of,
                         bool gradient, const char *remark)
{
    const struct graph *graph = graph_list_graph(list);
    const struct graph_sharded *sharded = &list->part->sharded;
    const struct graph_op *op = &graph->op[step->op];
    bool const gathers = step->move.kind == COLLECTIVE_ALL_GATHER;
    uint32_t axes = graph_all_reduced(sharded, op, of), later = 0;
    if (step->move.axis == OP_AXIS_TP) later = axes & graph->terms->axis_w; /* It comes next. */
    axes &= ~(later | (step->move.axis == OP_AXIS_TP_D ? graph->terms->axis_y : 0));
    if (step->move.kind != COLLECTIVE_ALL_REDUCE)
        axes = gathers == gradient ? graph_scattered(sharded, op, of)
               : gathers           ? sharded->gathered[of]
                                   : graph_shard_of(sharded, op)->gather &
                               sharding_axes(&graph->tensor[of].gradient_at);
    struct graph_array own = graph_list_array(graph, of, gradient, 0);
    struct graph_array const there =
        graph_list_array(graph, graph_value_at(sharded, of, gradient), gradient, 0);
    struct graph_array whole = graph_list_array(graph, of, gradient, axes);
    if (!gathers) whole.at.unreduced |= axes | later;
    if (!gathers) own.at.unreduced |= later;
    graph_list_collective(list, gathers ? &there : &whole, gathers ? &whole : &own, step->move.kind,
                          axes, remark);
}

/* "K, dV": values from one on. */
static struct graph_phrase names_of(const struct graph *graph, const struct graph_value *values,
                                    uint8_t first, uint8_t end)
{
    struct graph_phrase names = {.text = ""};
    for (uint8_t i = first; i < end; i++)
        graph_phrase_join(&names, ", ", "%s%s", values[i].gradient ? "d" : "",
                          graph->tensor[values[i].of].at.name);
    return names;
}

/* "Sums[B, Row] = AllReduce_Y(Sums[B, Row] {U_Y})"; over ranks without a letter with their number.
 */
static void array_moved(struct graph_list *list, const struct op_move *move,
                        const struct graph_array *from, const struct graph_array *to,
                        const char *remark)
{
    const struct graph_terms *terms = graph_list_graph(list)->terms;
    const struct graph_cache *cache = &terms->cache;
    uint32_t const axis = axis_of(terms, move->axis);
    uint32_t const sharers = cache->context_ways > 1 ? cache->context_ways : cache->prompt_ways;
    struct {
        uint32_t count;
        const char *text;
    } const ranks[] = {
        [OP_AXIS_EP] = {terms->ranks_exchange, "of ep"},
        [OP_AXIS_SEQUENCE] = {sharers, "of cp"},
        [OP_AXIS_HOLDERS] = {cache->batch_ways * cache->sequence_ways, "with the same heads"},
    };
    if (axis != 0)
        graph_list_collective(list, from, to, move->kind, axis, remark);
    else
        graph_list_line(list, to, remark, "%s = %s(%s) over the %u ranks %s",
                        graph_list_text(list, to).text, collective_kind_name(move->kind),
                        graph_list_text(list, from).text, ranks[move->axis].count,
                        ranks[move->axis].text);
}

/* "K, V of the sequence": the notation has no letter for parts of sequences. */
static void sequence_moved(struct graph_list *list, const struct op_move *move, const char *remark)
{
    struct graph_phrase const names =
        names_of(graph_list_graph(list), move->written, 0, move->written_count);
    graph_list_line(list, NULL, move->rounds ? "part by part, while attention runs" : remark,
                    move->written[0].full ? "%s of the sequence = %s(%s) over its %u ranks"
                                          : "%s of this rank = %s(%s) over the sequence's %u ranks",
                    names.text, collective_kind_name(move->kind), names.text,
                    graph_list_graph(list)->terms->sequence.parts);
}

/* A collective of an op's own. */
static void own_moved(struct graph_list *list, const struct op_move *move, const char *remark)
{
    const struct graph *graph = graph_list_graph(list);
    struct graph_value const sent = move->read[0], made = move->written[0];
    uint32_t const axis = axis_of(graph->terms, move->axis);
    bool const longer = move->written_count > move->read_count;
    bool const full = move->read[move->read_count - 1].full || made.full;
    struct graph_array from = {move->sums, move->format, GRAPH_ACTIVATION}, to = from;
    struct graph_phrase why = {.text = ""};
    if (move->axis == OP_AXIS_SEQUENCE && full) {
        sequence_moved(list, move, remark);
        return;
    }
    graph_phrase_join(&why, "", "%s", remark);
    if (move->sums.dimension_count == 0) {
        tensor const of = graph_value_at(&list->part->sharded, sent.of, sent.gradient);
        struct graph_phrase const others =
            names_of(graph, longer ? move->written : move->read, 1,
                     longer ? move->written_count : move->read_count);
        if (others.text[0] != '\0') graph_phrase_join(&why, "; ", "with %s", others.text);
        from = graph_list_array(graph, of, sent.gradient, sent.full ? axis : 0);
        to = graph_list_array(graph, made.of, made.gradient, made.full ? axis : 0);
    }
    if (move->sums.dimension_count != 0 || sent.full) from.at.unreduced |= axis;
    array_moved(list, move, &from, &to, why.text);
}

void graph_list_moved(struct graph_list *list, const struct graph_step *step, const char *remark)
{
    const struct op_move *move = &step->move;
    if (step->of == GRAPH_NONE) {
        own_moved(list, move, remark);
        return;
    }
    for (uint8_t i = 0; i < move->written_count; i++)
        tensor_moved(list, step, move->written[i].of, move->written[i].gradient,
                     i == 0 ? remark : "in the same collective");
}
