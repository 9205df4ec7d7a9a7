/*
 * Sequences of a pass on ranks that each have as many of each kind, one after the other; the last
 * rank may have fewer. All ranks step together, so each is charged the rows of the one that has
 * most.
 *
 * Ranks of tp_d have partial sums of the same queries, keys and values. Where each attends with
 * some of the sequences they are made to have equally many tokens, as frameworks pad a batch.
 *
 * Ranks of cp each have some of the decodes, and a part of each prompt: one from
 * either end, or one. Prompts are padded so that all parts are as long, and each rank is charged
 * the scores of one in the middle, or of the last, which has most of them.
 *
 * A query sees the keys before it and its own, in a layer with a window of w the last w of these.
 * A sequence with q queries and k keys altogether has q·(k - q) + q·(q + 1)/2 scores.
 */
#include "sim/step/inference.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/graph/block.h"
#include "sim/step/graph_terms.h"
#include "sim/step/inference_sequences.h"
#include "sim/step/ranks.h"

static const struct inference_plan *plan_of(const struct ranks *ranks)
{
    return &ranks->plan->inference;
}

/* --- Attention --- */

/* Scores of a sequence whose queries see at most `window` keys each. */
static uint64_t scores_of(const struct workload_plan *plan, struct inference_sequence of,
                          uint64_t window)
{
    uint64_t const before = of.keys - of.queries;
    uint64_t const growing =
        window <= before ? 0 : window - before; /* Queries before it is full. */
    if (plan->attention.mask == WORKLOAD_ATTENTION_FULL)
        return of.queries * units_smaller(window, of.keys);
    if (growing >= of.queries) return of.queries * before + of.queries * (of.queries + 1) / 2;
    return growing * before + growing * (growing + 1) / 2 + (of.queries - growing) * window;
}

/* Of a head in a layer, of all sequences. */
static units_wide scores_all(const struct workload_plan *plan, uint32_t pass,
                             enum inference_part part, uint64_t window)
{
    struct inference_pass const at = inference_pass_at(&plan->inference, pass);
    struct inference_span const span = inference_span_in(&plan->inference, part, &at);
    struct inference_sequence of;
    units_wide scores = 0;
    for (uint64_t i = span.first; i < span.end; i += of.times) {
        of = inference_sequence_at(&plan->inference, &at, span, i);
        scores += (units_wide)scores_of(plan, of, window) * of.times;
    }
    return scores;
}

units_wide inference_scores(const struct workload_plan *plan, uint32_t pass,
                            enum inference_part part)
{
    const struct model *model = &plan->model;
    uint64_t windowed = 0;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        windowed += model_layer_is_windowed(model, layer);
    units_wide const scores = (model->layers - windowed) * scores_all(plan, pass, part, UINT64_MAX);
    if (windowed == 0) return scores;
    return scores + windowed * scores_all(plan, pass, part, model->attends.window);
}

/* Rows of the cache that some query of the sequence sees. */
static uint64_t rows_of(struct inference_sequence of, uint64_t window)
{
    uint64_t const seen = window - 1 > of.keys ? of.keys : window - 1 + of.queries;
    return units_smaller(seen, of.keys);
}

/* Rows of some sequences that stay behind the step: of an array with a window those that a pass of
 * a whole chunk sees, for which there has to be room, though the last pass may see fewer. */
static uint64_t held_of(const struct inference_plan *plan, struct inference_span span,
                        uint64_t window)
{
    struct inference_pass const whole = inference_pass_whole(plan);
    struct inference_sequence all;
    uint64_t rows = 0;
    for (uint64_t i = span.first; i < span.end; i += all.times) {
        all = inference_sequence_at(plan, &whole, span, i);
        if (plan->prompts.chunk != 0) all.queries = units_smaller(all.queries, plan->prompts.chunk);
        rows += all.times * rows_of(all, window);
    }
    return rows;
}

uint64_t inference_window_tokens(const struct workload_plan *plan, enum inference_part part)
{
    return held_of(&plan->inference, inference_span_all(&plan->inference, part),
                   plan->model.attends.window);
}

/* --- Of prompts that ranks of cp share --- */

static bool attends_in_parts(const struct ranks *ranks)
{
    return ranks->inference.prompts_in_parts && !ranks_has_ulysses(ranks);
}

/* Of the rank in the middle, whose parts of a causal prompt see most keys together, or of the last.
 */
static uint64_t scores_in_parts(const struct ranks *ranks, struct inference_sequence of,
                                uint64_t window)
{
    const struct workload_plan *plan = ranks->plan;
    bool const causal = plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL;
    bool const both = causal && plan->attention.order == WORKLOAD_CONTEXT_ZIGZAG;
    uint64_t const queries = inference_prompt_share(ranks, of.queries),
                   before = of.keys - of.queries;
    uint64_t const length = both ? queries / 2 : queries, all = before + queries * ranks->cp;
    uint64_t scores = 0;
    for (uint32_t i = 0; i <= both; i++) {
        uint64_t const end = before + (ranks->cp + i) * length;
        struct inference_sequence const part = {.queries = length, .keys = causal ? end : all};
        scores += scores_of(plan, part, window);
    }
    return scores;
}

/* A rank's own queries and the keys of all; rows of the cache that it has itself. Half the queries
 * with the keys of the first and the last together are as many scores. */
static struct graph_served in_parts_of(const struct ranks *ranks, struct inference_span span,
                                       uint64_t window)
{
    bool const causal = ranks->plan->attention.mask == WORKLOAD_ATTENTION_CAUSAL;
    struct graph_served served = {0};
    units_wide scores = 0;
    struct inference_sequence of;
    for (uint64_t i = span.first; i < span.end; i += of.times) {
        of = inference_sequence_at(plan_of(ranks), &ranks->inference.pass, span, i);
        if (of.queries == 0) continue;
        served.rows += of.times * inference_prompt_share(ranks, of.queries);
        served.read += of.times * rows_of(of, window);
        served.count += of.times;
        scores += (units_wide)scores_in_parts(ranks, of, window) * of.times;
    }
    if (served.rows == 0) return served;
    served.read = units_ceil_divide(served.read, inference_parts(ranks));
    served.paired = causal && served.rows % 2 == 0;
    if (served.paired) served.rows /= 2;
    uint64_t const keys = (uint64_t)((scores + served.rows - 1) / served.rows);
    uint32_t const ways = ranks->inference.prompts_stay ? 1 : ranks->inference.sequence_ways;
    served.columns = units_ceil_divide(keys, ways);
    return served;
}

/* --- Of whole sequences --- */

/* Decodes each have their few queries, so that the keys of all add up; the queries of prompts add
 * up, each with as many keys as the mean. */
static struct graph_served served_of(const struct ranks *ranks, struct inference_span span,
                                     uint64_t window)
{
    struct graph_served served = {0};
    uint64_t queries = 0;
    units_wide scores = 0; /* Of 2^40 tokens they are more than 64 bits hold. */
    struct inference_sequence of;
    for (uint64_t i = span.first; i < span.end; i += of.times) {
        of = inference_sequence_at(plan_of(ranks), &ranks->inference.pass, span, i);
        uint64_t const own = scores_of(ranks->plan, of, window);
        if (of.queries == 0) continue;
        served.read += of.times * rows_of(of, window);
        served.columns += of.times * units_ceil_divide(own, of.queries);
        served.rows = of.queries;
        served.count += of.times;
        served.longest = units_larger(served.longest, units_ceil_divide(own, of.queries));
        scores += (units_wide)own * of.times;
        queries += of.times * of.queries;
    }
    if (span.part == INFERENCE_DECODES || queries == 0) return served;
    served.rows = queries;
    served.columns = (uint64_t)((scores + queries - 1) / queries);
    return served;
}

/* The rank's part of every sequence. */
static struct graph_served parts_of(struct graph_served served, uint32_t parts)
{
    served.columns = units_ceil_divide(served.columns, parts);
    served.read = units_ceil_divide(served.read, parts);
    served.longest = units_ceil_divide(served.longest, parts);
    return served;
}

/* --- What each rank has --- */

/* Data ranks that have sequences of their own: those of cp share theirs. */
static uint64_t sharers_of(const struct ranks *ranks)
{
    return ranks->data / ranks->cp;
}

/* Of a batch. */
static uint64_t data_share(const struct ranks *ranks, struct inference_span batch)
{
    return units_ceil_divide(batch.end - batch.first, sharers_of(ranks));
}

/* Of a batch's sequences those that one of the ranks that share a data rank's keeps; of one, all of
 * the data rank. */
static struct inference_span span_at(const struct ranks *ranks, struct inference_span batch,
                                     uint64_t data, uint64_t kept, uint64_t way)
{
    uint64_t const share = data_share(ranks, batch);
    uint64_t const end = units_smaller(batch.first + (data + 1) * share, batch.end);
    uint64_t const first = units_smaller(batch.first + data * share + way * kept, end);
    return (struct inference_span){batch.part, first, units_smaller(first + kept, end)};
}

/* Of the pass. */
static struct inference_span span_of(const struct ranks *ranks, enum inference_part part)
{
    return inference_span_in(plan_of(ranks), part, &ranks->inference.pass);
}

static uint64_t tokens_of(const struct ranks *ranks, struct inference_span span)
{
    return inference_span_sum(plan_of(ranks), &ranks->inference.pass, span).tokens;
}

static uint64_t head_rows_of(const struct ranks *ranks, struct inference_span span)
{
    return inference_span_sum(plan_of(ranks), &ranks->inference.pass, span).head_rows;
}

/* Of prompts those of one of the ranks that share them. */
static uint64_t own_tokens_of(const struct ranks *ranks, struct inference_span span)
{
    struct inference_sequence of;
    uint64_t tokens = 0;
    if (span.part == INFERENCE_DECODES) return tokens_of(ranks, span);
    for (uint64_t i = span.first; i < span.end; i += of.times) {
        of = inference_sequence_at(plan_of(ranks), &ranks->inference.pass, span, i);
        tokens += of.times * inference_prompt_share(ranks, of.queries);
    }
    return tokens;
}

/* Of the data rank, or of the keeper, that has most: of each of `ways` that share. Where
 * `in_parts`, prompts are those of the data rank, of which each of its ranks has a part. */
struct most {
    uint64_t all, part[INFERENCE_PARTS];
};
static struct most
most_of(const struct ranks *ranks, const uint64_t kept[INFERENCE_PARTS], uint32_t ways,
        bool in_parts, uint64_t (*amount_of)(const struct ranks *ranks, struct inference_span span))
{
    struct most most = {0};
    for (uint64_t n = 0; n < sharers_of(ranks) * ways; n++) {
        uint64_t all = 0;
        for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
            struct inference_span const batch = span_of(ranks, (enum inference_part)p);
            bool const whole = in_parts && p == INFERENCE_PROMPTS;
            uint64_t const own = whole ? data_share(ranks, batch) : kept[p];
            uint64_t const amount =
                amount_of(ranks, span_at(ranks, batch, n / ways, own, whole ? 0 : n % ways));
            most.part[p] = units_larger(most.part[p], amount);
            all += amount;
        }
        most.all = units_larger(most.all, all);
    }
    return most;
}

/* Of a batch, on the n-th of all ranks that keep different ones. */
static struct inference_span kept_at(const struct ranks *ranks, struct inference_span batch,
                                     uint64_t n)
{
    uint32_t const keepers = inference_keepers(ranks);
    uint64_t const kept = units_ceil_divide(data_share(ranks, batch), keepers);
    return span_at(ranks, batch, n / keepers, kept, n % keepers);
}

/* Those that it attends to itself: where ranks with the same heads keep some prompts each, and
 * attend to all, those of all of them. */
static struct inference_span attended_at(const struct ranks *ranks, enum inference_part part,
                                         uint64_t n)
{
    struct inference_span const batch = span_of(ranks, part);
    uint32_t const keepers = inference_keepers(ranks);
    uint32_t const attending = inference_attending_keepers(ranks, part);
    uint64_t const share = units_ceil_divide(data_share(ranks, batch), attending);
    return span_at(ranks, batch, n / keepers, share, n % keepers / (keepers / attending));
}

/* On the n-th of all ranks that keep different sequences. */
static struct graph_served served_at(const struct ranks *ranks, enum inference_part part,
                                     uint64_t n, uint64_t window)
{
    struct inference_span const span = attended_at(ranks, part, n);
    bool const in_parts = part == INFERENCE_PROMPTS && attends_in_parts(ranks);
    return in_parts
               ? in_parts_of(ranks, span, window)
               : parts_of(served_of(ranks, span, window), inference_attending_parts(ranks, part));
}

/* Of a layer, of scores and of rows that are read on the rank that has most of both kinds. */
static void fullest_find(struct ranks *ranks, bool windowed, uint64_t window)
{
    struct inference_ranks *of = &ranks->inference;
    struct graph_served most[INFERENCE_PARTS] = {{0}};
    uint64_t read[INFERENCE_PARTS] = {0};
    units_wide scores_most = 0;
    for (uint64_t n = 0; n < sharers_of(ranks) * inference_keepers(ranks); n++) {
        struct graph_served served[INFERENCE_PARTS];
        units_wide scores = 0;
        for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
            served[p] = served_at(ranks, (enum inference_part)p, n, window);
            scores += (units_wide)served[p].rows * served[p].columns;
        }
        uint64_t const rows = served[INFERENCE_DECODES].read + served[INFERENCE_PROMPTS].read;
        bool const reads_most = rows > read[INFERENCE_DECODES] + read[INFERENCE_PROMPTS];
        if (scores > scores_most) memcpy(most, served, sizeof most);
        scores_most = scores > scores_most ? scores : scores_most;
        for (uint32_t p = 0; p < INFERENCE_PARTS && reads_most; p++) read[p] = served[p].read;
    }
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
        of->served[p][windowed] = most[p];
        of->served[p][windowed].read = read[p];
        of->served[p][windowed].scores =
            scores_all(ranks->plan, ranks->pass, (enum inference_part)p, window);
    }
}

/* Rows that stay of all batches, on the rank that keeps most. A generation's sequences are the same
 * of both kinds. */
static uint64_t held_most(const struct ranks *ranks, uint64_t window)
{
    const struct inference_plan *plan = plan_of(ranks);
    uint64_t most = 0;
    for (uint64_t n = 0; n < sharers_of(ranks) * inference_keepers(ranks); n++) {
        uint64_t rows[INFERENCE_PARTS] = {0};
        for (uint32_t i = 0; i < INFERENCE_PARTS * inference_batch_count(plan); i++) {
            enum inference_part const part = (enum inference_part)(i % INFERENCE_PARTS);
            struct inference_span const batch = inference_span_of(plan, part, i / INFERENCE_PARTS);
            rows[part] += units_ceil_divide(held_of(plan, kept_at(ranks, batch, n), window),
                                            inference_parts(ranks));
        }
        uint64_t const all = plan->generation.output != 0
                                 ? units_larger(rows[INFERENCE_DECODES], rows[INFERENCE_PROMPTS])
                                 : rows[INFERENCE_DECODES] + rows[INFERENCE_PROMPTS];
        most = units_larger(most, all);
    }
    return most;
}

static uint64_t kept_all(const struct ranks *ranks, enum inference_part part)
{
    uint64_t kept = 0;
    for (uint32_t b = 0; b < inference_batch_count(plan_of(ranks)); b++)
        kept += units_ceil_divide(data_share(ranks, inference_span_of(plan_of(ranks), part, b)),
                                  inference_keepers(ranks));
    return kept;
}

/* Whether prompts attend to nothing before their pass, so that latents are not absorbed. Layers
 * have other matrices then, so all passes of a step do it, or none. Ranks of cp gather the latents
 * of all, and each attends to all. */
static bool begins(const struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    return plan->decodes.count == 0 && ranks->inference.pass.has[INFERENCE_PROMPTS] &&
           plan->prompts.cached == 0 && inference_batch_passes(plan) == 1 &&
           inference_attending_parts(ranks, INFERENCE_PROMPTS) == ranks->cp;
}

/* Who is in the pass, and how far it goes back. Ranks of tp with the same heads have all computed
 * the rows of the pass: without earlier ones, of which each has a part, prompts stay. */
static void kinds_build(struct ranks *ranks)
{
    struct inference_ranks *of = &ranks->inference;
    bool const prompts = tokens_of(ranks, span_of(ranks, INFERENCE_PROMPTS)) > 0;
    bool const decodes = tokens_of(ranks, span_of(ranks, INFERENCE_DECODES)) > 0;
    bool const first = plan_of(ranks)->prompts.cached == 0 && of->pass.index == 0;
    of->prompts_in_parts = ranks->cp > 1 && prompts;
    of->has_decodes = ranks->cp > 1 && decodes;
    of->prompts_stay = prompts && first && of->batch_ways * of->sequence_ways > 1;
    of->own_rows = of->prompts_in_parts && first && (!decodes || of->prompts_stay);
    of->kinds_apart =
        prompts && decodes && (of->prompts_stay || (ranks->cp > 1 && !ranks_has_ulysses(ranks)));
}

/* A rank's new tokens, of those between blocks and of those whose logits are wanted. */
static void tokens_build(struct ranks *ranks)
{
    struct inference_ranks *of = &ranks->inference;
    uint64_t shares[INFERENCE_PARTS];
    uint32_t const apart = of->apart == GRAPH_APART_TOKENS ? ranks_tp_d(ranks) : 1;
    uint32_t const ways = apart * ranks->cp;
    bool const in_parts = ranks->cp > 1;
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        shares[p] = units_ceil_divide(of->sequences[p], ways);
    struct most const own = most_of(ranks, shares, ways, in_parts, own_tokens_of);
    struct most const whole = most_of(ranks, of->sequences, 1, in_parts, tokens_of);
    of->tokens = apart * own.all;
    of->own_tokens = in_parts ? of->tokens : whole.all;
    of->prompt_tokens = whole.part[INFERENCE_PROMPTS];
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) of->part_tokens[p] = apart * own.part[p];
    of->head_rows = apart * most_of(ranks, shares, ways, in_parts, head_rows_of).all;
}

void inference_build(struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    uint64_t const window = ranks->plan->model.attends.window;
    struct inference_ranks *of = &ranks->inference;
    bool const generates = plan->generation.output != 0;
    *of = (struct inference_ranks){.pass = inference_pass_at(plan, ranks->pass),
                                   .all = inference_pass_sum(ranks->plan, ranks->pass)};
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        of->sequences[p] = data_share(ranks, span_of(ranks, (enum inference_part)p));
    inference_ways_build(ranks);
    kinds_build(ranks);
    of->begins = begins(ranks);
    uint32_t const keepers = inference_keepers(ranks);
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        of->kept[p] = units_ceil_divide(of->sequences[p], keepers);
    tokens_build(ranks);
    struct most const kept = most_of(ranks, of->kept, keepers, /* in_parts= */ false, tokens_of);
    of->kept_tokens = kept.all;
    memcpy(of->kept_part, kept.part, sizeof kept.part);
    of->kept_sequences = kept_all(ranks, INFERENCE_DECODES);
    if (!generates) of->kept_sequences += kept_all(ranks, INFERENCE_PROMPTS);
    fullest_find(ranks, /* windowed= */ false, UINT64_MAX);
    of->held_rows[0] = of->held_rows[1] = held_most(ranks, UINT64_MAX);
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) of->served[p][1] = of->served[p][0];
    if (window == 0) return; /* All layers see all keys. */
    fullest_find(ranks, /* windowed= */ true, window);
    of->held_rows[1] = held_most(ranks, window);
}

/* What a layer's terms have of a pass, in addition to its tokens: graph_terms.c. How the cache lies
 * is the same for all passes of a step. */
static bool layers_alike(const struct inference_ranks *one, const struct inference_ranks *other,
                         uint8_t attends)
{
    bool const windowed = (attends & ATTENDS_IN_WINDOW) != 0;
    bool alike =
        one->own_rows == other->own_rows && one->begins == other->begins &&
        one->prompts_stay == other->prompts_stay && one->kinds_apart == other->kinds_apart &&
        one->prompts_in_parts == other->prompts_in_parts && one->has_decodes == other->has_decodes;
    SIM_ASSERT(one->apart == other->apart && one->batch_ways == other->batch_ways &&
               one->sequence_ways == other->sequence_ways);
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        alike = alike && one->part_tokens[p] == other->part_tokens[p] &&
                one->kept_part[p] == other->kept_part[p] &&
                memcmp(&one->served[p][windowed], &other->served[p][windowed],
                       sizeof(struct graph_served)) == 0;
    return alike;
}

bool inference_alike(const struct inference_ranks *one, const struct inference_ranks *other,
                     enum block_part part, uint8_t attends)
{
    if (part == BLOCK_LAYER && !layers_alike(one, other, attends)) return false;
    if (part == BLOCK_HEAD &&
        (one->head_rows != other->head_rows || one->all.head_rows != other->all.head_rows))
        return false;
    return one->tokens == other->tokens && one->kept_tokens == other->kept_tokens &&
           one->all.tokens == other->all.tokens;
}
