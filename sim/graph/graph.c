#include "sim/graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "sim/graph/block.h"
#include "sim/graph/op.h"

enum { TEXT_BYTES = 96 };

bool graph_is_of_cache(const struct graph *graph, tensor of)
{
    const struct graph_op *maker = graph_maker(graph, of);
    bool const handed =
        maker != NULL && maker->kind->passes_on && graph->tensor[maker->in[0]].role == GRAPH_CACHE;
    return handed || graph->tensor[of].role == GRAPH_CACHE;
}

/* An input that is computed on the way and is not kept has no memory. */
static bool has_memory(const struct graph *graph, tensor of)
{
    return graph_fused(graph, of) == NULL || graph->tensor[of].kept != GRAPH_REMAT_NEVER;
}

tensor graph_lies_in(const struct graph *graph, tensor of)
{
    const struct graph_op *maker = graph_maker(graph, of);
    while (maker != NULL && maker->kind->lies_in_input && has_memory(graph, maker->in[0]) &&
           graph->tensor[maker->in[0]].format == graph->tensor[of].format) {
        of = maker->in[0];
        maker = graph_maker(graph, of);
    }
    return of;
}

bool graph_reads_first(const struct graph *graph, const struct graph_op *op, tensor of)
{
    for (const struct graph_op *before = graph->op; before < op; before++)
        for (uint8_t i = 0; !before->fused && i < before->in_count; i++)
            if (before->in[i] == of) return false;
    return true;
}

/* Whether ranks of tp_d split a dimension: D always, heads or tokens where they attend so. */
static bool is_apart(const struct graph_terms *terms, enum graph_of_width of_width)
{
    bool const heads = of_width == GRAPH_OF_WIDTH_HEADS;
    return of_width == GRAPH_OF_WIDTH_ALWAYS ||
           terms->cache.apart == (heads ? GRAPH_APART_HEADS : GRAPH_APART_TOKENS);
}

/* Whether ranks of tp split a dimension whose text has Y. */
static bool is_split(const struct graph_terms *terms, enum graph_of_tp of_tp)
{
    return of_tp == GRAPH_OF_TP_ALWAYS || terms->ep_over_tp == (of_tp == GRAPH_OF_TP_OF_EP);
}

/* Whether an axis is there for a dimension of an array: X splits weights only where parameters are
 * split. */
static bool has_axis(const struct graph_terms *terms, char letter, const char *dimension,
                     enum graph_role role)
{
    if (role == GRAPH_WEIGHT && letter == 'X' && !terms->policy.weights_split) return false;
    if (memchr(terms->mesh.letter, letter, terms->mesh.axis_count) == NULL) return false;
    const struct graph_dimension *of = graph_dimension_at(terms, dimension);
    return letter == 'W'   ? is_apart(terms, of->of_width)
           : letter == 'Y' ? is_split(terms, of->of_tp)
                           : true;
}

/* The text without axes that are not there. */
static void axes_fit(const struct graph_terms *terms, const char *text, enum graph_role role,
                     char ret_text[TEXT_BYTES])
{
    const char *at = strchr(text, '[');
    SIM_ASSERT(at != NULL && strlen(text) < TEXT_BYTES);
    size_t length = (size_t)(at - text);
    const char *dimension = at + 1;
    memcpy(ret_text, text, length);
    for (bool in_axes = false; *at != '\0'; at++) {
        if (*at == ',' || *at == ']') {
            if (in_axes && ret_text[length - 1] == '_') length--;
            in_axes = false;
        }
        if (*at == ' ') dimension = at + 1;
        if (in_axes && !has_axis(terms, *at, dimension, role)) continue;
        in_axes = in_axes || *at == '_';
        ret_text[length++] = *at;
    }
    ret_text[length] = '\0';
}

/* Sizes that the reader looks names up in. */
static void sizes_fill(const struct graph_terms *terms,
                       struct sharding_size ret_sizes[GRAPH_DIMENSIONS_MAX])
{
    uint32_t count = 0;
    for (; terms->dimension[count].name != NULL; count++)
        ret_sizes[count] =
            (struct sharding_size){terms->dimension[count].name, terms->dimension[count].padded};
    ret_sizes[count] = (struct sharding_size){NULL, 0};
}

struct sharding graph_sharding(const struct graph *graph, const char *text, enum graph_role role)
{
    const struct graph_terms *terms = graph->terms;
    bool const alone = strchr(text, '[') == NULL;
    struct sharding_size sizes[GRAPH_DIMENSIONS_MAX];
    char whole[TEXT_BYTES], fitted[TEXT_BYTES];
    struct sharding array;
    struct error error;
    if (alone)
        (void)snprintf(whole, sizeof whole, "%s%s", text,
                       terms->policy.by_tokens    ? "[B_ZXY, D_W]"
                       : terms->policy.replicated ? "[B_ZX, D_W]"
                                                  : "[B_ZX, D_WY]");
    axes_fit(terms, alone ? whole : text, role, fitted);
    sizes_fill(terms, sizes);
    enum status const status = sharding_read(&terms->mesh, sizes, fitted, "", &array, &error);
    SIM_ASSERT(status == STATUS_OK);
    /* Weights are padded only where ranks of tp or of tp_d split them. */
    for (uint32_t d = 0; role == GRAPH_WEIGHT && d < array.dimension_count; d++) {
        struct sharding_dimension *dimension = &array.dimension[d];
        bool split = false;
        for (uint32_t a = 0; a < dimension->axis_count; a++)
            split = split || ((terms->axis_y | terms->axis_w) >> dimension->axis[a] & 1) != 0;
        if (!split) dimension->size = graph_dimension_of(terms, dimension->name)->useful;
    }
    return array;
}

uint64_t graph_elements(const struct graph *graph, const struct sharding *array, uint32_t gathered)
{
    if (gathered == 0) return sharding_local_elements(&graph->terms->mesh, array);
    struct sharding const whole = sharding_gathered(array, gathered);
    return sharding_local_elements(&graph->terms->mesh, &whole);
}

uint64_t graph_weight_elements(const struct graph *graph, tensor weight)
{
    return graph_elements(graph, &graph->tensor[weight].at, graph->terms->axis_x);
}

uint64_t graph_read_elements(const struct graph *graph, tensor weight)
{
    const struct graph_terms *terms = graph->terms;
    uint64_t const all = graph_weight_elements(graph, weight);
    if (!graph->tensor[weight].grouped || terms->experts_held == 0) return all;
    struct graph_share const *read = &terms->experts_read;
    return (uint64_t)(((units_wide)all * read->part + read->whole - 1) / read->whole);
}

uint64_t graph_asked(const struct graph *graph, tensor weight, uint64_t amount)
{
    const struct graph_terms *terms = graph->terms;
    if (!graph->tensor[weight].grouped || terms->experts_held == 0) return amount;
    return amount / terms->experts_held * terms->experts_asked;
}

const char *graph_op_name(const struct graph_op *op)
{
    const char *dot = strchr(op->name, '.');
    return dot != NULL ? dot + 1 : op->name;
}

struct graph_label graph_prefix(const struct graph *graph, const struct graph_op *op)
{
    size_t const own = op != NULL ? (size_t)(graph_op_name(op) - op->name) : 0;
    const char *prefix = own != 0     ? op->name
                         : op != NULL ? graph->block[op->block].block->prefix
                                      : "";
    int const length = (int)(own != 0 ? own : strlen(prefix));
    struct graph_label label;
    (void)snprintf(label.text, sizeof label.text, "%.*s", length, prefix);
    return label;
}

struct graph_label graph_label(const struct graph *graph, const struct graph_op *op,
                               const char *name, bool gradient)
{
    bool const small = gradient && name[0] >= 'a' && name[0] <= 'z';
    struct graph_label label = graph_prefix(graph, op);
    size_t const used = strlen(label.text);
    (void)snprintf(label.text + used, sizeof label.text - used, "%s%c%s", gradient ? "d" : "",
                   small ? name[0] - 'a' + 'A' : name[0], name + 1);
    return label;
}

struct graph_label graph_op_label(const struct graph *graph, const struct graph_op *op)
{
    return graph_label(graph, op, graph_op_name(op), /* gradient= */ false);
}
