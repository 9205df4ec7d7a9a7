/*
 * A prompt that is longer than a chunk goes through several passes: each has the next chunk of
 * every prompt that has one left, behind what is cached and what came before. Where stages work on
 * batches of their own, each batch goes through all of its passes, and then the next one does. A
 * batch whose prompts are shorter than others' has its first passes empty: all end in a head.
 */
#include "sim/step/inference_sequences.h"

#include "sim/base/units.h"
#include "sim/step/workload.h"

uint64_t inference_count(const struct inference_plan *plan, enum inference_part part)
{
    bool const generates = plan->generation.output != 0;
    return part == INFERENCE_DECODES && !generates ? plan->decodes.count : plan->prompts.count;
}

struct inference_span inference_span_all(const struct inference_plan *plan,
                                         enum inference_part part)
{
    return (struct inference_span){part, 0, inference_count(plan, part)};
}

/* Of some prompts alone. */
static uint32_t passes_of(const struct inference_plan *plan, struct inference_span span)
{
    const struct inference_prompts *prompts = &plan->prompts;
    uint64_t const end = prompts->tokens.count == 1 ? span.first + 1 : span.end;
    uint64_t longest = 0;
    if (prompts->count == 0 || prompts->chunk == 0) return 1;
    for (uint64_t i = span.first; i < end; i++)
        longest = units_larger(longest, inference_length_at(&prompts->tokens, i));
    return (uint32_t)units_ceil_divide(longest, prompts->chunk);
}

static uint32_t prefill_passes(const struct inference_plan *plan)
{
    const struct inference_prompts *prompts = &plan->prompts;
    if (prompts->count > 0 && prompts->chunk != 0 && prompts->tokens.longest != 0)
        return (uint32_t)units_ceil_divide(prompts->tokens.longest, prompts->chunk);
    return passes_of(plan, inference_span_all(plan, INFERENCE_PROMPTS));
}

/* Of a batch, whose prefill has so many. */
static uint32_t batch_passes(const struct inference_plan *plan, uint32_t prefill)
{
    const struct inference_generation *generation = &plan->generation;
    bool const both = generation->output != 0 && generation->played == INFERENCE_ENDS;
    return generation->played == INFERENCE_STEP ? 1 : prefill + both;
}

uint32_t inference_batch_passes(const struct inference_plan *plan)
{
    return batch_passes(plan, prefill_passes(plan));
}

void inference_stages_set(struct workload_plan *plan, uint32_t stages)
{
    plan->inference.stages = stages;
}

uint32_t inference_batch_count(const struct inference_plan *plan)
{
    uint64_t const stages = plan->stages > 1 ? plan->stages : 1;
    if (plan->decodes.count > 0 || plan->prompts.count > stages) return (uint32_t)stages;
    return plan->prompts.count > 0 ? (uint32_t)plan->prompts.count : 1;
}

/* A number above INFERENCE_PASSES_MAX is refused, so that one beyond 32 bits may be any of these.
 */
uint32_t inference_pass_count(const struct workload_plan *plan)
{
    uint64_t const passes = (uint64_t)inference_batch_count(&plan->inference) *
                            inference_batch_passes(&plan->inference);
    return (uint32_t)units_smaller(passes, UINT32_MAX);
}

/* Each has as many as another, or one more. */
struct inference_span inference_span_of(const struct inference_plan *plan, enum inference_part part,
                                        uint32_t batch)
{
    uint32_t const batches = inference_batch_count(plan);
    units_wide const count = inference_count(plan, part);
    return (struct inference_span){part, (uint64_t)(count * batch / batches),
                                   (uint64_t)(count * (batch + 1) / batches)};
}

struct inference_span inference_span_in(const struct inference_plan *plan, enum inference_part part,
                                        const struct inference_pass *pass)
{
    return pass->whole ? inference_span_all(plan, part)
                       : inference_span_of(plan, part, pass->batch);
}

/* Steps of a generation are behind the prefill. */
struct inference_pass inference_pass_at(const struct inference_plan *plan, uint32_t index)
{
    const struct inference_generation *generation = &plan->generation;
    bool const generates = generation->output != 0;
    uint32_t const prefill = prefill_passes(plan), passes = batch_passes(plan, prefill);
    uint32_t const batch = index / passes;
    /* A batch alone has the longest prompt. */
    bool const alone = inference_batch_count(plan) == 1;
    struct inference_span const span = inference_span_of(plan, INFERENCE_PROMPTS, batch);
    uint32_t const empty = alone ? 0 : prefill - passes_of(plan, span);
    index %= passes;
    bool const prompts = generation->played != INFERENCE_STEP && (!generates || index < prefill);
    return (struct inference_pass){.index = prompts && index >= empty ? index - empty : index,
                                   .batch = batch,
                                   .has = {[INFERENCE_DECODES] = !generates || !prompts,
                                           [INFERENCE_PROMPTS] = prompts && index >= empty}};
}

struct inference_pass inference_pass_whole(const struct inference_plan *plan)
{
    enum inference_played const played = plan->generation.played;
    return (struct inference_pass){.whole = true,
                                   .has = {[INFERENCE_DECODES] = played != INFERENCE_PREFILL,
                                           [INFERENCE_PROMPTS] = played != INFERENCE_STEP}};
}

/* Of a batch's passes with prompts, one that is neither of the first two nor the last. */
static bool is_between(const struct inference_plan *plan, uint32_t pass)
{
    struct inference_pass const at = inference_pass_at(plan, pass);
    uint32_t const in_batch = pass % inference_batch_passes(plan);
    return at.has[INFERENCE_PROMPTS] && at.index >= 2 && in_batch + 1 < prefill_passes(plan);
}

bool inference_pass_is_empty(const struct workload_plan *plan, uint32_t pass)
{
    if (plan->inference.samples_passes && is_between(&plan->inference, pass)) return true;
    return inference_pass_sum(plan, pass).tokens == 0;
}

uint32_t inference_head_passes(const struct workload_plan *plan)
{
    uint32_t const passes = inference_pass_count(plan);
    uint32_t count = 0;
    for (uint32_t p = 0; p < passes; p++) count += inference_pass_sum(plan, p).head_rows > 0;
    return count;
}

struct inference_sum inference_span_sum(const struct inference_plan *plan,
                                        const struct inference_pass *pass,
                                        struct inference_span span)
{
    struct inference_sum sum = {.sequences = 0};
    struct inference_sequence of;
    for (uint64_t i = span.first; i < span.end; i += of.times) {
        of = inference_sequence_at(plan, pass, span, i);
        if (of.queries == 0) continue;
        sum.sequences += of.times;
        sum.tokens += of.times * of.queries;
        sum.context_tokens += of.times * of.keys;
        sum.head_rows += of.times * of.head_rows;
    }
    return sum;
}

static struct inference_sum part_sum(const struct workload_plan *plan,
                                     const struct inference_pass *pass, enum inference_part part)
{
    const struct inference_plan *of = &plan->inference;
    return inference_span_sum(of, pass, inference_span_in(of, part, pass));
}

struct inference_sum inference_sum(const struct workload_plan *plan, enum inference_part part)
{
    struct inference_pass const whole = inference_pass_whole(&plan->inference);
    return part_sum(plan, &whole, part);
}

/* In a generation both kinds are the same sequences. */
static struct inference_sum parts_sum(const struct workload_plan *plan,
                                      const struct inference_pass *pass)
{
    struct inference_sum const decodes = part_sum(plan, pass, INFERENCE_DECODES),
                               prompts = part_sum(plan, pass, INFERENCE_PROMPTS);
    struct inference_sum sum = {
        decodes.sequences + prompts.sequences, decodes.tokens + prompts.tokens,
        decodes.context_tokens + prompts.context_tokens, decodes.head_rows + prompts.head_rows};
    if (plan->inference.generation.output == 0) return sum;
    sum.sequences = units_larger(decodes.sequences, prompts.sequences);
    sum.context_tokens = units_larger(decodes.context_tokens, prompts.context_tokens);
    return sum;
}

struct inference_sum inference_sum_all(const struct workload_plan *plan)
{
    struct inference_pass const whole = inference_pass_whole(&plan->inference);
    return parts_sum(plan, &whole);
}

struct inference_sum inference_pass_sum(const struct workload_plan *plan, uint32_t pass)
{
    struct inference_pass const at = inference_pass_at(&plan->inference, pass);
    return parts_sum(plan, &at);
}

uint64_t inference_keys_most_of(const struct workload_plan *plan, enum inference_part part)
{
    const struct inference_plan *of = &plan->inference;
    struct inference_pass const whole = inference_pass_whole(of);
    struct inference_span const span = inference_span_all(of, part);
    struct inference_sequence sequence;
    uint64_t most = 0;
    for (uint64_t i = 0; i < span.end; i += sequence.times) {
        sequence = inference_sequence_at(of, &whole, span, i);
        most = units_larger(most, sequence.keys);
    }
    return most;
}

uint64_t inference_keys_most(const struct workload_plan *plan)
{
    return units_larger(inference_keys_most_of(plan, INFERENCE_DECODES),
                        inference_keys_most_of(plan, INFERENCE_PROMPTS));
}
