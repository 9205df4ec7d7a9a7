#include "sim/graph/block.h"

#include "sim/graph/named.h"
#include "sim/graph/write.h"

const struct block *const block_table[] = {
#define BLOCK(name) &block_##name,
#include "workloads/blocks.def"
#undef BLOCK
};

const uint32_t block_count = sizeof block_table / sizeof *block_table;

/* A bit each. */
static const uint32_t places_of[] = {
    [BLOCK_EMBEDDING] = 1U << BLOCK_LOOKS_UP,
    [BLOCK_LAYER] = 1U << BLOCK_MIXES_TOKENS | 1U << BLOCK_MIXES_CHANNELS,
    [BLOCK_HEAD] = 1U << BLOCK_GIVES_LOSS,
    [BLOCK_MTP] = 1U << BLOCK_LOOKS_UP | 1U << BLOCK_JOINS_EMBEDDING,
};

/* The stream adds what the norm gives. */
static void norm_behind_write(struct graph *graph)
{
    tensor const out = graph->added;
    graph_norm(graph, "OutNorm");
    graph_block_output(graph, graph_normed(graph, out, "Added"));
}

void block_write(const struct block *block, const struct model *model, struct graph *graph)
{
    SIM_ASSERT(graph->block_count < GRAPH_BLOCKS_MAX);
    struct graph_span *span = &graph->block[graph->block_count];
    *span = (struct graph_span){.block = block, .first = graph->op_count};
    block->write(graph, model);
    if (model->norms.behind && (places_of[BLOCK_LAYER] >> block->place & 1) != 0)
        norm_behind_write(graph);
    span->count = (uint8_t)(graph->op_count - span->first);
    graph->block_count++;
    graph_saved_set(graph);
}

static bool applies(const struct block *block, const struct graph_terms *terms,
                    const struct model *model)
{
    return block->applies == NULL || block->applies(terms, model);
}

static bool does_replace(const struct block *block, const struct block *other)
{
    for (uint32_t i = 0; block->replaces[i] != NULL; i++)
        if (block->replaces[i] == other) return true;
    return false;
}

/* Whether a layer, or an end, has the block: it applies, and nothing that applies replaces it. */
static bool is_there(const struct block *block, const struct graph_terms *terms,
                     const struct model *model)
{
    for (uint32_t i = 0; i < block_count; i++)
        if (does_replace(block_table[i], block) && applies(block_table[i], terms, model))
            return false;
    return applies(block, terms, model);
}

/* The block that a part of the model has at a place; NULL: none. */
static const struct block *block_at(enum block_place place, const struct graph_terms *terms,
                                    const struct model *model)
{
    const struct block *found = NULL;
    for (uint32_t i = 0; i < block_count; i++) {
        if (block_table[i]->place != place || !is_there(block_table[i], terms, model)) continue;
        SIM_ASSERT(found == NULL); /* Of two one replaces the other. */
        found = block_table[i];
    }
    return found;
}

bool block_is_of(const struct block *block, const struct model *model)
{
    struct layer_kinds const kinds = model_layer_kinds(model, UINT64_MAX);
    for (uint32_t i = 0; i < 2 * kinds.count; i++) {
        struct graph_terms const terms = {.layer = kinds.kind[i / 2],
                                          .cache = {.is_there = i % 2 == 1}};
        if (is_there(block, &terms, model)) return true;
    }
    return false;
}

const char *block_lacking(const struct model *model, enum block_way way)
{
    for (uint32_t i = 0; i < block_count; i++)
        if (block_table[i]->lacks[way] != NULL && block_is_of(block_table[i], model))
            return block_table[i]->lacks[way];
    return NULL;
}

void block_write_part(const struct graph_terms *terms, const struct model *model,
                      enum block_part part, struct graph *ret_graph)
{
    /* Tensors and ops are written whole as they come: to clear 40 KB took as long as to write. */
    ret_graph->terms = terms;
    ret_graph->tensor_count = ret_graph->op_count = ret_graph->block_count = 0;
    ret_graph->vector_count = 0;
    ret_graph->stream = ret_graph->added = 0;
    ret_graph->begins_backward = false;
    for (uint32_t place = 0; place < BLOCK_PLACE_COUNT; place++) {
        if ((places_of[part] >> place & 1) == 0) continue;
        const struct block *block = block_at((enum block_place)place, terms, model);
        if (block != NULL) block_write(block, model, ret_graph);
    }
}
