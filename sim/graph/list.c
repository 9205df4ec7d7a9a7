/* What the lines of a listing are made of: text, arrays, products. */
#include "sim/graph/list_parts.h"

#include "sim/base/quantity.h"
#include "sim/graph/print.h"
#include <stdarg.h>
#include <stdio.h>

enum { SHAPE_COLUMN = 66, BYTES_COLUMN = 88, REMARK_COLUMN = 99 };

/* --- Text --- */

void graph_phrase_add(struct graph_phrase *phrase, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int const added = vsnprintf(phrase->bytes + phrase->length,
                                sizeof phrase->bytes - phrase->length, format, arguments);
    va_end(arguments);
    SIM_ASSERT(added >= 0);
    phrase->length += (uint32_t)added;
    if (phrase->length >= sizeof phrase->bytes) phrase->length = sizeof phrase->bytes - 1;
}

void graph_phrase_join(struct graph_phrase *phrase, const char *between)
{
    if (phrase->length != 0) graph_phrase_add(phrase, "%s", between);
}

void graph_phrase_array(struct graph_phrase *phrase, const struct graph_list *list,
                        const struct sharding *array)
{
    char buffer[SHARDING_TEXT_BYTES];
    graph_phrase_add(phrase, "%s", sharding_text(graph_list_mesh(list), array, buffer));
}

void graph_list_line(struct strbuf *text, uint32_t number, const struct sharding_mesh *mesh,
                     const struct sharding *array, enum format format, const char *remark,
                     const char *what)
{
    strbuf_add(text, "%3u. %s", number, what);
    if (array != NULL) {
        char shape[SHARDING_TEXT_BYTES], bytes[QUANTITY_TEXT_BYTES];
        uint64_t const size_bytes = format_bytes(format, sharding_local_elements(mesh, array));
        strbuf_pad(text, SHAPE_COLUMN);
        strbuf_add(text, "%s", sharding_shape_text(mesh, array, shape));
        strbuf_pad(text, BYTES_COLUMN);
        strbuf_add(text, "%s", quantity_text_bytes(bytes, (double)size_bytes));
    }
    if (remark[0] != '\0') {
        strbuf_pad(text, REMARK_COLUMN);
        strbuf_add(text, "(%s)", remark);
    }
    strbuf_add(text, "\n");
}

void graph_list_add(struct graph_list *list, const struct sharding *array, enum format format,
                    const struct graph_phrase *remark, const struct graph_phrase *what)
{
    list->line++;
    SIM_ASSERT(list->line < GRAPH_LINES_MAX);
    if (list->repeats) list->repeated[list->line] = true;
    graph_list_line(list->text, list->line, graph_list_mesh(list), array, format,
                    remark != NULL ? remark->bytes : "", what->bytes);
}

const char *graph_list_policy(const struct graph_list *list)
{
    return graph_remat_name(list->sharded->graph->terms->policy.remat);
}

/* --- Arrays --- */

struct sharding graph_list_gradient(const struct sharding *array)
{
    struct sharding gradient = *array;
    (void)snprintf(gradient.name, sizeof gradient.name, "d%.*s", (int)sizeof gradient.name - 2,
                   array->name);
    return gradient;
}

struct sharding graph_list_in(const struct graph_list *list, const struct graph_op *op, tensor of)
{
    uint32_t const gather = graph_shard_of(list->sharded, op)->gather &
                            sharding_axes(&graph_list_graph(list)->tensor[of].at);
    if (gather == 0) of = graph_value_at(list->sharded, of, /* gradient= */ false);
    return sharding_gathered(&graph_list_graph(list)->tensor[of].at, gather);
}

struct sharding graph_list_out(const struct graph_list *list, const struct graph_op *op,
                               uint8_t result)
{
    const struct graph_shard *shard = graph_shard_of(list->sharded, op);
    struct sharding out =
        sharding_gathered(&graph_list_graph(list)->tensor[op->out[result]].at, shard->scatter);
    out.unreduced |= shard->scatter | shard->all_reduce;
    return out;
}

void graph_list_product(struct graph_list *list, const struct sharding *left,
                        const struct sharding *right, const struct sharding *result,
                        enum format format, const struct graph_phrase *remark)
{
    struct graph_phrase what = {.length = 0};
    graph_phrase_array(&what, list, result);
    graph_phrase_add(&what, " = ");
    graph_phrase_array(&what, list, left);
    graph_phrase_add(&what, " *_");
    for (uint32_t d = 0; d < left->dimension_count; d++) {
        const char *name = left->dimension[d].name;
        if (sharding_has(right, name) && !sharding_has(result, name))
            graph_phrase_add(&what, "%s", name);
    }
    graph_phrase_add(&what, " ");
    graph_phrase_array(&what, list, right);
    graph_list_add(list, result, format, remark, &what);
}
