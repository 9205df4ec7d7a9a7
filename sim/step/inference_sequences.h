/*
 * inference_sequences.h: the sequences of a plan of inference one by one, in each of its passes.
 * Internal to sim/step.
 */
#ifndef SIM_STEP_INFERENCE_SEQUENCES_H
#define SIM_STEP_INFERENCE_SEQUENCES_H

#include "sim/base/units.h"
#include "sim/step/inference.h"

struct inference_sequence {
    uint64_t queries;   /* New tokens; 0: the sequence is not in the pass. */
    uint64_t keys;      /* Tokens in the cache behind the pass. */
    uint64_t head_rows; /* New tokens whose logits are wanted. */
    uint64_t times;     /* How many sequences from here on are alike. */
};

/* Sequences of one kind, from `first` to before `end`. */
struct inference_span {
    enum inference_part part;
    uint64_t first, end;
};

uint64_t inference_count(const struct inference_plan *plan, enum inference_part part);
struct inference_span inference_span_all(const struct inference_plan *plan,
                                         enum inference_part part);
/* Sequences of a batch in flight; sequences of a pass. */
struct inference_span inference_span_of(const struct inference_plan *plan, enum inference_part part,
                                        uint32_t batch);
struct inference_span inference_span_in(const struct inference_plan *plan, enum inference_part part,
                                        const struct inference_pass *pass);
struct inference_pass inference_pass_at(const struct inference_plan *plan, uint32_t index);
struct inference_pass inference_pass_whole(const struct inference_plan *plan);
struct inference_sum inference_span_sum(const struct inference_plan *plan,
                                        const struct inference_pass *pass,
                                        struct inference_span span);

/* Attention (inference_served.c), in layers with a window, or with UINT64_MAX without. Scores of a
 * head in a layer: of one sequence, without a window; of all sequences of a pass. */
units_wide inference_sequence_scores(const struct workload_plan *plan,
                                     struct inference_sequence of);
units_wide inference_scores_all(const struct workload_plan *plan, uint32_t pass,
                                enum inference_part part, uint64_t window);
/* Rows of some sequences that stay behind the step. An array with a window has as many rows as a
 * pass of a whole chunk sees: there has to be room for them, though the last pass may see fewer. */
uint64_t inference_held(const struct inference_plan *plan, struct inference_span span,
                        uint64_t window);
/* What a rank that keeps some sequences, or a part of each, attends to in the pass. */
struct graph_served inference_served(const struct ranks *ranks, struct inference_span span,
                                     uint64_t window);

/* Data ranks that have sequences of their own: ranks of cp share theirs. */
uint64_t inference_sharers(const struct ranks *ranks);
/* Whether a data rank is one that may have most. */
bool inference_is_charged(const struct ranks *ranks, uint64_t data);
/* What the n-th of all ranks that keep different sequences attends to in the pass. */
struct graph_served inference_served_at(const struct ranks *ranks, enum inference_part part,
                                        uint64_t n, uint64_t window);

/* --- One sequence: inline, as a plan may have a million of them --- */

static inline uint64_t inference_length_at(const struct lengths *lengths, uint64_t sequence)
{
    return lengths->tokens[lengths->count == 1 ? 0 : sequence];
}

/* Lengths of a kind of sequences. A generation's decodes are its prompts, longer by their answers.
 */
static inline const struct lengths *inference_lengths_of(const struct inference_plan *plan,
                                                         enum inference_part part)
{
    bool const generates = plan->generation.output != 0;
    return part == INFERENCE_DECODES && !generates ? &plan->decodes.context : &plan->prompts.tokens;
}

static inline struct inference_sequence inference_decode_of(const struct inference_plan *plan,
                                                            uint64_t length, uint64_t times)
{
    uint64_t const fresh = plan->decodes.new_tokens;
    if (plan->generation.output == 0)
        return (struct inference_sequence){fresh, length, fresh, times};
    uint64_t const before = plan->prompts.cached + plan->generation.step;
    return (struct inference_sequence){1, before + length, 1, times};
}

/* The sequence at a place of a span; the next one that differs is `times` places further. Logits
 * are wanted of decodes, and of the last token of a prompt. */
static inline struct inference_sequence inference_sequence_at(const struct inference_plan *plan,
                                                              const struct inference_pass *pass,
                                                              struct inference_span span,
                                                              uint64_t index)
{
    const struct inference_prompts *prompts = &plan->prompts;
    const struct lengths *lengths = inference_lengths_of(plan, span.part);
    uint64_t const length = inference_length_at(lengths, index);
    uint64_t const times = lengths->count == 1 ? span.end - index : 1;
    if (!pass->has[span.part]) return (struct inference_sequence){.times = times};
    if (span.part == INFERENCE_DECODES) return inference_decode_of(plan, length, times);
    bool const whole = pass->whole || prompts->chunk == 0;
    uint64_t const before = whole ? 0 : units_smaller(pass->index * prompts->chunk, length);
    uint64_t const queries = whole ? length : units_smaller(prompts->chunk, length - before);
    return (struct inference_sequence){.queries = queries,
                                       .keys = prompts->cached + before + queries,
                                       .head_rows = queries > 0 && before + queries == length,
                                       .times = times};
}

#endif
