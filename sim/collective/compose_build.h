/*
 * compose_build.h: what the composition of a plan has in common, for compose*.c alone.
 */
#ifndef SIM_COLLECTIVE_COMPOSE_BUILD_H
#define SIM_COLLECTIVE_COMPOSE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/choice.h"
#include "sim/collective/level_overlap.h"
#include "sim/collective/pieces.h"
#include "sim/collective/plan.h"
#include "sim/collective/shares.h"

/* Messages of one rank of a rooted kind, in an order: around a root little is folded. */
enum { ROOTED_MESSAGES_MAX = 4096 };

/* What is being built, and from what. */
struct build {
    struct arena *arena;
    const struct plan_request *request;
    const char *where;
    const struct choice *choice;
    struct plan *plan;
    struct error *reterr;
    struct shares shares; /* Over the axes of the grid; one share where there is none. */
    struct pieces pieces;
    struct level_overlap overlap; /* Portions of pieces, between two levels. */
};

/* The dimensions of an order, as an AllGather comes to them: from the outermost level in, where
 * shards are small on slow links. */
struct chain {
    uint8_t dimension[GROUP_DIMENSIONS_MAX];
    uint32_t count;
};

/* V, as far as it crosses a dimension. */
static inline uint64_t build_crossing_bytes(const struct plan_request *request, uint32_t dimension)
{
    uint64_t const bytes = request->exchange_bytes[dimension];
    return bytes != 0 ? bytes : request->size_bytes;
}

static inline bool build_is_ragged(const struct build *build)
{
    return build->request->ragged.expert_count > 0;
}

/* compose_split.c: how the array is cut: into shares, pieces, chunks for other ops, and portions.
 */
enum status compose_split(struct build *build);

/* compose.c: adds an item after `*after`, which it becomes. `level`: how many dimensions of the
 * chain hold the same when it ends in a gather, or begins as a reduction. NULL: over all
 * dimensions at once. */
enum status item_add(const struct build *build, const struct primitive *primitive, uint32_t order,
                     const struct chain *chain, uint32_t level, uint8_t *after);

/* compose_rooted.c: the items of an order that goes dimension by dimension from or to a root, and
 * into how many pieces they are cut. */
enum status rooted_add(const struct build *build, uint32_t order, const struct chain *chain,
                       uint8_t *after);
/* The turns of a reduction's items, once all are there. */
void rooted_turns_set(struct plan *plan);
/* Whether the plan is cut into rooted_pieces(): by axis, or a chain on one dimension. */
bool rooted_is_cut(const struct build *build);
uint32_t rooted_pieces(const struct build *build);
/* What would build the plan again. */
struct algorithm rooted_algorithm(const struct build *build);

#endif
