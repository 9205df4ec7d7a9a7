/*
 * inference_sequences.h: the sequences of a plan of inference one by one, in each of its passes.
 * Internal to sim/step.
 */
#ifndef SIM_STEP_INFERENCE_SEQUENCES_H
#define SIM_STEP_INFERENCE_SEQUENCES_H

#include "sim/step/inference.h"

struct inference_sequence {
    uint64_t queries;   /* New tokens; 0: it is not in the pass. */
    uint64_t keys;      /* In the cache behind the pass. */
    uint64_t head_rows; /* New tokens whose logits are wanted. */
    uint64_t times;     /* Sequences alike from here on. */
};

/* Sequences of one kind, from one to before another. */
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
/* To go through a span: the next is `times` further. */
struct inference_sequence inference_sequence_at(const struct inference_plan *plan,
                                                const struct inference_pass *pass,
                                                struct inference_span span, uint64_t index);
struct inference_sum inference_span_sum(const struct inference_plan *plan,
                                        const struct inference_pass *pass,
                                        struct inference_span span);

#endif
