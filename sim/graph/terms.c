#include "sim/graph/terms.h"

#include <string.h>

#include "sim/graph/block.h"
#include "sim/model/model.h"

const struct graph_dimension *graph_dimension_at(const struct graph_terms *terms, const char *text)
{
    size_t const length = strcspn(text, "_,]");
    const struct graph_dimension *dimension = terms->dimension;
    while (dimension->name != NULL &&
           (strncmp(dimension->name, text, length) != 0 || dimension->name[length] != '\0'))
        dimension++;
    SIM_ASSERT(dimension->name != NULL);
    return dimension;
}

const struct graph_dimension *graph_dimension_of(const struct graph_terms *terms, const char *name)
{
    const struct graph_dimension *dimension = terms->dimension;
    while (dimension->name != NULL && strcmp(dimension->name, name) != 0) dimension++;
    SIM_ASSERT(dimension->name != NULL);
    return dimension;
}

struct graph_dimension *graph_dimension_set(struct graph_terms *terms, const char *name,
                                            uint64_t padded, uint64_t useful)
{
    struct graph_dimension *at = terms->dimension;
    while (at->name != NULL && strcmp(at->name, name) != 0) at++;
    SIM_ASSERT(at + 1 < terms->dimension + GRAPH_DIMENSIONS_MAX);
    if (at->name == NULL) *at = (struct graph_dimension){.name = name, .holders = 1};
    at->padded = padded;
    at->useful = useful;
    return at;
}

struct graph_dimension *graph_dimension_plain(struct graph_terms *terms, const char *name,
                                              uint64_t size, const char *meaning)
{
    struct graph_dimension *of = graph_dimension_set(terms, name, size, size);
    of->meaning = meaning;
    return of;
}

struct graph_dimension *graph_dimension_pad(struct graph_terms *terms, const char *name,
                                            uint64_t padded)
{
    uint64_t const useful = graph_dimension_of(terms, name)->useful;
    SIM_ASSERT(padded >= useful);
    return graph_dimension_set(terms, name, padded, useful);
}

uint64_t graph_window(const struct graph_terms *terms)
{
    return terms->layer.windowed ? terms->model->attends.window : 0;
}

void graph_dimensions_begin(const struct model *model, struct graph_terms *terms)
{
    terms->model = model;
    struct graph_dimension const all[] = {
        {.name = "B", .useful = 1, .meaning = "tokens"},
        {.name = "D",
         .useful = model->width,
         .counted = GRAPH_COUNTED_STREAM,
         .of_width = GRAPH_OF_WIDTH_ALWAYS,
         .rounded = true,
         .meaning = "columns between blocks"},
        {.name = "N",
         .useful = model->heads,
         .of_width = GRAPH_OF_WIDTH_HEADS,
         .rounded = true,
         .meaning = "attention heads"},
        {.name = "K",
         .useful = model->kv_heads,
         .of_width = GRAPH_OF_WIDTH_HEADS,
         .rounded = true,
         .meaning = "KV heads"},
        {.name = "H", .useful = model->head_width, .meaning = "columns of a head"},
        {.name = "V", .useful = model_value_width(model), .meaning = "columns of a head's values"},
        {.name = "Vocab", .useful = model->vocabulary, .rounded = true, .meaning = "vocabulary"},
        {.name = "F",
         .useful = model->mlp_width,
         .counted = GRAPH_COUNTED_MLP,
         .rounded = true,
         .meaning = "columns of the MLP"},
    };
    size_t const count = sizeof all / sizeof *all;
    for (size_t i = 0; i < count; i++) {
        terms->dimension[i] = all[i];
        terms->dimension[i].padded = all[i].useful;
        terms->dimension[i].holders = 1;
    }
    terms->dimension[count] = (struct graph_dimension){.name = NULL};
    for (uint32_t b = 0; b < block_count; b++)
        if (block_table[b]->dimensions != NULL) block_table[b]->dimensions(model, terms);
}
