#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/collective/msccl.h"
#include "sim/collective/proof.h"
#include "sim/machine/machine.h"

/* Where a permute leads to along a dimension, before it is taken round. */
static int64_t target(const struct plan *plan, const struct proof *proof, uint32_t rank, uint32_t d)
{
    int64_t const own = proof->digit[rank][d];
    if (plan->permute.mirrors) return (int64_t)plan->group.dimension[d].size - 1 - own;
    return own + plan->permute.offset[d];
}

/* A permute is proved by its legs alone: everybody who has a target sends to it, and only they. */
static enum status permute_check(struct arena *arena, const struct plan *plan, const char *where,
                                 struct error *reterr)
{
    struct proof proof;
    const struct plan_lane *lane = &plan->lane[0];
    STATUS_TRY(proof_create(arena, plan, where, &proof, reterr));
    for (uint32_t r = 0; plan->item_count > 0 && r < proof.rank_count; r++) {
        uint32_t to = 0, receiver = 0;
        bool exists = true;
        for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
            const struct group_dimension *dimension = &plan->group.dimension[d];
            int64_t const size = dimension->size;
            int64_t const at = target(plan, &proof, r, d);
            exists = exists && (dimension->ring || dimension->switched || (at >= 0 && at < size));
            to = to * dimension->size + (uint32_t)((at % size + size) % size);
        }
        if (plan->permute.shift != 0) {
            uint32_t const position = proof.position[0][r];
            uint32_t end[MACHINE_AXES_MAX];
            memcpy(end, proof.at[r], sizeof end);
            uint32_t left =
                (uint32_t)(((int64_t)position + plan->permute.shift) % (int64_t)proof.rank_count +
                           proof.rank_count) %
                proof.rank_count;
            for (uint32_t i = plan->group.dimension_count; i-- > 0;) {
                const struct group_dimension *at = &plan->group.dimension[plan->flat_dimension[i]];
                end[at->axis] = left % at->size * at->stride;
                left /= at->size;
            }
            to = proof_rank(&proof, end);
        }
        bool reaches = true;
        if (plan->item[0].primitive->routed) {
            uint32_t end[MACHINE_AXES_MAX];
            uint32_t const position = proof.position[0][r];
            uint32_t const peer = plan_step(plan, &plan->item[0], 0, position, 0).peer;
            plan_item_peer(plan, &plan->item[0], proof.at[r], peer, end);
            receiver = proof_rank(&proof, end);
        } else {
            reaches = proof_legs(&proof, r, lane, &receiver);
        }
        bool const sends = lane->send_count[proof.position[0][r]] == 1;
        if (sends != exists || reaches != exists || (exists && receiver != to))
            return error_set(reterr, STATUS_INVALID, where, "rank %u does not send where it should",
                             r);
    }
    return STATUS_OK;
}

enum status plan_check(const struct plan *plan, struct error *reterr)
{
    const char *const where = collective_kind_name(plan->kind);
    uint64_t const rank_count = group_rank_count(&plan->group);
    if (rank_count > PROOF_RANKS_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "%llu ranks are more than the proof's %u",
                         (unsigned long long)rank_count, PROOF_RANKS_MAX);
    if (rank_count == 1) return STATUS_OK;
    if (plan->script != NULL) return msccl_check(plan->script, plan->script->name, reterr);
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the proof");
    enum status status = STATUS_OK;
    if (plan->kind == COLLECTIVE_PERMUTE) status = permute_check(arena, plan, where, reterr);
    if (status == STATUS_OK) status = proof_play(arena, plan, where, reterr);
    arena_destroy(arena);
    return status;
}
