/*
 * inference.h: what a step of inference is asked for, and how its sequences lie on ranks. A prefill
 * is the forward pass of prompts, a decode that of a token or a few of each sequence; in both, keys
 * and values stay in a cache.
 */
#ifndef SIM_STEP_INFERENCE_H
#define SIM_STEP_INFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"
#include "sim/graph/terms.h"

struct ranks;
struct workload_plan;

enum workload_kind { WORKLOAD_TRAIN_STEP, WORKLOAD_PREFILL, WORKLOAD_DECODE };

/* Tokens of each of some sequences. */
struct inference_lengths {
    const uint64_t *tokens;
    uint32_t count; /* 1: all sequences are alike. */
};

/* Ranks of tp: heads·batch·sequence of them. By heads the cache lies as keys and values are
 * computed; those with the same heads keep some sequences each, or a part of each, or all. */
enum inference_sharding { INFERENCE_AUTO, INFERENCE_REPLICATED, INFERENCE_GIVEN };
struct inference_ways {
    enum inference_sharding sharding;
    uint32_t heads, batch, sequence; /* GIVEN. */
};

struct inference_plan {
    uint64_t batch;                   /* Sequences. */
    struct inference_lengths context; /* DECODE: tokens in the cache, the new ones among them. */
    uint64_t new_tokens;              /* DECODE: of each sequence. */
    struct inference_lengths prompt;  /* PREFILL: tokens of each prompt. */
    uint64_t cached;                  /* PREFILL: tokens of each prompt whose keys and values are
                                         there already. */
    struct inference_ways ways;
    enum format cache; /* Format of keys and values that stay. */
};

/* What the rank has that has most of it, which the others wait for. */
struct inference_ranks {
    uint64_t sequences;
    uint32_t batch_ways, sequence_ways; /* As struct graph_cache has them. */
    uint64_t tokens;                    /* Of the pass. */
    uint64_t head_rows;                 /* Tokens whose logits are wanted. */
    struct graph_served served[2];      /* [windowed] */
};

/* The sequences of a plan that is not of training, on its data ranks. */
void inference_build(const struct ranks *ranks, struct inference_ranks *ret_inference);

/* Errors: a cache that lies otherwise than its ranks can have it. */
enum status inference_ways_check(const struct ranks *ranks, struct error *reterr);

/* Of a rank's experts those that the tokens of all ranks of ep ask for, if each token asks for any
 * k of E: E·(1 - (1 - k/E)^tokens) of all, rounded up. */
uint64_t inference_experts_read(const struct ranks *ranks);

/* Bytes of the cache on a chip, all layers. */
uint64_t inference_cache_bytes(const struct ranks *ranks);

/* Tokens of the pass, and in the cache behind it, of all sequences. */
uint64_t inference_tokens(const struct workload_plan *plan);
uint64_t inference_context_tokens(const struct workload_plan *plan);
/* Tokens of all sequences whose logits are wanted. */
uint64_t inference_head_rows(const struct workload_plan *plan);

/* Tokens of the longest sequence, with those of the cache. */
uint64_t inference_keys_most(const struct workload_plan *plan);

#endif
