/*
 * What some sequences of a pass ask of attention: scores, and rows of the cache. Ranks of cp have a
 * part of each prompt: one from either end, or one. Prompts are padded so that all parts are as
 * long, and each rank is charged the scores of one in the middle, or of the last, which has most of
 * them.
 *
 * A query sees the keys before it and its own, in a layer with a window of w the last w of these.
 * A sequence with q queries and k keys altogether has q·(k - q) + q·(q + 1)/2 scores.
 */
#include "sim/base/units.h"
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

units_wide inference_sequence_scores(const struct workload_plan *plan, struct inference_sequence of)
{
    return scores_of(plan, of, UINT64_MAX);
}

/* Of a head in a layer, of all sequences. */
units_wide inference_scores_all(const struct workload_plan *plan, uint32_t pass,
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
    uint64_t const windowed = model_window_layers(model, UINT64_MAX);
    units_wide const scores =
        (model->layers - windowed) * inference_scores_all(plan, pass, part, UINT64_MAX);
    if (windowed == 0) return scores;
    return scores + windowed * inference_scores_all(plan, pass, part, model->attends.window);
}

/* Rows of the cache that some query of the sequence sees. */
static uint64_t rows_of(struct inference_sequence of, uint64_t window)
{
    uint64_t const seen = window - 1 > of.keys ? of.keys : window - 1 + of.queries;
    return units_smaller(seen, of.keys);
}

uint64_t inference_held(const struct inference_plan *plan, struct inference_span span,
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
    return inference_held(&plan->inference, inference_span_all(&plan->inference, part),
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

struct graph_served inference_served(const struct ranks *ranks, struct inference_span span,
                                     uint64_t window)
{
    bool const in_parts = span.part == INFERENCE_PROMPTS && attends_in_parts(ranks);
    return in_parts ? in_parts_of(ranks, span, window)
                    : parts_of(served_of(ranks, span, window),
                               inference_attending_parts(ranks, span.part));
}
