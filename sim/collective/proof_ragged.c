/*
 * What a ragged exchange has to send, found by following every token through the items of a plan on
 * its own: from rank to rank by coordinates, not by the sums that built the plan.
 */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/collective/proof.h"
#include "sim/collective/ragged.h"

/* One token on its way. */
struct walk {
    uint64_t wanted, held; /* Bits: ranks that want it, and that have it. */
    uint64_t piece[PLAN_ITEMS_MAX];
    uint64_t nodes; /* Bits: units of the outermost dimension that it has come to from others. */
};

static bool agree(const struct proof *proof, uint32_t a, uint32_t b, uint32_t dimensions)
{
    uint32_t const mask = proof->digits_mask[dimensions];
    return (proof->digits[a] & mask) == (proof->digits[b] & mask);
}

/* Whether a rank, or one that it reaches by later items, wants the token. `covered`: bits of the
 * dimensions up to this item. */
static bool is_needed(const struct proof *proof, const struct walk *walk, uint32_t rank,
                      uint32_t covered)
{
    for (uint64_t left = walk->wanted; left != 0; left &= left - 1)
        if (agree(proof, (uint32_t)__builtin_ctzll(left), rank, covered)) return true;
    return false;
}

/* A rank passes the token on to the others of an item that need it. */
static enum status pass_on(struct proof *proof, struct walk *walk, uint32_t index, uint32_t from,
                           uint32_t covered)
{
    const struct plan *plan = proof->plan;
    const struct plan_item *item = &plan->item[index];
    uint32_t const others = (1u << plan->group.dimension_count) - 1;
    uint32_t const outermost = plan->flat_dimension[0];
    for (uint32_t to = 0; to < proof->rank_count; to++) {
        if (!agree(proof, from, to, others & ~proof_covered(plan, item))) continue;
        if (!is_needed(proof, walk, to, covered)) continue;
        /* What returns is the same copy the other way. */
        uint32_t const source = plan->ragged.returns ? to : from;
        uint32_t const target = plan->ragged.returns ? from : to;
        uint64_t const row = walk->piece[index] * proof->rank_count + source;
        proof->ragged[index][row * item->size + proof->position[index][target]] += 2;
        if (to == from) continue;
        if ((walk->held >> to & 1) != 0)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "item %u: rank %u gets a token that it has already", index, to);
        walk->held |= UINT64_C(1) << to;
        uint64_t const node = UINT64_C(1) << proof->digit[to][outermost];
        if (proof->digit[to][outermost] == proof->digit[from][outermost]) continue;
        if (plan->item_count > 1 && (walk->nodes & node) != 0)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "item %u: a second copy of a token goes to rank %u's %s", index, to,
                             plan->group.dimension[outermost].name);
        walk->nodes |= node;
    }
    return STATUS_OK;
}

/* Ranks pass on what they had when the item began. */
static enum status token_follow(struct proof *proof, struct walk *walk)
{
    uint32_t covered = 0;
    uint32_t const count = proof->plan->item_count;
    for (uint32_t step = 0; step < count; step++) {
        uint32_t const i = proof->plan->ragged.returns ? count - 1 - step : step;
        uint64_t const before = walk->held;
        covered |= proof_covered(proof->plan, &proof->plan->item[i]);
        for (uint64_t left = before; left != 0; left &= left - 1)
            STATUS_TRY(pass_on(proof, walk, i, (uint32_t)__builtin_ctzll(left), covered));
    }
    if ((walk->wanted & ~walk->held) == 0) return STATUS_OK;
    return error_set(proof->reterr, STATUS_INVALID, proof->where,
                     "a rank never gets a token that it wants");
}

/* Items follow one another, one piece after the other, and cut tokens nowhere. */
static enum status items_check(struct arena *arena, struct proof *proof)
{
    const struct plan *plan = proof->plan;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct plan_item *item = &plan->item[i];
        uint64_t const units = (uint64_t)item->piece_count * proof->rank_count * item->size;
        void *memory = NULL;
        if (item->ragged_units == NULL || item->after != (i == 0 ? PLAN_NO_ITEM : i - 1) ||
            2 * item->unit_bytes - plan->ragged.token_bytes > 1)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "item %u does not carry whole tokens on from the one before", i);
        STATUS_TRY(arena_try(arena, units, sizeof(uint32_t), &memory, proof->reterr));
        proof->ragged[i] = memory;
    }
    return STATUS_OK;
}

static enum status units_compare(const struct proof *proof, uint32_t index, uint32_t rank,
                                 uint32_t piece)
{
    const struct plan_item *item = &proof->plan->item[index];
    uint32_t const number = plan_rank(proof->plan, proof->at[rank]);
    uint64_t const ranks = proof->rank_count;
    for (uint32_t to = 0; to < item->size; to++) {
        uint32_t const found = item->ragged_units[(piece * ranks + number) * item->size + to];
        uint32_t const wanted = proof->ragged[index][(piece * ranks + rank) * item->size + to];
        if (found != wanted)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "item %u, piece %u: rank %u has %u halves of tokens for position %u, "
                             "and %u were drawn",
                             index, piece, rank, found, to, wanted);
    }
    return STATUS_OK;
}

static enum status copies_compare(const struct proof *proof, const uint32_t *copies)
{
    uint32_t const ranks = proof->rank_count;
    for (uint32_t i = 0; i < ranks * ranks; i++)
        if (proof->plan->ragged_units[i] != copies[i])
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "rank %u has %u halves of tokens for rank %u, and %u were drawn",
                             i / ranks, proof->plan->ragged_units[i], i % ranks, copies[i]);
    return STATUS_OK;
}

enum status proof_ragged(struct arena *arena, struct proof *proof)
{
    const struct plan *plan = proof->plan;
    uint32_t const ranks = proof->rank_count;
    uint64_t const tokens = plan->size_bytes / ranks / plan->ragged.token_bytes;
    uint32_t rank_of[PROOF_RANKS_MAX] = {0}, wanted[RAGGED_TOP_K_MAX];
    struct ragged_draw draw;
    void *memory = NULL;
    STATUS_TRY(items_check(arena, proof));
    STATUS_TRY(arena_try(arena, (uint64_t)ranks * ranks, sizeof(uint32_t), &memory, proof->reterr));
    uint32_t *copies = memory;
    STATUS_TRY(ragged_draw_begin(arena, &plan->ragged, ranks, &draw, proof->reterr));
    for (uint32_t r = 0; r < ranks; r++) rank_of[plan_rank(plan, proof->at[r])] = r;
    for (uint32_t number = 0; number < ranks; number++)
        for (uint64_t token = 0; token < ragged_tokens_of(&plan->ragged, number, tokens); token++) {
            struct walk walk = {.held = UINT64_C(1) << rank_of[number]};
            uint32_t const count = ragged_draw_next(&draw, wanted);
            for (uint32_t i = 0; i < count; i++) {
                walk.wanted |= UINT64_C(1) << rank_of[wanted[i]];
                copies[plan->ragged.returns ? wanted[i] * ranks + number
                                            : number * ranks + wanted[i]] += 2;
            }
            for (uint32_t i = 0; i < plan->item_count; i++)
                walk.piece[i] = token * plan->item[i].piece_count / tokens;
            STATUS_TRY(token_follow(proof, &walk));
        }
    STATUS_TRY(copies_compare(proof, copies));
    for (uint32_t i = 0; i < plan->item_count; i++)
        for (uint32_t r = 0; r < ranks; r++)
            for (uint32_t p = 0; p < plan->item[i].piece_count; p++)
                STATUS_TRY(units_compare(proof, i, r, p));
    return STATUS_OK;
}
