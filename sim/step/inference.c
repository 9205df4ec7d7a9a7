/*
 * Sequences of a pass on ranks that each have as many of each kind, one after the other; the last
 * rank may have fewer. All ranks step together, so each is charged the rows of the one that has
 * most.
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

/* Sequences of one kind, from one to before another. */
struct span {
    enum inference_part part;
    uint64_t first, end;
};

static const struct inference_plan *plan_of(const struct ranks *ranks)
{
    return &ranks->plan->inference;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

static uint64_t smaller(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

static uint64_t length_at(const struct inference_lengths *lengths, uint64_t sequence)
{
    return lengths->tokens[lengths->count == 1 ? 0 : sequence];
}

static uint64_t count_of(const struct inference_plan *plan, enum inference_part part)
{
    return part == INFERENCE_DECODES ? plan->decodes.count : plan->prompts.count;
}

static struct sequence sequence_at(const struct inference_plan *plan, enum inference_part part,
                                   uint64_t index)
{
    if (part == INFERENCE_DECODES)
        return (struct sequence){plan->decodes.new_tokens,
                                 length_at(&plan->decodes.context, index)};
    uint64_t const prompt = length_at(&plan->prompts.tokens, index);
    return (struct sequence){prompt, plan->prompts.cached + prompt};
}

/* Logits are wanted of what answers, and of the last token of a prompt. */
static uint64_t head_rows_of(enum inference_part part, struct sequence of)
{
    return part == INFERENCE_DECODES ? of.queries : 1;
}

/* --- Sums --- */

static struct inference_sum sum_of(const struct inference_plan *plan, struct span span)
{
    struct inference_sum sum = {.sequences = span.end - span.first};
    for (uint64_t i = span.first; i < span.end; i++) {
        struct sequence const of = sequence_at(plan, span.part, i);
        sum.tokens += of.queries;
        sum.context_tokens += of.keys;
        sum.head_rows += head_rows_of(span.part, of);
    }
    return sum;
}

struct inference_sum inference_sum(const struct workload_plan *plan, enum inference_part part)
{
    const struct inference_plan *of = &plan->inference;
    return sum_of(of, (struct span){part, 0, count_of(of, part)});
}

struct inference_sum inference_sum_all(const struct workload_plan *plan)
{
    struct inference_sum const decodes = inference_sum(plan, INFERENCE_DECODES),
                               prompts = inference_sum(plan, INFERENCE_PROMPTS);
    return (struct inference_sum){
        decodes.sequences + prompts.sequences, decodes.tokens + prompts.tokens,
        decodes.context_tokens + prompts.context_tokens, decodes.head_rows + prompts.head_rows};
}

uint64_t inference_keys_most_of(const struct workload_plan *plan, enum inference_part part)
{
    const struct inference_plan *of = &plan->inference;
    uint64_t most = 0;
    for (uint64_t i = 0; i < count_of(of, part); i++)
        most = larger(most, sequence_at(of, part, i).keys);
    return most;
}

uint64_t inference_keys_most(const struct workload_plan *plan)
{
    return larger(inference_keys_most_of(plan, INFERENCE_DECODES),
                  inference_keys_most_of(plan, INFERENCE_PROMPTS));
}

/* --- Attention --- */

/* Scores of a sequence whose queries see at most `window` keys each. */
static uint64_t scores_of(const struct ranks *ranks, struct sequence of, uint64_t window)
{
    uint64_t const before = of.keys - of.queries;
    uint64_t const growing =
        window <= before ? 0 : window - before; /* Queries before it is full. */
    if (ranks->plan->attention.mask == WORKLOAD_ATTENTION_FULL)
        return of.queries * smaller(window, of.keys);
    if (growing >= of.queries) return of.queries * before + of.queries * (of.queries + 1) / 2;
    return growing * before + growing * (growing + 1) / 2 + (of.queries - growing) * window;
}

/* Rows of the cache that some query of the sequence sees. */
static uint64_t rows_of(struct sequence of, uint64_t window)
{
    uint64_t const seen = window - 1 > of.keys ? of.keys : window - 1 + of.queries;
    return smaller(seen, of.keys);
}

uint64_t inference_window_tokens(const struct workload_plan *plan, enum inference_part part)
{
    const struct inference_plan *of = &plan->inference;
    uint64_t tokens = 0;
    for (uint64_t i = 0; i < count_of(of, part); i++)
        tokens += rows_of(sequence_at(of, part, i), plan->model.window);
    return tokens;
}

/* Decodes each have their few queries, so that the keys of all add up; the queries of prompts add
 * up, each with as many keys as the mean. */
static struct graph_served served_of(const struct ranks *ranks, struct span span, uint64_t window)
{
    struct graph_served served = {0};
    uint64_t queries = 0;
    units_wide scores = 0; /* Of 2^40 tokens they are more than 64 bits hold. */
    for (uint64_t i = span.first; i < span.end; i++) {
        struct sequence const of = sequence_at(plan_of(ranks), span.part, i);
        uint64_t const own = scores_of(ranks, of, window);
        served.read += rows_of(of, window);
        served.columns += units_ceil_divide(own, of.queries);
        served.rows = of.queries;
        scores += own;
        queries += of.queries;
    }
    if (span.part == INFERENCE_DECODES || queries == 0) return served;
    served.rows = queries;
    served.columns = (uint64_t)((scores + queries - 1) / queries);
    return served;
}

static void most_take(struct graph_served *most, const struct graph_served *of)
{
    if ((units_wide)of->rows * of->columns > (units_wide)most->rows * most->columns) {
        most->rows = of->rows;
        most->columns = of->columns;
    }
    most->read = larger(most->read, of->read);
}

/* The rank's part of every sequence. */
static struct graph_served parts_of(struct graph_served served, const struct inference_ranks *of)
{
    served.columns = units_ceil_divide(served.columns, of->sequence_ways);
    served.read = units_ceil_divide(served.read, of->sequence_ways);
    return served;
}

/* --- What each rank has --- */

/* The sequences that one of those that share a data rank's keeps; of one, all of the data rank. */
static struct span span_at(const struct ranks *ranks, enum inference_part part, uint64_t data,
                           uint64_t kept, uint64_t way)
{
    uint64_t const share = ranks->inference.sequences[part];
    uint64_t const end = smaller((data + 1) * share, count_of(plan_of(ranks), part));
    uint64_t const first = smaller(data * share + way * kept, end);
    return (struct span){part, first, smaller(first + kept, end)};
}

/* New tokens of the data rank, or of the keeper, that has most: of each of `ways` that share. */
static uint64_t tokens_most(const struct ranks *ranks, const uint64_t kept[INFERENCE_PARTS],
                            uint32_t ways)
{
    uint64_t most = 0;
    for (uint64_t n = 0; n < (uint64_t)ranks->data * ways; n++) {
        uint64_t tokens = 0;
        for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
            struct span const span =
                span_at(ranks, (enum inference_part)p, n / ways, kept[p], n % ways);
            tokens += sum_of(plan_of(ranks), span).tokens;
        }
        most = larger(most, tokens);
    }
    return most;
}

/* Of a head in a layer, of all sequences. */
static units_wide scores_all(const struct ranks *ranks, enum inference_part part, uint64_t window)
{
    units_wide scores = 0;
    for (uint64_t i = 0; i < count_of(plan_of(ranks), part); i++)
        scores += scores_of(ranks, sequence_at(plan_of(ranks), part, i), window);
    return scores;
}

/* Of a layer, of each measure on the rank that has most of it. */
static struct graph_served fullest(const struct ranks *ranks, enum inference_part part,
                                   uint64_t window)
{
    const struct inference_ranks *of = &ranks->inference;
    struct graph_served most = {0};
    for (uint64_t n = 0; n < (uint64_t)ranks->data * of->batch_ways; n++) {
        struct span const span =
            span_at(ranks, part, n / of->batch_ways, of->kept[part], n % of->batch_ways);
        struct graph_served const served = served_of(ranks, span, window);
        most_take(&most, &served);
    }
    most = parts_of(most, of);
    most.scores = scores_all(ranks, part, window);
    return most;
}

/* Heads as far as they go; then, where there are decodes, sequences, if these are enough for the
 * ranks that are left, or parts of them. In a prefill such ranks have computed the same keys and
 * values, and each attends with its own queries: to share would move more than it saves. */
static void ways_build(const struct ranks *ranks, struct inference_ranks *inference)
{
    const struct inference_ways *ways = &plan_of(ranks)->ways;
    uint32_t const holders = (uint32_t)group_rank_count(&ranks->heads.group);
    uint64_t const decodes = inference->sequences[INFERENCE_DECODES];
    inference->batch_ways = inference->sequence_ways = 1;
    if (ways->sharding == INFERENCE_GIVEN) {
        inference->batch_ways = ways->batch;
        inference->sequence_ways = ways->sequence;
    } else if (ways->sharding == INFERENCE_AUTO && decodes > 0) {
        *(decodes >= holders ? &inference->batch_ways : &inference->sequence_ways) = holders;
    }
}

void inference_build(struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    uint64_t const window = ranks->plan->model.window;
    struct inference_ranks *of = &ranks->inference;
    *of = (struct inference_ranks){.tokens = 0};
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        of->sequences[p] = units_ceil_divide(count_of(plan, (enum inference_part)p), ranks->data);
    ways_build(ranks, of);
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        of->kept[p] = units_ceil_divide(of->sequences[p], of->batch_ways);
    of->tokens = tokens_most(ranks, of->sequences, 1);
    of->kept_tokens = tokens_most(ranks, of->kept, of->batch_ways);
    of->head_rows = of->sequences[INFERENCE_DECODES] * plan->decodes.new_tokens +
                    of->sequences[INFERENCE_PROMPTS];
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
        of->served[p][0] = fullest(ranks, (enum inference_part)p, UINT64_MAX);
        of->served[p][1] =
            fullest(ranks, (enum inference_part)p, window == 0 ? UINT64_MAX : window);
    }
}

uint64_t inference_cache_bytes(const struct ranks *ranks)
{
    struct step_part parts[STEP_PARTS_MAX];
    uint32_t const count = step_parts(ranks, parts);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count && parts[i].part == BLOCK_LAYER; i++) {
        struct graph_terms terms;
        struct graph graph;
        graph_terms_of_part(ranks, &parts[i], &terms);
        block_write_layer(&terms, &ranks->plan->model, parts[i].layer, &graph);
        for (uint8_t t = 0; t < graph.tensor_count; t++)
            if (graph.tensor[t].role == GRAPH_CACHE)
                bytes += parts[i].count *
                         graph_tensor_bytes(&graph.tensor[t],
                                            graph_elements(&graph, &graph.tensor[t].at, 0));
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
        return error_set(
            reterr, STATUS_UNSUPPORTED, where,
            "ranks of tp compute the keys of %s of heads, so that heads %u is all that is "
            "modelled here, not %u",
            counted(heads, "different set").text, heads, ways->heads);
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
    uint64_t const most = ranks->rows * ranks->experts.ranks,
                   all = inference_sum_all(ranks->plan).tokens;
    uint64_t const missed = missed_share(&ranks->plan->model.experts, most < all ? most : all);
    uint64_t const held = ranks->experts.count;
    return held - (uint64_t)((units_wide)held * missed >> ONE_BITS);
}
