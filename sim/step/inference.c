/*
 * Sequences of a pass on ranks that each have as many of them, one after the other; the last rank
 * may have fewer. All ranks step together, so each is charged the rows of the one that has most.
 *
 * A query sees the keys before it and its own, in a layer with a window of w the last w of these.
 * A sequence with q queries and k keys altogether has q·(k - q) + q·(q + 1)/2 scores.
 */
#include "sim/step/inference.h"

#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/graph/block.h"
#include "sim/step/graph_terms.h"
#include "sim/step/ranks.h"

struct sequence {
    uint64_t queries, keys;
};

static const struct inference_plan *plan_of(const struct ranks *ranks)
{
    return &ranks->plan->inference;
}

static uint64_t length_at(const struct inference_lengths *lengths, uint64_t sequence)
{
    return lengths->tokens[lengths->count == 1 ? 0 : sequence];
}

static struct sequence sequence_at(const struct workload_plan *plan, uint64_t index)
{
    const struct inference_plan *of = &plan->inference;
    if (plan->kind == WORKLOAD_DECODE)
        return (struct sequence){of->new_tokens, length_at(&of->context, index)};
    uint64_t const prompt = length_at(&of->prompt, index);
    return (struct sequence){prompt, of->cached + prompt};
}

/* Scores of a sequence whose queries see at most `window` keys each. */
static uint64_t scores_of(const struct ranks *ranks, struct sequence of, uint64_t window)
{
    uint64_t const before = of.keys - of.queries;
    uint64_t const growing =
        window <= before ? 0 : window - before; /* Queries before it is full. */
    if (ranks->plan->attention.mask == WORKLOAD_ATTENTION_FULL)
        return of.queries * (window < of.keys ? window : of.keys);
    if (growing >= of.queries) return of.queries * before + of.queries * (of.queries + 1) / 2;
    return growing * before + growing * (growing + 1) / 2 + (of.queries - growing) * window;
}

/* Rows of the cache that some query of the sequence sees. */
static uint64_t rows_of(struct sequence of, uint64_t window)
{
    uint64_t const seen = window - 1 > of.keys ? of.keys : window - 1 + of.queries;
    return seen < of.keys ? seen : of.keys;
}

static struct graph_served served_of(const struct ranks *ranks, uint64_t first, uint64_t end,
                                     uint64_t window)
{
    struct graph_served served = {0};
    uint64_t scores = 0, queries = 0;
    bool const decodes = ranks->plan->kind == WORKLOAD_DECODE;
    for (uint64_t i = first; i < end; i++) {
        struct sequence const of = sequence_at(ranks->plan, i);
        uint64_t const own = scores_of(ranks, of, window);
        served.read += rows_of(of, window);
        served.columns += decodes ? units_ceil_divide(own, of.queries) : 0;
        scores += own;
        queries += of.queries;
    }
    served.rows = decodes ? plan_of(ranks)->new_tokens : queries;
    if (!decodes) served.columns = units_ceil_divide(scores, queries);
    return served;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

static void most_take(struct graph_served *most, const struct graph_served *of)
{
    if (of->rows * of->columns > most->rows * most->columns) {
        most->rows = of->rows;
        most->columns = of->columns;
    }
    most->read = larger(most->read, of->read);
}

static bool are_alike(const struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    return (ranks->plan->kind == WORKLOAD_DECODE ? &plan->context : &plan->prompt)->count == 1;
}

/* The rank's part of every sequence. */
static struct graph_served parts_of(struct graph_served served, const struct inference_ranks *of)
{
    served.columns = units_ceil_divide(served.columns, of->sequence_ways);
    served.read = units_ceil_divide(served.read, of->sequence_ways);
    return served;
}

/* Of a layer, of each measure on the rank that has most of it: of `share` sequences of a data rank
 * `kept` each. */
static struct graph_served fullest(const struct ranks *ranks, const struct inference_ranks *of,
                                   uint64_t window)
{
    uint64_t const batch = plan_of(ranks)->batch, share = of->sequences;
    uint64_t const kept = units_ceil_divide(share, of->batch_ways);
    struct graph_served most = {0};
    for (uint64_t first = 0; first < batch; first += share)
        for (uint64_t from = first; from < first + share && from < batch; from += kept) {
            uint64_t end = from + kept;
            if (end > first + share) end = first + share;
            if (end > batch) end = batch;
            struct graph_served const served = served_of(ranks, from, end, window);
            most_take(&most, &served);
            if (are_alike(ranks)) return parts_of(most, of);
        }
    return parts_of(most, of);
}

/* Of a head in a layer, of all sequences. */
static units_wide scores_all(const struct ranks *ranks, uint64_t window)
{
    units_wide scores = 0;
    for (uint64_t i = 0; i < plan_of(ranks)->batch; i++)
        scores += scores_of(ranks, sequence_at(ranks->plan, i), window);
    return scores;
}

static uint64_t tokens_most(const struct ranks *ranks, uint64_t share)
{
    uint64_t const batch = plan_of(ranks)->batch;
    uint64_t most = 0, tokens = 0;
    for (uint64_t i = 0; i < batch; i++) {
        tokens = (i % share == 0 ? 0 : tokens) + sequence_at(ranks->plan, i).queries;
        most = larger(most, tokens);
    }
    return most;
}

uint64_t inference_tokens(const struct workload_plan *plan)
{
    uint64_t tokens = 0;
    for (uint64_t i = 0; i < plan->inference.batch; i++) tokens += sequence_at(plan, i).queries;
    return tokens;
}

uint64_t inference_head_rows(const struct workload_plan *plan)
{
    return plan->kind == WORKLOAD_DECODE ? inference_tokens(plan) : plan->inference.batch;
}

uint64_t inference_context_tokens(const struct workload_plan *plan)
{
    uint64_t tokens = 0;
    for (uint64_t i = 0; i < plan->inference.batch; i++) tokens += sequence_at(plan, i).keys;
    return tokens;
}

uint64_t inference_keys_most(const struct workload_plan *plan)
{
    const struct inference_plan *of = &plan->inference;
    bool const decodes = plan->kind == WORKLOAD_DECODE;
    const struct inference_lengths *lengths = decodes ? &of->context : &of->prompt;
    uint64_t most = 0;
    for (uint32_t i = 0; i < lengths->count; i++) most = larger(most, lengths->tokens[i]);
    return decodes ? most : most + of->cached;
}

/* Heads as far as they go; then in a decode sequences, if there are enough for the ranks that are
 * left, or parts of them. In a prefill such ranks have computed the same keys and values, and each
 * attends with its own queries: to share would move more than it saves. */
static void ways_build(const struct ranks *ranks, struct inference_ranks *inference)
{
    const struct inference_ways *ways = &plan_of(ranks)->ways;
    uint32_t const holders = (uint32_t)group_rank_count(&ranks->heads.group);
    inference->batch_ways = inference->sequence_ways = 1;
    if (ways->sharding == INFERENCE_GIVEN) {
        inference->batch_ways = ways->batch;
        inference->sequence_ways = ways->sequence;
    } else if (ways->sharding == INFERENCE_AUTO && ranks->plan->kind == WORKLOAD_DECODE) {
        bool const enough = inference->sequences >= holders;
        *(enough ? &inference->batch_ways : &inference->sequence_ways) = holders;
    }
}

void inference_build(const struct ranks *ranks, struct inference_ranks *ret_inference)
{
    const struct inference_plan *plan = plan_of(ranks);
    bool const decodes = ranks->plan->kind == WORKLOAD_DECODE;
    uint64_t const share = units_ceil_divide(plan->batch, ranks->data);
    uint64_t const window = ranks->plan->model.window;
    struct inference_ranks *of = ret_inference;
    *of = (struct inference_ranks){.sequences = share, .tokens = tokens_most(ranks, share)};
    ways_build(ranks, of);
    for (uint32_t windowed = 0; windowed < 2; windowed++) {
        uint64_t const most = windowed == 0 || window == 0 ? UINT64_MAX : window;
        of->served[windowed] = fullest(ranks, of, most);
        of->served[windowed].scores = scores_all(ranks, most);
    }
    of->head_rows = decodes ? of->tokens : share;
}

/* Of one layer, on one chip. */
static uint64_t layer_cache_bytes(const struct ranks *ranks, uint64_t layer)
{
    struct graph_terms terms;
    struct graph graph;
    uint64_t bytes = 0;
    graph_terms_of(ranks, layer, &terms);
    block_write_layer(&terms, &ranks->plan->model, layer, &graph);
    for (uint8_t t = 0; t < graph.tensor_count; t++)
        if (graph.tensor[t].role == GRAPH_CACHE)
            bytes += format_bytes(graph.tensor[t].format,
                                  graph_elements(&graph, &graph.tensor[t].at, 0));
    return bytes;
}

/* Layers that attend alike keep as much. */
uint64_t inference_cache_bytes(const struct ranks *ranks)
{
    const struct model *model = &ranks->plan->model;
    uint64_t bytes = 0, of_kind[2] = {0};
    for (uint64_t layer = 0; layer < model->layers; layer++) {
        bool const windowed = ranks_layer_is_windowed(ranks, layer);
        if (of_kind[windowed] == 0) of_kind[windowed] = layer_cache_bytes(ranks, layer);
        bytes += of_kind[windowed];
    }
    return bytes;
}

enum status inference_ways_check(const struct ranks *ranks, struct error *reterr)
{
    const struct inference_ways *ways = &plan_of(ranks)->ways;
    uint32_t const holders = (uint32_t)group_rank_count(&ranks->heads.group),
                   heads = ranks->tp / holders;
    static const char where[] = "/workload/kv_sharding";
    if (ways->sharding != INFERENCE_GIVEN) return STATUS_OK;
    if ((uint64_t)ways->heads * ways->batch * ways->sequence != ranks->tp)
        return error_set(reterr, STATUS_INVALID, where,
                         "%u x %u x %u are not the %u ranks of tp; heads %u, batch %u, sequence 1 "
                         "are",
                         ways->heads, ways->batch, ways->sequence, ranks->tp, heads, holders);
    if (ways->heads != heads)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "ranks of tp compute the keys of %s, so that heads %u is all that is "
                         "modelled here, not %u",
                         counted(heads, "different set of heads").text, heads, ways->heads);
    if (ways->batch > 1 && ways->sequence > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "ranks with the same heads share by batch or by sequence; both at once "
                         "is not modelled in this version");
    return STATUS_OK;
}

enum { ONE_BITS = 62 };

/* (1 - k/E)^tokens in units of 2^-ONE_BITS, by squares, rounded down. */
static uint64_t missed_share(const struct model_experts *experts, uint64_t tokens)
{
    units_wide const one = (units_wide)1 << ONE_BITS;
    units_wide power = one * (experts->count - experts->top_k) / experts->count, share = one;
    for (; tokens > 0; tokens /= 2) {
        if (tokens % 2 == 1) share = share * power >> ONE_BITS;
        power = power * power >> ONE_BITS;
    }
    return (uint64_t)share;
}

uint64_t inference_experts_read(const struct ranks *ranks)
{
    uint64_t const most = ranks->rows * ranks->experts.ranks, all = inference_tokens(ranks->plan);
    uint64_t const missed = missed_share(&ranks->plan->model.experts, most < all ? most : all);
    uint64_t const held = ranks->experts.count;
    return held - (uint64_t)((units_wide)held * missed >> ONE_BITS);
}
