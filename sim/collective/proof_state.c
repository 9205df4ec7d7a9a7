/* What every rank holds before a plan runs, and must hold afterwards. */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/collective/proof.h"

/* Whose contributions a rank has at first: where everything is there already, all. */
static uint64_t begin_who(const struct proof *proof, uint32_t rank, uint32_t chunk)
{
    switch (proof->plan->kind) {
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_GATHER:
        return rank == chunk ? proof->all : 0;
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_SCATTER:
        return rank == proof->plan->rooted.root ? proof->all : 0;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_PERMUTE:
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    return UINT64_C(1) << rank;
}

static bool is_wanted(const struct proof *proof, uint32_t rank, uint32_t chunk)
{
    switch (proof->plan->kind) {
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_SCATTER:
        return rank == chunk;
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_GATHER:
        return rank == proof->plan->rooted.root;
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_PERMUTE:
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    return true;
}

/* Atoms of one rank's part, or for one rank, in one piece: [chunk][halving]. */
static uint32_t row_count(const struct proof *proof)
{
    return proof->rank_count * proof->halvings;
}

/* Such rows: [piece of an order][rank]. */
static uint64_t rows_count(const struct proof *proof)
{
    uint64_t const pieces = proof->plan->item_count == 0 ? 0 : proof->plan->item[0].piece_count;
    return pieces * proof->plan->order_count * proof->rank_count;
}

static enum status atom_end(struct proof *proof, const struct proof_atom *atom, uint32_t rank,
                            uint32_t chunk)
{
    uint64_t who = atom->who;
    for (uint32_t e = atom->entry; e != 0; e = proof->entry[e].next) who |= proof->entry[e].who;
    if (who == proof->all || !is_wanted(proof, rank, chunk)) return STATUS_OK;
    if (who == 0)
        return error_set(proof->reterr, STATUS_INVALID, proof->where,
                         "rank %u never gets what rank %u contributes", rank, chunk);
    return error_set(proof->reterr, STATUS_INVALID, proof->where,
                     "the sum for rank %u lacks contributions at rank %u", chunk, rank);
}

enum status proof_end(struct proof *proof)
{
    uint32_t const row = row_count(proof);
    for (uint64_t i = 0; i < rows_count(proof); i++) {
        uint32_t const a = (uint32_t)(i % proof->rank_count);
        for (uint32_t k = 0; k < row; k++) {
            uint32_t const b = k >> proof->plan->group.dimension_count;
            if (proof->atom != NULL) STATUS_TRY(atom_end(proof, &proof->atom[i * row + k], a, b));
            if (proof->place != NULL && proof->place[i * row + k].rank != b)
                return error_set(proof->reterr, STATUS_INVALID, proof->where,
                                 "rank %u never gets what rank %u has for it", b, a);
        }
    }
    return STATUS_OK;
}

static void places_begin(struct proof *proof)
{
    uint32_t const row = row_count(proof);
    for (uint64_t i = 0; i < rows_count(proof); i++)
        for (uint32_t k = 0; k < row; k++)
            proof->place[i * row + k].rank = (uint32_t)(i % proof->rank_count);
}

static void atoms_begin(struct proof *proof)
{
    uint32_t const row = row_count(proof);
    for (uint64_t i = 0; i < rows_count(proof); i++)
        for (uint32_t b = 0; b < proof->rank_count; b++) {
            uint64_t const who = begin_who(proof, (uint32_t)(i % proof->rank_count), b);
            for (uint32_t h = 0; h < proof->halvings; h++)
                proof->atom[i * row + b * proof->halvings + h].who = who;
        }
}

static enum status atoms_create(struct arena *arena, struct proof *proof)
{
    uint64_t const count = rows_count(proof) * row_count(proof);
    void *memory = NULL;
    if (proof->plan->kind == COLLECTIVE_PERMUTE) return STATUS_OK;
    if (proof->plan->kind == COLLECTIVE_ALL_TO_ALL) {
        STATUS_TRY(arena_try(arena, count, sizeof *proof->place, &memory, proof->reterr));
        proof->place = memory;
        places_begin(proof);
        return STATUS_OK;
    }
    STATUS_TRY(arena_try(arena, count, sizeof *proof->atom, &memory, proof->reterr));
    proof->atom = memory;
    atoms_begin(proof);
    return STATUS_OK;
}

static void ranks_fill(struct proof *proof)
{
    const struct group *group = &proof->plan->group;
    for (uint32_t r = 0; r < proof->rank_count; r++) {
        uint32_t rest = r;
        for (uint32_t d = group->dimension_count; d-- > 0;) {
            const struct group_dimension *dimension = &group->dimension[d];
            proof->digit[r][d] = rest % dimension->size;
            proof->at[r][dimension->axis] += proof->digit[r][d] * dimension->stride;
            proof->digits[r] |= proof->digit[r][d] << 8 * d;
            rest /= dimension->size;
        }
    }
    for (uint32_t set = 0; set < PROOF_HALVINGS_MAX; set++)
        for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
            if ((set >> d & 1) != 0) proof->digits_mask[set] |= UINT32_C(0xff) << 8 * d;
}

enum status proof_create(struct arena *arena, const struct plan *plan, const char *where,
                         struct proof *ret_proof, struct error *reterr)
{
    *ret_proof = (struct proof){.plan = plan, .where = where, .arena = arena, .reterr = reterr};
    struct proof *proof = ret_proof;
    proof->rank_count = (uint32_t)group_rank_count(&plan->group);
    proof->all = UINT64_MAX >> (PROOF_RANKS_MAX - proof->rank_count);
    proof->halvings = UINT32_C(1) << plan->group.dimension_count;
    ranks_fill(proof);
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct plan_item *item = &plan->item[i];
        proof->scattered[i] = (uint8_t)proof_scattered(plan, item);
        for (uint32_t at = item->after; at != PLAN_NO_ITEM; at = plan->item[at].after) {
            if (plan->item[at].primitive->kind != item->primitive->kind) continue;
            proof->level[i]++;
            proof->done[i] |= (uint8_t)proof_covered(plan, &plan->item[at]);
        }
        for (uint32_t r = 0; r < proof->rank_count; r++) {
            proof->position[i][r] = (uint8_t)plan_item_position(plan, item, proof->at[r]);
            proof->seat[i][r] = (uint8_t)plan_item_seat(plan, item, proof->at[r]);
        }
    }
    return atoms_create(arena, proof);
}
