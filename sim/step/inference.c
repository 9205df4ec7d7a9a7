/*
 * Sequences of a pass on ranks that each have as many of each kind, one after the other; the last
 * rank may have fewer. All ranks step together, so each is charged the rows of the one that has
 * most, and the attention of the one that attends longest. Where stages have batches of their own
 * and nothing couples the replicas of the model, no replica waits for another before the step's
 * end. Then all batches are those of the slowest replica (replicas.c).
 *
 * Ranks of tp_d have partial sums of the same queries, keys and values. Where each attends with
 * some of the sequences they are made to have equally many tokens, as frameworks pad a batch.
 *
 * Ranks of cp each have some of the decodes, and a part of each prompt.
 */
#include "sim/step/inference.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/step/inference_sequences.h"
#include "sim/step/ranks.h"

const char *const workload_kind_names[] = {
#define X(kind, word) #word,
    WORKLOAD_KIND_TABLE(X)
#undef X
        NULL};

static const struct inference_plan *plan_of(const struct ranks *ranks)
{
    return &ranks->plan->inference;
}

uint64_t inference_sharers(const struct ranks *ranks)
{
    return ranks->data / ranks->cp;
}

/* Of a batch. */
static uint64_t data_share(const struct ranks *ranks, struct inference_span batch)
{
    return units_ceil_divide(batch.end - batch.first, inference_sharers(ranks));
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

bool inference_is_charged(const struct ranks *ranks, uint64_t data)
{
    const struct inference_replicas *replicas = &ranks->inference.charged;
    return !replicas->apart || replicas->replica == data;
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
    for (uint64_t n = 0; n < inference_sharers(ranks) * ways; n++) {
        uint64_t all = 0;
        if (!inference_is_charged(ranks, n / ways)) continue;
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

/* The sequences of a rank that it attends to itself: where ranks with the same heads keep some
 * prompts each, and attend to all, those of all of them. */
static struct inference_span attended_at(const struct ranks *ranks, enum inference_part part,
                                         uint64_t n)
{
    struct inference_span const batch = span_of(ranks, part);
    uint32_t const keepers = inference_keepers(ranks);
    uint32_t const attending = inference_attending_keepers(ranks, part);
    uint64_t const share = units_ceil_divide(data_share(ranks, batch), attending);
    return span_at(ranks, batch, n / keepers, share, n % keepers / (keepers / attending));
}

struct graph_served inference_served_at(const struct ranks *ranks, enum inference_part part,
                                        uint64_t n, uint64_t window)
{
    return inference_served(ranks, attended_at(ranks, part, n), window);
}

/* Rows that stay of all batches, on the rank that keeps most. A generation's sequences are the same
 * of both kinds. */
static uint64_t held_most(const struct ranks *ranks, uint64_t window)
{
    const struct inference_plan *plan = plan_of(ranks);
    uint64_t most = 0;
    for (uint64_t n = 0; n < inference_sharers(ranks) * inference_keepers(ranks); n++) {
        uint64_t rows[INFERENCE_PARTS] = {0};
        for (uint32_t i = 0; i < INFERENCE_PARTS * inference_batch_count(plan); i++) {
            enum inference_part const part = (enum inference_part)(i % INFERENCE_PARTS);
            struct inference_span const batch = inference_span_of(plan, part, i / INFERENCE_PARTS);
            rows[part] += units_ceil_divide(inference_held(plan, kept_at(ranks, batch, n), window),
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

/* Whether a rank attends to all rows of prompts that it has tokens of: ranks of cp gather those of
 * all. */
static bool attends_to_own_rows(const struct ranks *ranks)
{
    return inference_attending_parts(ranks, INFERENCE_PROMPTS) == ranks->cp;
}

/* Whether a step has prompts alone, which attend to nothing before their pass, so that latents are
 * not absorbed. Layers have other matrices then, so all passes of a step do it, or none. */
static bool begins(const struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    return plan->decodes.count == 0 && ranks->inference.pass.has[INFERENCE_PROMPTS] &&
           plan->prompts.cached == 0 && inference_batch_passes(plan) == 1 &&
           attends_to_own_rows(ranks);
}

/* Who is in the pass, and how far it goes back. Ranks of tp with the same heads have all computed
 * the rows of the pass: without earlier ones, of which each has a part, prompts stay. They do not
 * where layers borrow the rows of another one, of which each rank has kept its part. */
static void kinds_build(struct ranks *ranks)
{
    struct inference_ranks *of = &ranks->inference;
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        of->part[p].all = tokens_of(ranks, span_of(ranks, (enum inference_part)p));
    bool const prompts = of->part[INFERENCE_PROMPTS].all > 0;
    bool const decodes = of->part[INFERENCE_DECODES].all > 0;
    bool const first = plan_of(ranks)->prompts.cached == 0 && of->pass.index == 0;
    bool const latents = ranks->plan->model.mla.kv_rank != 0;
    of->prompts_in_parts = ranks->cp > 1 && prompts;
    of->has_decodes = ranks->cp > 1 && decodes;
    of->prompts_stay = prompts && first && of->batch_ways * of->sequence_ways > 1 &&
                       model_borrowing_layers(&ranks->plan->model) == 0;
    of->own_rows = of->prompts_in_parts && first;
    of->makes_heads = latents && prompts && decodes && first && attends_to_own_rows(ranks);
    of->kinds_apart =
        prompts && decodes &&
        (of->prompts_stay || of->makes_heads || (ranks->cp > 1 && !ranks_has_ulysses(ranks)));
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
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) of->part[p].own = apart * own.part[p];
    of->head_rows = apart * most_of(ranks, shares, ways, in_parts, head_rows_of).all;
}

/* Whether replicas wait for one another in no pass: tokens go to other ranks' experts, and weights
 * come from other ranks. */
static bool are_coupled(const struct ranks *ranks)
{
    return ranks->mesh->axis[MESH_EP].size > 1 || ranks->shards > 1;
}

/* The sequences of a data rank in a batch. */
static struct inference_span own_at(const struct ranks *ranks, enum inference_part part,
                                    uint32_t batch, uint64_t data)
{
    struct inference_span const all = inference_span_of(plan_of(ranks), part, batch);
    return span_at(ranks, all, data, data_share(ranks, all), 0);
}

bool inference_replica_has_all(const struct ranks *ranks, uint64_t replica)
{
    const struct inference_plan *plan = plan_of(ranks);
    for (uint32_t i = 0; i < INFERENCE_PARTS * inference_batch_count(plan); i++) {
        enum inference_part const part = (enum inference_part)(i % INFERENCE_PARTS);
        uint32_t const batch = i / INFERENCE_PARTS;
        struct inference_pass const pass = inference_pass_at(plan, batch);
        struct inference_span const all = inference_span_of(plan, part, batch),
                                    own = own_at(ranks, part, batch, replica);
        if (pass.has[part] && all.end > all.first && own.end == own.first) return false;
    }
    return true;
}

static void amounts_of(const struct ranks *ranks, uint64_t data, uint32_t batch,
                       units_wide amounts[INFERENCE_AMOUNTS])
{
    const struct inference_plan *plan = plan_of(ranks);
    struct inference_pass const pass = inference_pass_at(plan, batch);
    for (uint32_t a = 0; a < INFERENCE_AMOUNTS; a++) amounts[a] = 0;
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
        struct inference_span const own = own_at(ranks, (enum inference_part)p, batch, data);
        struct inference_sequence of;
        for (uint64_t i = own.first; pass.has[p] && i < own.end; i += of.times) {
            of = inference_sequence_at(plan, &pass, own, i);
            amounts[INFERENCE_TOKENS] += (units_wide)of.queries * of.times;
            amounts[INFERENCE_SCORES] += inference_sequence_scores(ranks->plan, of) * of.times;
            amounts[INFERENCE_ROWS_READ] += (units_wide)of.keys * of.times;
        }
    }
}

/* Amounts of a data rank in all batches together, and behind them those of its fullest batch. */
static void fullest_of(const struct ranks *ranks, uint64_t data,
                       units_wide ret_fullest[INFERENCE_FULLEST])
{
    for (uint32_t i = 0; i < INFERENCE_FULLEST; i++) ret_fullest[i] = 0;
    for (uint32_t b = 0; b < inference_batch_count(plan_of(ranks)); b++) {
        units_wide amounts[INFERENCE_AMOUNTS];
        amounts_of(ranks, data, b, amounts);
        for (uint32_t a = 0; a < INFERENCE_AMOUNTS; a++) {
            units_wide *const most = &ret_fullest[INFERENCE_AMOUNTS + a];
            ret_fullest[a] += amounts[a];
            if (amounts[a] > *most) *most = amounts[a];
        }
    }
}

static bool is_ragged(const struct inference_plan *plan)
{
    return plan->decodes.context.count > 1 || plan->prompts.tokens.count > 1;
}

void inference_replicas_find(struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    struct inference_replicas found = {
        .apart = inference_batch_count(plan) > 1 && inference_sharers(ranks) > 1 &&
                 inference_batch_passes(plan) == 1 && !are_coupled(ranks),
        .ragged = is_ragged(plan)};
    units_wide most[INFERENCE_FULLEST] = {0};
    for (uint64_t data = 0; found.apart && data < inference_sharers(ranks); data++) {
        units_wide fullest[INFERENCE_FULLEST];
        fullest_of(ranks, data, fullest);
        for (uint32_t i = 0; i < INFERENCE_FULLEST; i++) {
            if (fullest[i] <= most[i]) continue;
            most[i] = fullest[i];
            found.fullest[i] = data;
        }
    }
    found.replica = found.fullest[INFERENCE_ROWS_READ];
    for (uint32_t a = 0; a < INFERENCE_AMOUNTS; a++)
        found.apart = found.apart && inference_replica_has_all(ranks, found.fullest[a]);
    ranks->inference.charged = found;
}

void inference_build(struct ranks *ranks)
{
    const struct inference_plan *plan = plan_of(ranks);
    uint64_t const window = ranks->plan->model.attends.window;
    struct inference_ranks *of = &ranks->inference;
    bool const generates = plan->generation.output != 0;
    *of = (struct inference_ranks){.charged = of->charged,
                                   .pass = inference_pass_at(plan, ranks->pass.index),
                                   .all = inference_pass_sum(ranks->plan, ranks->pass.index)};
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
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++) of->part[p].kept = kept.part[p];
    of->kept_sequences = kept_all(ranks, INFERENCE_DECODES);
    if (!generates) of->kept_sequences += kept_all(ranks, INFERENCE_PROMPTS);
    of->held_rows[0] = of->held_rows[1] = held_most(ranks, UINT64_MAX);
    if (window != 0) of->held_rows[1] = held_most(ranks, window); /* Else layers see all keys. */
}

/* What a layer's terms have of a pass, in addition to its tokens: graph_terms.c. How the cache lies
 * is the same for all passes of a step. */
static bool layers_alike(const struct inference_ranks *one, const struct inference_ranks *other,
                         bool windowed)
{
    bool alike = one->own_rows == other->own_rows && one->begins == other->begins &&
                 one->prompt_rows[windowed] == other->prompt_rows[windowed] &&
                 one->prompts_stay == other->prompts_stay &&
                 one->kinds_apart == other->kinds_apart && one->makes_heads == other->makes_heads &&
                 one->prompts_in_parts == other->prompts_in_parts &&
                 one->has_decodes == other->has_decodes;
    SIM_ASSERT(one->apart == other->apart && one->batch_ways == other->batch_ways &&
               one->sequence_ways == other->sequence_ways);
    for (uint32_t p = 0; p < INFERENCE_PARTS; p++)
        alike = alike && one->part[p].own == other->part[p].own &&
                one->part[p].all == other->part[p].all &&
                one->part[p].kept == other->part[p].kept &&
                memcmp(&one->served[p][windowed], &other->served[p][windowed],
                       sizeof(struct graph_served)) == 0;
    return alike;
}

bool inference_alike(const struct inference_ranks *one, const struct inference_ranks *other,
                     enum block_part part, struct layer_kind layer)
{
    if (part == BLOCK_LAYER && !layers_alike(one, other, layer.windowed)) return false;
    if (part == BLOCK_HEAD &&
        (one->head_rows != other->head_rows || one->all.head_rows != other->all.head_rows))
        return false;
    return one->tokens == other->tokens && one->kept_tokens == other->kept_tokens &&
           one->all.tokens == other->all.tokens;
}
