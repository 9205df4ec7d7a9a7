/*
 * Ranks of cp keep a part of the rows of each sequence. Of sequences that answer they gather the
 * queries of all, as these are few, and merge what each finds in its rows. Of prompts they gather
 * the rows, as each has many queries of its own.
 *
 * Ranks of tp with the same heads that share the cache attend for one another. But they have all
 * computed the rows of the pass: prompts that attend to no others stay where they are, and a rank
 * attends for its own heads to what it has computed. Decodes of the same pass have ops of their
 * own.
 *
 * Source of the merge: Rabe and Staats, Self-attention Does Not Need O(n^2) Memory, arXiv
 * 2112.05682.
 */
#include "workloads/blocks/cached.h"

#include <stdio.h>

#include "sim/graph/op.h"

enum { TEXT_BYTES = 96 };

struct text {
    char bytes[TEXT_BYTES];
};

/* What attends, and to what. */
struct attending {
    struct graph *graph;
    const struct cached_texts *of;
    enum graph_serves serves;
    const char *tokens; /* Of the queries: "B". */
    const char *axes;   /* These lie on: "ZXW". */
    const char *head_axes;
    const char *suffix; /* Of names of arrays on the way. */
    tensor rotated;
    bool own;      /* `rows` are as they were computed. */
    uint8_t count; /* Of `rows`. */
    const tensor *rows;
};

/* "QB[Bb_ZXW, Nb_Y, H]" */
static struct text text_of(const struct attending *at, bool query, const char *suffix,
                           const char *tokens, const char *heads)
{
    const struct cached_texts *of = at->of;
    struct text text;
    int const length = snprintf(text.bytes, TEXT_BYTES, "%s%s%s[%s_%s, %s_%s, %s]",
                                query ? of->query : of->found, at->suffix, suffix, tokens, at->axes,
                                heads, at->head_axes, query ? of->query_width : of->found_width);
    SIM_ASSERT(length > 0 && length < TEXT_BYTES);
    return text;
}

static tensor spread(struct graph *g, enum collective_kind kind, const char *name, tensor in,
                     const char *text)
{
    struct graph_op *op = graph_op(g, &op_kind_spread, name, 1, &in);
    op->as.spread.kind = kind;
    return graph_result(g, text);
}

/* Over ranks of tp with the same heads. */
static tensor spread_to_holders(const struct attending *at, enum collective_kind kind,
                                const char *name, tensor in, const char *text)
{
    tensor const there = spread(at->graph, kind, name, in, text);
    at->graph->op[at->graph->op_count - 1].serves = at->serves;
    return there;
}

static tensor attention(const struct attending *at, tensor query, const char *text)
{
    tensor in[GRAPH_ARRAYS_MAX] = {query};
    SIM_ASSERT(at->count < GRAPH_ARRAYS_MAX);
    for (uint8_t i = 0; i < at->count; i++) in[i + 1] = at->rows[i];
    struct graph_op *op =
        graph_rotating(at->graph, &op_kind_cached_attention, "attention", (uint8_t)(at->count + 1),
                       in, graph_rotated(at->rotated, GRAPH_NONE));
    op->serves = at->serves;
    return graph_result(at->graph, text);
}

/* Over ranks of tp with the same heads. */
static tensor attended(const struct attending *at, tensor query, const char *text)
{
    const struct graph_cache *ways = &at->graph->terms->cache;
    bool const by_batch = ways->batch_ways > 1;
    enum collective_kind const out = by_batch ? COLLECTIVE_ALL_TO_ALL : COLLECTIVE_ALL_GATHER;
    enum collective_kind const back = by_batch ? COLLECTIVE_ALL_TO_ALL : COLLECTIVE_REDUCE_SCATTER;
    if (!by_batch && ways->sequence_ways == 1) return attention(at, query, text);
    const char *const suffix = by_batch ? "B" : "S", *const heads = by_batch ? "Nb" : "Ns";
    const char *const tokens = by_batch ? "Bb" : at->tokens;
    struct text const asked = text_of(at, true, suffix, tokens, heads);
    struct text const answered = text_of(at, false, suffix, tokens, heads);
    query = spread_to_holders(at, out, "Spread", query, asked.bytes);
    tensor const found = attention(at, query, answered.bytes);
    return spread_to_holders(at, back, by_batch ? "Return" : "Merge", found, text);
}

/* Over ranks of cp, of sequences that answer: each attends to its rows for the tokens of all. */
static tensor answers_attended(struct attending at, tensor query, const char *text)
{
    struct graph *graph = at.graph;
    at.tokens = "Bc";
    at.axes = "ZX";
    at.suffix = "C";
    struct text const all = text_of(&at, true, "", "Bc", "N");
    struct text const parts = text_of(&at, false, "", "Bc", "N");
    query = spread(graph, COLLECTIVE_ALL_GATHER, "Spread", query, all.bytes);
    graph->op[graph->op_count - 1].as.spread.over_sequence = true;
    tensor const found = attended(&at, query, parts.bytes);
    tensor const merged = spread(graph, COLLECTIVE_REDUCE_SCATTER, "Merge", found, text);
    graph->op[graph->op_count - 1].as.spread.over_sequence = true;
    return merged;
}

/* Of prompts: each attends with its part of the queries to the rows of all. */
static tensor prompts_attended(struct attending at, tensor query, const char *text)
{
    const struct graph_cache *cache = &at.graph->terms->cache;
    const char *const *texts = at.own ? at.of->gathered_own : at.of->gathered;
    tensor rows[GRAPH_ARRAYS_MAX];
    if (cache->prompt_ways > 1) {
        cached_rows_gather(at.graph, at.count, at.rows, texts, rows);
        at.rows = rows;
        at.axes = "ZX";
        at.suffix = "P";
    }
    return cache->prompts_stay ? attention(&at, query, text) : attended(&at, query, text);
}

/* The rows of prompts: of the cache, or as they were computed. */
static struct attending prompts_of(struct attending at, const struct cached_rows *rows)
{
    const struct graph_cache *cache = &at.graph->terms->cache;
    at.own = cache->prompts_stay || (cache->own_rows && rows->gathers_own);
    at.own = at.own && rows->own_count != 0;
    if (!at.own) return at;
    at.count = rows->own_count;
    at.rows = rows->own;
    return at;
}

/* Decodes by ops of their own, where prompts are in the pass too. */
static tensor decodes_attended(struct attending at, tensor query)
{
    bool const in_parts = at.graph->terms->cache.prompt_ways > 1;
    at.serves = GRAPH_SERVES_ANSWERS;
    at.tokens = "Bd";
    if (in_parts) at.axes = "ZX";
    at.suffix = "D";
    struct text const text = text_of(&at, false, "", "Bd", "N");
    return in_parts ? answers_attended(at, query, text.bytes) : attended(&at, query, text.bytes);
}

/* Decodes and prompts by ops of their own. */
static tensor kinds_attended(struct attending at, const struct cached_rows *rows, tensor query,
                             const char *text)
{
    struct attending prompts = prompts_of(at, rows);
    prompts.serves = GRAPH_SERVES_PROMPTS;
    prompts.tokens = "Bp";
    prompts.rotated = GRAPH_NONE; /* With those that answer. */
    if (at.graph->terms->cache.prompt_ways > 1) prompts.axes = "ZX";
    prompts.suffix = "P";
    struct text const other = text_of(&prompts, false, "", "Bp", "N");
    tensor const found[] = {decodes_attended(at, query),
                            prompts_attended(prompts, query, other.bytes)};
    graph_op(at.graph, &op_kind_concat, "Found", 2, found);
    return graph_result(at.graph, text);
}

/* Over ranks of tp and of cp. */
static tensor all_attended(struct attending at, const struct cached_rows *rows, tensor query,
                           const char *text)
{
    const struct graph_cache *cache = &at.graph->terms->cache;
    if (cache->kinds_apart) return kinds_attended(at, rows, query, text);
    if (cache->context_ways > 1) return answers_attended(at, query, text);
    if (cache->prompts_stay || cache->prompt_ways > 1)
        return prompts_attended(prompts_of(at, rows), query, text);
    return attended(&at, query, text);
}

void cached_rows_gather(struct graph *graph, uint8_t count, const tensor *rows,
                        const char *const *texts, tensor *ret_rows)
{
    struct graph_op *op = graph_op(graph, &op_kind_spread, "Gather", count, rows);
    op->as.spread.kind = COLLECTIVE_ALL_GATHER;
    op->as.spread.over_sequence = true;
    for (uint8_t i = 0; i < count; i++) {
        enum format const format = graph->tensor[rows[i]].format;
        ret_rows[i] = graph_result(graph, texts[i]);
        graph_set_formats(graph, ret_rows[i], format, format);
    }
}

static struct attending attending_of(struct graph *graph, const struct cached_texts *of,
                                     tensor rotated, const struct cached_rows *rows)
{
    return (struct attending){.graph = graph,
                              .of = of,
                              .tokens = "B",
                              .axes = of->axes,
                              .head_axes = of->head_axes,
                              .suffix = "",
                              .rotated = rotated,
                              .count = rows->count,
                              .rows = rows->cached};
}

tensor cached_answers_attention(struct graph *graph, const struct cached_texts *of, tensor query,
                                const struct cached_rows *rows)
{
    return decodes_attended(attending_of(graph, of, GRAPH_NONE, rows), query);
}

tensor cached_attention(struct graph *graph, const struct cached_texts *of, tensor query,
                        tensor rotated, const struct cached_rows *rows)
{
    const struct graph_cache *cache = &graph->terms->cache;
    bool const in_rows = cache->apart == GRAPH_APART_ROWS;
    struct attending const at = attending_of(graph, of, rotated, rows);
    if (!in_rows) return all_attended(at, rows, query, of->result);
    struct attending parts = at;
    parts.axes = "ZX";
    parts.head_axes = "Y";
    struct text const found_in_rows = text_of(&parts, false, "R", "B", "N");
    tensor const found = all_attended(at, rows, query, found_in_rows.bytes);
    tensor const merged = spread(graph, COLLECTIVE_ALL_REDUCE, "MergeRows", found, of->result);
    graph->op[graph->op_count - 1].as.spread.over_width = true;
    return merged;
}
