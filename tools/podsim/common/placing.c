#include "tools/podsim/common/placing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum status refuse(const struct placing *placing, const char *why, struct error *reterr)
{
    return error_set(reterr, STATUS_UNSUPPORTED, placing->where, "%s", why);
}

void placing_side_add(struct placing *placing, const char *name, uint32_t chips)
{
    SIM_ASSERT(placing->side_count < PLACING_SIDES_MAX);
    placing->side[placing->side_count++] = (struct placing_side){name, chips, chips};
}

static void part_add(struct placing *placing, enum mesh_role role, struct placing_side *side,
                     uint32_t size)
{
    SIM_ASSERT(placing->part_count[role] < PLACING_PARTS_MAX);
    char *part = placing->part[role][placing->part_count[role]++];
    if (size == side->whole)
        (void)snprintf(part, PLACING_PART_BYTES, "%s", side->name);
    else
        (void)snprintf(part, PLACING_PART_BYTES, "%s:%u", side->name, size);
    side->left /= size;
}

/* Chips of the grid, or of all nodes, that no rank has. */
static uint64_t chips_left(const struct placing *placing)
{
    uint64_t chips = 1;
    for (uint32_t s = 0; s < placing->side_count; s++) chips *= placing->side[s].left;
    return chips;
}

static enum status ranks_refuse(const struct placing *placing, enum mesh_role role,
                                struct error *reterr)
{
    uint64_t chips = 1;
    for (uint32_t s = 0; s < placing->side_count; s++) chips *= placing->side[s].whole;
    if (placing->slice.whole <= 1)
        return error_set(reterr, STATUS_UNSUPPORTED, placing->where,
                         "%u ranks of %s do not fit with the other axes on the %" PRIu64 " chips",
                         placing->rank[role], mesh_role_name(role), chips);
    return error_set(reterr, STATUS_UNSUPPORTED, placing->where,
                     "%u ranks of %s do not fit with the other axes on the %" PRIu64
                     " chips of one of %u %ss; fsdp, pp and dp may lie over all of these",
                     placing->rank[role], mesh_role_name(role), chips, placing->slice.whole,
                     placing->slice.name);
}

/* Neighbours first: as much of each side as it has, in whole parts. */
static enum status take_in_order(struct placing *placing, enum mesh_role role, uint32_t ranks,
                                 struct error *reterr)
{
    for (uint32_t s = 0; s < placing->side_count && ranks > 1; s++) {
        struct placing_side *side = &placing->side[s];
        uint32_t const size = ranks < side->left ? ranks : side->left;
        if (size <= 1) continue;
        if (side->left % size != 0 || ranks % size != 0)
            return error_set(reterr, STATUS_UNSUPPORTED, placing->where,
                             "%u ranks of %s do not lie evenly on %u of the axis %s", ranks,
                             mesh_role_name(role), side->left, side->name);
        part_add(placing, role, side, size);
        ranks /= size;
    }
    if (ranks == 1) return STATUS_OK;
    return ranks_refuse(placing, role, reterr);
}

/* A side that is as long, else what is left of all of them, the last first. */
static enum status take_side(struct placing *placing, enum mesh_role role, uint32_t ranks,
                             struct error *reterr)
{
    for (uint32_t s = placing->side_count; s-- > 0;)
        if (placing->side[s].left == ranks) {
            part_add(placing, role, &placing->side[s], ranks);
            return STATUS_OK;
        }
    struct placing turned = *placing;
    for (uint32_t s = 0; s < placing->side_count; s++)
        turned.side[s] = placing->side[placing->side_count - 1 - s];
    STATUS_TRY(take_in_order(&turned, role, ranks, reterr));
    for (uint32_t s = 0; s < placing->side_count; s++)
        placing->side[s] = turned.side[placing->side_count - 1 - s];
    memcpy(placing->part, turned.part, sizeof placing->part);
    memcpy(placing->part_count, turned.part_count, sizeof placing->part_count);
    return STATUS_OK;
}

static enum status take_role(struct placing *placing, enum mesh_role role, struct error *reterr)
{
    uint32_t ranks = placing->rank[role];
    struct placing_side *slice = &placing->slice;
    uint32_t across = placing->across[role];
    bool const is_over = (role == MESH_FSDP || role == MESH_PP) && ranks > chips_left(placing);
    if (across == 0) across = (role == MESH_DP || is_over) && slice->left > 1 ? slice->left : 1;
    if (across > 1 && ranks % across == 0 && slice->left % across == 0) {
        ranks /= across;
        part_add(placing, role, slice, across);
    }
    if (ranks == 1) return STATUS_OK;
    if (!placing->is_grid || role == MESH_FSDP) return take_in_order(placing, role, ranks, reterr);
    return take_side(placing, role, ranks, reterr);
}

static void over_add(struct placing *placing, enum mesh_role role)
{
    SIM_ASSERT(placing->part_count[MESH_EP] < PLACING_PARTS_MAX);
    (void)snprintf(placing->part[MESH_EP][placing->part_count[MESH_EP]++], PLACING_PART_BYTES, "%s",
                   mesh_role_name(role));
}

uint64_t placing_own_ep(uint64_t tp, uint64_t cp, uint64_t ep, uint32_t *ret_over)
{
    bool const over_cp = cp > 1 && ep > tp;
    uint64_t const whole = over_cp ? tp * cp : tp;
    *ret_over = 0;
    if (ep % whole != 0) return 0;
    if (tp > 1) *ret_over |= 1u << MESH_TP;
    if (over_cp) *ret_over |= 1u << MESH_CP;
    return ep / whole;
}

enum status placing_find(struct placing *placing, struct error *reterr)
{
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) {
        placing->role = mesh_order_standard[i];
        STATUS_TRY(take_role(placing, placing->role, reterr));
    }
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++)
        if ((placing->ep_over >> role & 1) != 0) over_add(placing, (enum mesh_role)role);
    if (placing->slice.left > 1) return refuse(placing, "its slices are no replicas", reterr);
    for (uint32_t s = 0; s < placing->side_count; s++)
        if (placing->side[s].left > 1)
            return refuse(placing, "it has fewer ranks than chips", reterr);
    return STATUS_OK;
}

const char *placing_part(const struct placing *placing, enum mesh_role role, uint32_t index)
{
    uint32_t const count = placing->part_count[role];
    return placing->part[role][role == MESH_PP ? count - 1 - index : index];
}
