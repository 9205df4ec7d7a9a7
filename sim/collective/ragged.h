/*
 * ragged.h: which tokens go where in a ragged AllToAll, drawn from a seed.
 *
 * Every token of a rank goes to top_k different experts. Experts lie evenly on the ranks, in the
 * order of positions: those of a node are neighbours. A rank gets one copy of a token, however many
 * of its experts want it, as libraries for expert parallelism send it. (The book's factor
 * (1-((Z-1)/Z)^k)(Z-1)/Z is for draws with replacement; these are without, so a little more.)
 *
 * Expert number i in the order of popularity has the weight 1 - s + s/(i+1), s the skew: 0 makes
 * all alike, 1 is Zipf's law. Which expert is how popular is drawn too. All is integers: the same
 * seed gives the same bytes everywhere.
 *
 * Over several levels a token goes from the outermost in, once to each unit that has a rank for it:
 * to another node by the sender's own rail, and there to the ranks that want it. What returns goes
 * the same ways back.
 */
#ifndef SIM_COLLECTIVE_RAGGED_H
#define SIM_COLLECTIVE_RAGGED_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"

struct arena;

enum { RAGGED_TOP_K_MAX = 64, RAGGED_EXPERTS_MAX = 65536, RAGGED_RANKS_MAX = 4096 };

/* Choices of experts of all tokens together that users may ask for: above, drawing takes minutes.
 * And tokens after which whoever draws asks whether to stop. */
enum { RAGGED_CHOICES_MAX = 1 << 26, RAGGED_WATCH_TOKENS = 1 << 14 };

/* Whether the choices of `tokens` on each rank are no more than RAGGED_CHOICES_MAX. */
static inline bool ragged_choices_fit(uint64_t tokens, uint64_t ranks, uint32_t top_k)
{
    return tokens <= RAGGED_CHOICES_MAX / ranks / top_k;
}

/* Refuses what cannot be drawn; `where` is the place of the request. */
enum status ragged_check(const struct plan_request *request, const char *where,
                         struct error *reterr);

/* Tokens of one rank: its buffer holds each once. */
uint64_t ragged_tokens(const struct plan_request *request);

/* Tokens that a rank sends, whose buffer holds `tokens`. The exchange's tokens fill the buffers of
 * the first ranks; the next rank has the rest, and the ranks after it have none. */
uint64_t ragged_tokens_of(const struct plan_ragged *ragged, uint64_t rank, uint64_t tokens);

/* What a rank may have to send over one of several levels, whose `size` units are each a part of
 * `held` altogether: a copy of every token for as many of them as it has experts. */
uint64_t ragged_level_bytes(const struct plan_request *request, uint64_t held, uint64_t size);

/* Tokens as they are drawn: all of rank 0, then all of rank 1... */
struct ragged_draw {
    uint64_t random;      /* The generator's state. */
    uint64_t *weight_end; /* [i]: sum of the weights of the experts up to the i-th in popularity. */
    uint32_t *expert;     /* [i] */
    uint32_t count;       /* Number of experts. */
    uint32_t rank_experts;            /* Experts of one rank. */
    uint32_t top_k;                   /* Experts of one token. */
    uint32_t token[RAGGED_TOP_K_MAX]; /* Experts of the token that was drawn last. */
};

enum status ragged_draw_begin(struct arena *arena, const struct plan_ragged *ragged, uint32_t ranks,
                              struct ragged_draw *ret_draw, struct error *reterr);

/* The ranks that want the next token, each once, as plan_rank() counts them; returns how many. */
uint32_t ragged_draw_next(struct ragged_draw *draw, uint32_t ret_ranks[RAGGED_TOP_K_MAX]);

/* Fills plan.ragged and the units of a plan whose items are set. */
enum status ragged_build(struct arena *arena, const struct plan_request *request, struct plan *plan,
                         struct error *reterr);

/* What ranks have for each other; what a rank has for itself is not sent. */
struct ragged_load {
    uint64_t sent_bytes; /* Bytes that all ranks send together. */
    uint64_t sent_least_bytes, sent_most_bytes;
    uint64_t received_least_bytes, received_most_bytes;
};

/* What ranks of a plan with plan.ragged_units have for each other. */
struct ragged_load ragged_load(const struct plan *plan);

/* What ranks send each other in one item of the plan. */
struct ragged_load ragged_item_load(const struct plan *plan, const struct plan_item *item);

/* Bytes that all ranks send between units of the outermost dimension: over the network. */
uint64_t ragged_farthest_bytes(const struct plan *plan);

#endif
