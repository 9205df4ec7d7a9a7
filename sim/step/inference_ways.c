/* How a cache lies on ranks of tp and of tp_d: by heads, by sequences, by parts of these. */
#include "sim/base/counted.h"
#include "sim/base/units.h"
#include "sim/graph/block.h"
#include "sim/step/graph_terms.h"
#include "sim/step/inference.h"
#include "sim/step/inference_sequences.h"
#include "sim/step/ranks.h"

static const struct inference_plan *plan_of(const struct ranks *ranks)
{
    return &ranks->plan->inference;
}

/* With Ulysses a rank keeps some heads of whole sequences. */
static uint32_t context_parts(const struct ranks *ranks)
{
    return ranks_has_ulysses(ranks) ? 1 : ranks->cp;
}

uint32_t inference_keepers(const struct ranks *ranks)
{
    const struct inference_ranks *of = &ranks->inference;
    return of->batch_ways * (of->apart == GRAPH_APART_TOKENS ? ranks_tp_d(ranks) : 1);
}

uint32_t inference_parts(const struct ranks *ranks)
{
    const struct inference_ranks *of = &ranks->inference;
    return of->sequence_ways * (of->apart == GRAPH_APART_ROWS ? ranks_tp_d(ranks) : 1) *
           context_parts(ranks);
}

static bool stays(const struct ranks *ranks, enum inference_part part)
{
    return part == INFERENCE_PROMPTS && ranks->inference.prompts_stay;
}

uint32_t inference_attending_keepers(const struct ranks *ranks, enum inference_part part)
{
    return inference_keepers(ranks) / (stays(ranks, part) ? ranks->inference.batch_ways : 1);
}

uint32_t inference_attending_parts(const struct ranks *ranks, enum inference_part part)
{
    return inference_parts(ranks) / (stays(ranks, part) ? ranks->inference.sequence_ways : 1);
}

static uint32_t holders_of(const struct ranks *ranks)
{
    return (uint32_t)group_rank_count(&ranks->heads.group);
}

/* Whether each rank of tp_d can have some of a rank of tp's heads of keys. Of latent attention,
 * whose heads all read the same rows, they have some of its queries' heads. */
static bool heads_divide(const struct ranks *ranks)
{
    if (ranks_has_mla(ranks)) return ranks->heads.queries % ranks_tp_d(ranks) == 0;
    return holders_of(ranks) == 1 && ranks->heads.kv % ranks_tp_d(ranks) == 0;
}

/* Of a data rank, in a batch. */
static uint64_t sequences_of(const struct ranks *ranks, enum inference_part part, uint32_t batch)
{
    struct inference_span const span = inference_span_of(plan_of(ranks), part, batch);
    return units_ceil_divide(span.end - span.first, ranks->data / ranks->cp);
}

/* Whether each rank of tp_d can have sequences, and all as many tokens. Caches of all batches lie
 * alike. */
static bool sequences_divide(const struct ranks *ranks)
{
    bool divide = plan_of(ranks)->prompts.tokens.count <= 1; /* They are alike. */
    for (uint32_t b = 0; b < inference_batch_count(plan_of(ranks)); b++)
        for (uint32_t p = 0; p < INFERENCE_PARTS; p++) {
            uint64_t const sequences = sequences_of(ranks, (enum inference_part)p, b);
            divide = divide && (sequences == 0 || sequences >= ranks_tp_d(ranks));
        }
    return divide;
}

/* Of the batch that has fewest. */
static uint64_t decodes_least(const struct ranks *ranks)
{
    uint64_t least = sequences_of(ranks, INFERENCE_DECODES, 0);
    for (uint32_t b = 1; b < inference_batch_count(plan_of(ranks)); b++) {
        uint64_t const decodes = sequences_of(ranks, INFERENCE_DECODES, b);
        if (decodes < least) least = decodes;
    }
    return least;
}

/* What ranks of tp_d have: heads if what is given has more of them than tp, sequences if the ways
 * by batch have room for them. Heads split a cache as sequences do, and weights too; but all heads
 * of latent attention read the same rows, which sequences split, and parts of these. */
static enum graph_apart apart_of(const struct ranks *ranks)
{
    const struct inference_ways *ways = &plan_of(ranks)->ways;
    bool const alike = ways->sharding == INFERENCE_REPLICATED || !ranks_is_decoder(ranks);
    if (ranks_tp_d(ranks) == 1 || alike) return GRAPH_APART_NOTHING;
    bool const given = ways->sharding == INFERENCE_GIVEN;
    bool const sequences = given ? ways->batch % ranks_tp_d(ranks) == 0 : sequences_divide(ranks);
    bool const wanted = !ranks_has_mla(ranks) || (!sequences && decodes_least(ranks) == 0);
    bool const heads =
        given ? ways->heads > ranks->tp / holders_of(ranks) : wanted && heads_divide(ranks);
    return heads ? GRAPH_APART_HEADS : sequences ? GRAPH_APART_TOKENS : GRAPH_APART_ROWS;
}

/* Heads as far as they go; then, where there are decodes, sequences, if these are enough for the
 * ranks that are left, or parts of them. In a prefill ranks of tp with the same heads keep all:
 * they have computed the same keys and values, and each attends with its own queries. To share
 * would save room alone, and prompts behind earlier tokens would travel. Ranks of tp_d would attend
 * with the same queries. */
void inference_ways_build(struct ranks *ranks)
{
    const struct inference_ways *ways = &plan_of(ranks)->ways;
    struct inference_ranks *of = &ranks->inference;
    uint32_t const holders = holders_of(ranks);
    of->batch_ways = of->sequence_ways = 1;
    of->apart = apart_of(ranks);
    uint32_t const keepers = inference_keepers(ranks), parts = inference_parts(ranks);
    uint64_t const decodes = units_ceil_divide(decodes_least(ranks), keepers);
    /* A rank of cp has a part of each prompt, and no whole ones that it could give away. */
    bool const parted = ranks->cp > 1 && plan_of(ranks)->prompts.count > 0;
    bool const enough = decodes >= holders && of->apart != GRAPH_APART_ROWS && !parted;
    if (ways->sharding == INFERENCE_GIVEN) {
        of->batch_ways = ways->batch / keepers;
        of->sequence_ways = ways->sequence / (parts / context_parts(ranks));
    } else if (ways->sharding == INFERENCE_AUTO && decodes > 0 && !ranks_has_ulysses(ranks)) {
        *(enough ? &of->batch_ways : &of->sequence_ways) = holders;
    }
}

enum status inference_ways_check(const struct ranks *ranks, struct error *reterr)
{
    const struct inference_ways *ways = &plan_of(ranks)->ways;
    uint32_t const holders = holders_of(ranks), heads = ranks->tp / holders,
                   wide = ranks_tp_d(ranks);
    static const char where[] = "/workload/kv_sharding";
    if (ways->sharding != INFERENCE_GIVEN) return STATUS_OK;
    if ((uint64_t)ways->heads * ways->batch * ways->sequence != (uint64_t)ranks->tp * wide)
        return error_set(reterr, STATUS_INVALID, where,
                         "%u x %u x %u are not the %u ranks of %s; heads %u, batch %u, sequence 1 "
                         "are",
                         ways->heads, ways->batch, ways->sequence, ranks->tp * wide,
                         wide > 1 ? "tp and tp_d" : "tp", heads, holders * wide);
    bool const apart = wide > 1 && heads_divide(ranks);
    if (apart && ways->heads != heads && ways->heads != heads * wide)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "ranks of tp have the keys of %s of heads, of which those of tp_d can "
                         "have a part each, so that heads %u or %u is modelled here, not %u",
                         counted(heads, "different set").text, heads, heads * wide, ways->heads);
    if (!apart && ways->heads != heads)
        return error_set(
            reterr, STATUS_UNSUPPORTED, where,
            "ranks of tp compute the keys of %s of heads, so that heads %u is all that is "
            "modelled here, not %u",
            counted(heads, "different set").text, heads, ways->heads);
    if (ranks->cp > 1 && ways->batch > 1 && plan_of(ranks)->prompts.count > 0)
        return error_set(
            reterr, STATUS_UNSUPPORTED, where,
            "ranks of cp have a part of each prompt, and none that they could keep for "
            "others of tp; batch 1, sequence %u is modelled",
            ways->batch * ways->sequence);
    if ((ranks_has_ulysses(ranks) || ranks_has_ring(ranks)) && ways->batch * ways->sequence > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "with \"ring\" and \"ulysses\" a rank of tp attends with its own heads "
                         "alone; \"replicated\" is modelled");
    if (ways->batch > 1 && ways->sequence > 1 && (ways->batch != wide || ways->sequence != holders))
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "ranks of tp with the same heads share by batch or by sequence, and those "
                         "of tp_d by batch where both are; batch %u, sequence 1 is modelled",
                         ways->batch * ways->sequence);
    return STATUS_OK;
}

bool inference_prompts_spread(const struct ranks *ranks)
{
    const struct inference_ranks *of = &ranks->inference;
    return of->part[INFERENCE_PROMPTS].own > 0 && !of->prompts_stay &&
           of->batch_ways * of->sequence_ways > 1;
}

bool inference_prompts_summed(const struct ranks *ranks)
{
    const struct inference_ranks *of = &ranks->inference;
    return of->part[INFERENCE_PROMPTS].own > 0 && of->apart == GRAPH_APART_ROWS;
}

/* As wide as what the pass reads, with the rows that stay. */
uint64_t inference_cache_bytes(const struct ranks *ranks, uint64_t layer_first, uint64_t count)
{
    struct step_layers const layers = step_layers(ranks, layer_first, count);
    uint64_t bytes = 0;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++) {
        struct step_part const part = {.part = BLOCK_LAYER, .kind = kind};
        uint64_t const held = ranks->inference.held_rows[ranks->kinds.kind[kind].windowed];
        struct graph_terms terms;
        struct graph graph;
        graph_terms_of_part(ranks, &part, &terms);
        block_write_layer(&terms, &ranks->plan->model, &graph);
        for (uint8_t t = 0; t < graph.tensor_count; t++) {
            const struct sharding *at = &graph.tensor[t].at;
            bool const borrowed = graph.tensor[t].made_by == GRAPH_NONE;
            if (graph.tensor[t].role != GRAPH_CACHE || borrowed) continue;
            uint64_t const rows = sharding_local_size(&terms.mesh, &at->dimension[0]);
            uint64_t const elements = graph_elements(&graph, at, 0) / rows * held;
            bytes += layers.of[kind] * graph_tensor_bytes(&graph.tensor[t], elements);
        }
    }
    return bytes;
}
