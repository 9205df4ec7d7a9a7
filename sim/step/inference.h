/*
 * inference.h: what a step of inference is asked for, and how its sequences lie on ranks. A pass
 * has sequences, each with new tokens behind others whose keys and values are in a cache: decodes,
 * with a token or a few, and prompts, with many. A step of kind `decode` has only the first,
 * `prefill` only the second, and `mixed` has both. `generate` has both too, one behind the other.
 */
#ifndef SIM_STEP_INFERENCE_H
#define SIM_STEP_INFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/lengths.h"
#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/collective/chooser.h"
#include "sim/graph/block.h"
#include "sim/graph/terms.h"

struct ranks;
struct workload_plan;

#define WORKLOAD_KIND_TABLE(X)                                                                     \
    X(TRAIN_STEP, train_step)                                                                      \
    X(PREFILL, prefill)                                                                            \
    X(DECODE, decode)                                                                              \
    X(MIXED, mixed)                                                                                \
    X(GENERATE, generate)

enum workload_kind {
#define X(kind, word) WORKLOAD_##kind,
    WORKLOAD_KIND_TABLE(X)
#undef X
};
extern const char *const workload_kind_names[]; /* By enum workload_kind, ended by NULL. */

/* Ranks of tp and of tp_d: heads·batch·sequence of them. By heads the cache lies as keys and values
 * are computed; those with the same heads keep some sequences each, or a part of each, or all. */
enum inference_sharding { INFERENCE_AUTO, INFERENCE_REPLICATED, INFERENCE_GIVEN };
struct inference_ways {
    enum inference_sharding sharding;
    uint32_t heads, batch, sequence; /* GIVEN. */
};

/* How weights lie on ranks of dp. */
enum inference_weights { INFERENCE_STATIONARY, INFERENCE_GATHERED };

/* Sequences that get a token or a few. */
struct inference_decodes {
    uint64_t count;
    struct lengths context; /* Tokens in the cache, the new ones among them. */
    uint64_t new_tokens;    /* New tokens of each sequence. */
};

/* Sequences whose tokens are all there at once. */
struct inference_prompts {
    uint64_t count;
    struct lengths tokens; /* New ones of each. */
    uint64_t cached;       /* Tokens before these whose keys and values are in the cache already. */
    uint64_t chunk;        /* Tokens of each prompt in a pass, as long as there are some; 0: all. */
};

/* Where weights go that are read before the products that want them. */
enum inference_prefetch { INFERENCE_PREFETCH_NONE, INFERENCE_PREFETCH_VMEM };

/* Of a generation what is played: one behind the other, the prefill and the last step, which has
 * most in the cache; the prefill alone; a step alone. */
enum inference_played { INFERENCE_ENDS, INFERENCE_PREFILL, INFERENCE_STEP };

/* Prompts, and behind them steps in which each sequence gets one more token. */
struct inference_generation {
    uint64_t output; /* Steps; 0: it is no generation. */
    uint64_t page;   /* Steps that take as long as the last of them. */
    enum inference_played played;
    uint64_t step; /* The step that is played, counted from 1. */
};

struct inference_plan {
    /* Sequences that answer. A prefill has none, nor has a generation, as its prompts go on as
     * decodes: see inference_decode_count(). */
    struct inference_decodes decodes;
    struct inference_prompts prompts; /* Sequences that are read. A decode has none. */
    struct inference_generation generation;
    struct inference_ways ways;
    enum inference_weights weights;
    uint32_t stages; /* Of the mesh, see inference_stages_set(). */
    /* Of a batch's passes with prompts the first two and the last alone are lowered: what a chip
     * holds in them is about the most that it ever holds. */
    bool samples_passes;
    enum format cache; /* Format of keys and values that stay. */
    enum format head;  /* The format of the head's matrix. */
    bool whole_units;  /* A core of a chip takes all keys of a sequence and head. */
    enum inference_prefetch prefetch;
    /* What chooses for "auto"; none: the shape does, as in training. */
    struct plan_chooser chooser;
};

/* Of some sequences, in a pass or in all passes of the step. */
struct inference_sum {
    uint64_t sequences;
    uint64_t tokens;         /* New ones. */
    uint64_t context_tokens; /* In the cache behind the pass. */
    uint64_t head_rows;      /* New tokens whose logits are wanted. */
};

/* Both kinds of a pass, in this order. */
enum inference_part { INFERENCE_DECODES, INFERENCE_PROMPTS, INFERENCE_PARTS };

/* Which sequences a pass of the step has. */
struct inference_pass {
    uint32_t index; /* The pass by its number among the passes of its batch. */
    uint32_t batch;
    bool whole; /* All passes together. */
    bool has[INFERENCE_PARTS];
};

/* Of what a data rank may have most. */
enum inference_amount {
    INFERENCE_TOKENS,
    INFERENCE_SCORES,
    INFERENCE_ROWS_READ,
    INFERENCE_AMOUNTS
};

/* The data ranks that a step waits for, as data ranks have different sequences. */
struct inference_replicas {
    bool apart; /* Data ranks wait for one another at the end of the step alone, so every pass has
                   the sequences of the rank with most work in the whole step. Else they wait in
                   every pass, so each pass has the sequences of the rank with most in that pass. */
    uint64_t fullest[INFERENCE_AMOUNTS]; /* Where `apart` is set: by amount, the data rank that has
                                            most of it in all passes. */
};

/* What a pass has on the rank with most work, which the other ranks wait for. */
struct inference_ranks {
    struct inference_replicas charged; /* The same for all passes. */
    struct inference_pass pass;
    uint64_t sequences[INFERENCE_PARTS]; /* Of a data rank. */
    uint64_t kept[INFERENCE_PARTS];      /* Of `sequences`, those whose rows a rank keeps. */
    uint64_t kept_sequences; /* Of both kinds, all batches; a generation's are the same. */
    uint32_t batch_ways, sequence_ways;               /* As struct graph_cache has them. */
    bool begins, own_rows, prompts_stay, kinds_apart; /* As struct graph_cache has them. */
    bool prompts_in_parts;                            /* Of prompts each rank of cp has a part. */
    bool has_decodes;       /* Ranks of cp have some of the decodes each. */
    enum graph_apart apart; /* Ranks of tp_d. */
    uint64_t own_tokens;    /* Of the pass, without those that give ranks of tp_d equally many. */
    uint64_t tokens;        /* Of the pass. */
    uint64_t part_tokens[INFERENCE_PARTS]; /* Of `tokens`, those of each part. */
    uint64_t prompt_tokens; /* Of prompts of a data rank, before they are cut into equal parts. */
    uint64_t kept_tokens;   /* Of the sequences whose rows a rank keeps. */
    uint64_t kept_part[INFERENCE_PARTS];            /* Of these, those of each part. */
    uint64_t head_rows;                             /* Tokens whose logits are wanted. */
    struct graph_served served[INFERENCE_PARTS][2]; /* [part][windowed] */
    uint64_t held_rows[2];                          /* [windowed] Of the cache, behind the step. */
    struct inference_sum all;                       /* Sums of the pass, on all ranks. */
};

/* Fills ranks->inference.charged, which stays. */
void inference_replicas_find(struct ranks *ranks);

/* Fills ranks->inference for the pass ranks->pass: the sequences of a plan that is not of training,
 * on its data ranks. */
void inference_build(struct ranks *ranks);

/* Whether two passes give a part of the model the same work; of layers those that attend so. */
bool inference_alike(const struct inference_ranks *one, const struct inference_ranks *other,
                     enum block_part part, uint8_t attends);

/* Of a prompt's new tokens those of a rank: of cp each has equally many, the last ones padding. */
uint64_t inference_prompt_share(const struct ranks *ranks, uint64_t tokens);

/* How the cache lies (inference_ways.c): fills apart and the ways of ranks->inference, whose
 * sequences are there. */
void inference_ways_build(struct ranks *ranks);
/* Ranks with the same heads, of tp and of tp_d: those that keep different sequences each; different
 * parts of each. */
uint32_t inference_keepers(const struct ranks *ranks);
uint32_t inference_parts(const struct ranks *ranks);
/* Of one kind, those of these ranks that attend to them: of prompts that stay where they are, ranks
 * of tp with the same heads each attend to all. */
uint32_t inference_attending_keepers(const struct ranks *ranks, enum inference_part part);
uint32_t inference_attending_parts(const struct ranks *ranks, enum inference_part part);

/* Whether prompts of the pass attend to earlier tokens that ranks of tp with the same heads have
 * parts of. */
bool inference_prompts_spread(const struct ranks *ranks);

/* Errors: a cache that lies otherwise than its ranks can have it. */
enum status inference_ways_check(const struct ranks *ranks, struct error *reterr);

/* Bytes of the cache on a chip, of `count` layers from one on. */
uint64_t inference_cache_bytes(const struct ranks *ranks, uint64_t layer_first, uint64_t count);

/* A plan for a mesh with so many ranks of pp, as long as it is played there. Each of them works on
 * another batch, a part of the sequences: all of them where there are decodes, which is what a
 * rank does while its batch is with the others; as many as there are prompts in a prefill, which
 * begins with empty stages. */
void inference_stages_set(struct workload_plan *plan, uint32_t stages);
uint32_t inference_batch_count(const struct inference_plan *plan);
/* Decodes; of a generation its prompts, which go on as decodes. */
static inline uint64_t inference_decode_count(const struct inference_plan *plan)
{
    return plan->generation.output != 0 ? plan->prompts.count : plan->decodes.count;
}
/* The sequences that `batch` of a scenario counts: decodes, where there are any. A generation's are
 * its prompts. */
static inline enum inference_part inference_batch_part(const struct inference_plan *plan)
{
    return plan->decodes.count > 0 ? INFERENCE_DECODES : INFERENCE_PROMPTS;
}
/* Whether each rank of pp begins with another batch, and always has a batch. */
static inline bool inference_turns(const struct inference_plan *plan)
{
    bool const steps = plan->decodes.count > 0 || plan->generation.played == INFERENCE_STEP;
    return plan->stages > 1 && steps;
}
/* Whether the last pass of a batch is a step that begins with what the prefill has given. */
static inline bool inference_follows(const struct inference_plan *plan)
{
    return plan->generation.output != 0 && plan->generation.played == INFERENCE_ENDS;
}

/* Passes of the step: of each batch, one after the other, several where prompts come in chunks, and
 * those of one batch. */
enum { INFERENCE_PASSES_MAX = 256 };
uint32_t inference_batch_passes(const struct inference_plan *plan);
uint32_t inference_pass_count(const struct workload_plan *plan);

/* One that a batch does not need, as its prompts are shorter than those of others; one that
 * `samples_passes` leaves out. */
bool inference_pass_is_empty(const struct workload_plan *plan, uint32_t pass);
/* Passes of a batch that compute logits. */
uint32_t inference_head_passes(const struct workload_plan *plan);

struct inference_sum inference_pass_sum(const struct workload_plan *plan, uint32_t pass);
/* Of the whole step: of sequences of one kind, of all. */
struct inference_sum inference_sum(const struct workload_plan *plan, enum inference_part part);
struct inference_sum inference_sum_all(const struct workload_plan *plan);
/* Of a head, in all layers together: keys that the queries of a pass see, of one kind of sequence.
 */
units_wide inference_scores(const struct workload_plan *plan, uint32_t pass,
                            enum inference_part part);

/* Of the cache of a layer with a window, the rows that stay of all sequences: those that some query
 * of a pass sees. */
uint64_t inference_window_tokens(const struct workload_plan *plan, enum inference_part part);

/* Tokens of the longest sequence of a kind, with those of the cache; of both kinds. */
uint64_t inference_keys_most_of(const struct workload_plan *plan, enum inference_part part);
uint64_t inference_keys_most(const struct workload_plan *plan);

#endif
