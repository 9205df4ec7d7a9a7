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

/* How the cache lies on the ranks of tp and tp_d, of which there are heads·batch·sequence. Ranks
 * with different heads keep keys and values as they compute them. Ranks with equal heads keep
 * different sequences (`batch`), parts of each sequence (`sequence`), or copies. */
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
    struct lengths tokens; /* New tokens of each prompt. */
    uint64_t cached;       /* Earlier tokens of each prompt, whose keys and values are in the cache
                              already. */
    uint64_t chunk;        /* New tokens of each prompt in a pass, as long as there are some; 0: all
                              of them. */
};

/* Where weights go that are read before the products that want them. */
enum inference_prefetch { INFERENCE_PREFETCH_NONE, INFERENCE_PREFETCH_VMEM };

/* The part of a generation that is simulated: the prefill, and behind it the last step, which has
 * most in the cache; the prefill alone; a step alone. */
enum inference_played { INFERENCE_ENDS, INFERENCE_PREFILL, INFERENCE_STEP };

/* Prompts, and behind them steps in which each sequence gets one more token. */
struct inference_generation {
    uint64_t output; /* Steps; 0: it is no generation. */
    uint64_t page;   /* Steps that take as long as the last of them. */
    enum inference_played played;
    uint64_t step; /* The step that is simulated, counted from 1. */
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
    /* Of a batch's passes with prompts only the first two and the last are lowered. A chip holds
     * about as much in them as it ever holds. */
    bool samples_passes;
    enum format cache; /* Format of keys and values that stay. */
    enum format head;  /* The format of the head's matrix. */
    bool whole_units;  /* A core of a chip takes all keys of a sequence and head. */
    enum inference_prefetch prefetch;
    /* What chooses for "auto"; none: the shape does, as in training. */
    struct plan_chooser chooser;
};

/* Sums over some sequences, in a pass or in all passes of the step. */
struct inference_sum {
    uint64_t sequences;
    uint64_t tokens;         /* New tokens. */
    uint64_t context_tokens; /* Tokens in the cache behind the pass. */
    uint64_t head_rows;      /* New tokens whose logits are wanted. */
};

/* Both kinds of sequences of a pass, in this order. */
enum inference_part { INFERENCE_DECODES, INFERENCE_PROMPTS, INFERENCE_PARTS };

/* Which sequences a pass of the step has. */
struct inference_pass {
    uint32_t index; /* The pass by its number among the passes of its batch. */
    uint32_t batch;
    bool whole; /* All passes together. */
    bool has[INFERENCE_PARTS];
};

/* Amounts of work by which data ranks are compared: in the whole step, and in one of its batches.
 */
enum inference_amount {
    INFERENCE_TOKENS,
    INFERENCE_SCORES,
    INFERENCE_ROWS_READ,
    INFERENCE_AMOUNTS,
    INFERENCE_FULLEST = 2 * INFERENCE_AMOUNTS
};

/* The data rank whose sequences a step is charged, as data ranks have different ones. */
struct inference_replicas {
    bool apart;       /* Data ranks wait for one another at the end of the step alone, so all passes
                         have the sequences of the rank that is slowest by itself. Else they wait
                         in every pass, and each has those of the rank with most in that pass. */
    bool ragged;      /* Data ranks have sequences of unlike lengths. */
    uint64_t replica; /* Where `apart` is set: that rank. */
    uint64_t fullest[INFERENCE_FULLEST]; /* The data ranks that have most, by amount. */
};

/* New tokens of a kind of sequences in a pass. */
struct inference_tokens {
    uint64_t own;  /* Tokens that the rank computes. */
    uint64_t kept; /* Tokens whose rows the rank keeps. */
    uint64_t all;  /* Tokens of all ranks together, without padding. */
};

/* What a pass has on the rank with most work, which the other ranks wait for. */
struct inference_ranks {
    struct inference_replicas charged; /* Found once, for all passes. */
    struct inference_pass pass;
    uint64_t sequences[INFERENCE_PARTS]; /* Sequences of a data rank, by kind. */
    uint64_t kept[INFERENCE_PARTS];      /* Sequences whose rows a rank keeps, by kind. */
    uint64_t kept_sequences; /* Sequences whose rows a rank keeps, of all batches and both kinds. A
                                generation's decodes are its prompts and count once. */
    uint32_t batch_ways, sequence_ways; /* Fields of struct graph_cache. */
    /* As struct graph_cache has them. */
    bool begins, own_rows, prompts_stay, kinds_apart, makes_heads;
    bool prompts_in_parts;  /* Each rank of cp has a part of each prompt. */
    bool has_decodes;       /* Ranks of cp have some of the decodes each. */
    enum graph_apart apart; /* What ranks of tp_d split. */
    uint64_t own_tokens;    /* Tokens of the pass without padding that makes ranks of tp_d equal. */
    uint64_t tokens;        /* Tokens of the pass. */
    struct inference_tokens part[INFERENCE_PARTS]; /* Tokens of the pass by kind. */
    uint64_t prompt_tokens; /* Tokens of a data rank's prompts, before ranks get equal parts. */
    uint64_t kept_tokens;   /* Tokens of the pass whose rows a rank keeps. */
    uint64_t head_rows;     /* Tokens whose logits are wanted. */
    struct graph_served served[INFERENCE_PARTS][2]; /* [part][windowed] */
    uint64_t prompt_rows[2];  /* [windowed] Rows of prompts in the cache of the rank with most of
                                 them. */
    uint64_t held_rows[2];    /* [windowed] Rows of the cache behind the step. */
    struct inference_sum all; /* Sums of the pass, on all ranks. */
};

/* Fills ranks->inference.charged, which stays: the data rank with most rows in all batches. */
void inference_replicas_find(struct ranks *ranks);
/* Whether a data rank has each kind of sequence in each batch that has it. */
bool inference_replica_has_all(const struct ranks *ranks, uint64_t replica);

/* Fills ranks->inference for the pass ranks->pass.index: the sequences of a plan that is not of
 * training, on its data ranks. */
void inference_build(struct ranks *ranks);
/* Fills `served` and `prompt_rows` of ranks->inference, where all other sizes of the pass are known
 * (inference_charged.c). */
void inference_charge(struct ranks *ranks);

/* Whether two passes give a part of the model equal work. `layer`: what a layer is. */
bool inference_alike(const struct inference_ranks *one, const struct inference_ranks *other,
                     enum block_part part, struct layer_kind layer);

/* New tokens of a prompt on one rank. Ranks of cp have equally many, the last ones with padding. */
uint64_t inference_prompt_share(const struct ranks *ranks, uint64_t tokens);

/* How the cache lies (inference_ways.c): fills apart and the ways of ranks->inference, whose
 * sequences are there. */
void inference_ways_build(struct ranks *ranks);
/* How many ranks of tp and tp_d with equal heads keep different sequences; how many keep different
 * parts of each sequence. */
uint32_t inference_keepers(const struct ranks *ranks);
uint32_t inference_parts(const struct ranks *ranks);
/* How many of these ranks attend to different sequences of a kind; to different parts of each.
 * Prompts that stay where they are need no other rank: ranks of tp with equal heads each attend to
 * all of them. */
uint32_t inference_attending_keepers(const struct ranks *ranks, enum inference_part part);
uint32_t inference_attending_parts(const struct ranks *ranks, enum inference_part part);

/* Whether prompts of the pass attend to earlier tokens of which ranks of tp with equal heads keep a
 * part each. */
bool inference_prompts_spread(const struct ranks *ranks);
/* Whether ranks of tp_d each attend to a part of the rows of every prompt of the pass, and add up
 * what they find. */
bool inference_prompts_summed(const struct ranks *ranks);

/* Errors: `kv_sharding` that the ranks of tp and tp_d cannot have. */
enum status inference_ways_check(const struct ranks *ranks, struct error *reterr);

/* Bytes of the cache on a chip, of `count` layers from one on. */
uint64_t inference_cache_bytes(const struct ranks *ranks, uint64_t layer_first, uint64_t count);

/* Sets the ranks of pp of the mesh that the plan runs on. Each rank works on a batch of its own, a
 * part of the sequences. Decodes have as many batches as ranks, so that a rank works while its
 * batch is on other ranks. A prefill begins with empty stages, and has at most as many batches as
 * prompts. */
void inference_stages_set(struct workload_plan *plan, uint32_t stages);
uint32_t inference_batch_count(const struct inference_plan *plan);
/* The number of decodes. A generation's are its prompts, which go on as decodes. */
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
static inline bool inference_goes_round(const struct inference_plan *plan)
{
    bool const steps = plan->decodes.count > 0 || plan->generation.played == INFERENCE_STEP;
    return plan->stages > 1 && steps;
}
/* Whether the last pass of a batch is a step that begins with what the prefill has given. */
static inline bool inference_follows(const struct inference_plan *plan)
{
    return plan->generation.output != 0 && plan->generation.played == INFERENCE_ENDS;
}

/* Passes of one batch, several where prompts come in chunks; and passes of the step, batch after
 * batch. */
enum { INFERENCE_PASSES_MAX = 256 };
uint32_t inference_batch_passes(const struct inference_plan *plan);
uint32_t inference_pass_count(const struct workload_plan *plan);

/* Whether a pass has no work: its batch has shorter prompts than other batches, or `samples_passes`
 * leaves the pass out. */
bool inference_pass_is_empty(const struct workload_plan *plan, uint32_t pass);
/* Passes of a batch that compute logits. */
uint32_t inference_head_passes(const struct workload_plan *plan);

struct inference_sum inference_pass_sum(const struct workload_plan *plan, uint32_t pass);
/* Sums of the whole step: over sequences of one kind, over all sequences. */
struct inference_sum inference_sum(const struct workload_plan *plan, enum inference_part part);
struct inference_sum inference_sum_all(const struct workload_plan *plan);
/* Pairs of a query of a pass and a key that it sees, of one head in all layers together and of one
 * kind of sequence. */
units_wide inference_scores(const struct workload_plan *plan, uint32_t pass,
                            enum inference_part part);

/* Rows of all sequences in the cache of a layer with a window. A row is there if some query of a
 * pass sees it. */
uint64_t inference_window_tokens(const struct workload_plan *plan, enum inference_part part);

/* Tokens of the longest sequence of a kind, cached tokens included; of both kinds. */
uint64_t inference_keys_most_of(const struct workload_plan *plan, enum inference_part part);
uint64_t inference_keys_most(const struct workload_plan *plan);

#endif
