/* Attention to the cache, however it lies on the ranks of tp and of tp_d. */
#include "sim/graph/op.h"
#include "sim/graph/write.h"

static tensor spread(struct graph *g, enum collective_kind kind, const char *name, tensor in,
                     const char *text)
{
    struct graph_op *op = graph_op(g, &op_kind_spread, name, 1, &in);
    op->as.spread.kind = kind;
    return graph_result(g, text);
}

static tensor attention(struct graph *g, tensor query, tensor turned, uint8_t cache_count,
                        const tensor *cache, const char *text)
{
    tensor in[GRAPH_ARRAYS_MAX] = {query};
    SIM_ASSERT(cache_count < GRAPH_ARRAYS_MAX);
    for (uint8_t i = 0; i < cache_count; i++) in[i + 1] = cache[i];
    struct graph_op *op =
        graph_op(g, &op_kind_cached_attention, "attention", (uint8_t)(cache_count + 1), in);
    op->as.turned = (struct graph_turned){{turned, GRAPH_NONE}};
    return graph_result(g, text);
}

/* Over ranks of tp with the same heads. */
static tensor attended(struct graph *graph, const struct graph_attended *texts, tensor query,
                       tensor turned, uint8_t cache_count, const tensor *cache, const char *text)
{
    const struct graph_cache *ways = &graph->terms->cache;
    if (ways->batch_ways > 1) {
        query = spread(graph, COLLECTIVE_ALL_TO_ALL, "Spread", query, texts->query_by_batch);
        tensor const found =
            attention(graph, query, turned, cache_count, cache, texts->found_by_batch);
        return spread(graph, COLLECTIVE_ALL_TO_ALL, "Return", found, text);
    }
    if (ways->sequence_ways > 1) {
        query = spread(graph, COLLECTIVE_ALL_GATHER, "Spread", query, texts->query_by_sequence);
        tensor const found =
            attention(graph, query, turned, cache_count, cache, texts->found_by_sequence);
        return spread(graph, COLLECTIVE_REDUCE_SCATTER, "Merge", found, text);
    }
    return attention(graph, query, turned, cache_count, cache, text);
}

/* Over ranks of cp: each attends to its rows for the tokens of all. */
static tensor context_attended(struct graph *graph, const struct graph_attended *texts,
                               tensor query, tensor turned, uint8_t cache_count,
                               const tensor *cache)
{
    query = spread(graph, COLLECTIVE_ALL_GATHER, "Spread", query, texts->query_by_tokens);
    graph->op[graph->op_count - 1].as.spread.over_sequence = true;
    tensor found = attention(graph, query, turned, cache_count, cache, texts->found_by_tokens);
    found = spread(graph, COLLECTIVE_REDUCE_SCATTER, "Merge", found, texts->found);
    graph->op[graph->op_count - 1].as.spread.over_sequence = true;
    return found;
}

tensor graph_attend(struct graph *graph, const struct graph_attended *texts, tensor query,
                    tensor turned, uint8_t cache_count, const tensor *cache)
{
    bool const in_rows = graph->terms->cache.apart == GRAPH_APART_ROWS;
    if (graph->terms->cache.context_ways > 1)
        return context_attended(graph, texts, query, turned, cache_count, cache);
    tensor const found = attended(graph, texts, query, turned, cache_count, cache,
                                  in_rows ? texts->found_in_rows : texts->found);
    if (!in_rows) return found;
    tensor const merged = spread(graph, COLLECTIVE_ALL_REDUCE, "MergeRows", found, texts->found);
    graph->op[graph->op_count - 1].as.spread.over_width = true;
    return merged;
}
