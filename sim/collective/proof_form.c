/* What can be said of a plan without playing it. */
#include <stddef.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/collective/proof.h"

uint32_t proof_covered(const struct plan *plan, const struct plan_item *item)
{
    return item->flat ? (1u << plan->group.dimension_count) - 1 : 1u << item->dimension;
}

/* A gather, or a reduction to a root, brings together what is scattered along its dimensions; a
 * ReduceScatter or a scatter leaves every rank its part, and of what all have an item may say that
 * each goes on with its own. */
uint32_t proof_scattered(const struct plan *plan, const struct plan_item *item)
{
    bool const begins_apart =
        plan->kind == COLLECTIVE_ALL_GATHER || plan->kind == COLLECTIVE_GATHER;
    uint32_t gathered = 0, scattered = 0;
    /* From the nearest item back: the last that covers a dimension decides. */
    for (uint32_t at = item->after; at != PLAN_NO_ITEM; at = plan->item[at].after) {
        uint32_t const covered = proof_covered(plan, &plan->item[at]) & ~(gathered | scattered);
        enum collective_kind const kind = plan->item[at].primitive->kind;
        if (kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_GATHER || kind == COLLECTIVE_REDUCE)
            gathered |= covered;
        if (kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_SCATTER) scattered |= covered;
    }
    if (begins_apart) scattered |= ((1u << plan->group.dimension_count) - 1) & ~gathered;
    return scattered | item->parted;
}

static uint32_t displaced(const struct plan *plan, const struct plan_item *item, uint32_t position,
                          uint32_t chunk)
{
    if (chunk == primitive_any || chunk >= item->size) return chunk;
    return plan_item_displaced(plan, item, position, chunk);
}

struct primitive_move proof_move(const struct plan *plan, const struct plan_item *item,
                                 uint32_t lane, uint32_t position, uint32_t step, uint32_t move)
{
    const struct primitive *primitive = item->primitive;
    if (!primitive->translates) return primitive->move(item->size, lane, position, step, move);
    struct primitive_move moved = primitive->move(item->size, lane, 0, step, move);
    moved.source = displaced(plan, item, position, moved.source);
    moved.destination = displaced(plan, item, position, moved.destination);
    return moved;
}

uint32_t proof_chunk_at(const struct plan *plan, const struct plan_item *item, uint32_t position,
                        uint32_t index)
{
    const struct primitive *primitive = item->primitive;
    if (!primitive->translates) return primitive->chunk_at(item->size, position, index);
    return displaced(plan, item, position, primitive->chunk_at(item->size, 0, index));
}

/* The order in which chunks are computed names each once. */
static enum status orders_check(const struct plan *plan, const struct plan_item *item,
                                const char *where, struct error *reterr)
{
    if (item->primitive->kind != COLLECTIVE_REDUCE_SCATTER) return STATUS_OK;
    for (uint32_t at = 0; at < item->size; at++) {
        uint64_t seen = 0;
        for (uint32_t k = 0; k < item->size; k++) {
            uint32_t const chunk = proof_chunk_at(plan, item, at, k);
            if (chunk >= item->size || (seen >> chunk & 1) != 0)
                return error_set(reterr, STATUS_INVALID, where,
                                 "%s: position %u computes chunk %u twice or in vain",
                                 item->primitive->name, at, chunk);
            seen |= UINT64_C(1) << chunk;
        }
    }
    return STATUS_OK;
}

static bool steps_equal(const struct primitive_step *a, const struct primitive_step *b)
{
    return a->units == b->units && a->arrivals == b->arrivals && a->chunks == b->chunks &&
           a->move_count == b->move_count && a->peer == b->peer && a->slot == b->slot &&
           a->wait_lane == b->wait_lane;
}

/* Whether a position's step is position 0's, moved round a ring. */
static bool step_translates(const struct plan_item *item, uint32_t lane, uint32_t at, uint32_t step)
{
    const struct primitive *primitive = item->primitive;
    uint32_t const size = item->size;
    struct primitive_step const first = primitive->step(size, lane, 0, step);
    struct primitive_step const other = primitive->step(size, lane, at, step);
    if (!steps_equal(&first, &other)) return false;
    for (uint32_t m = 0; m < first.move_count; m++) {
        struct primitive_move const a = primitive->move(size, lane, 0, step, m);
        struct primitive_move const b = primitive->move(size, lane, at, step, m);
        bool const source = a.source == primitive_any ? b.source == primitive_any
                                                      : b.source == (a.source + at) % size;
        bool const destination = a.destination == primitive_any
                                     ? b.destination == primitive_any
                                     : b.destination == (a.destination + at) % size;
        if (!source || !destination || a.halves != b.halves) return false;
    }
    return true;
}

static enum status translation_check(const struct plan *plan, const struct plan_item *item,
                                     const char *where, struct error *reterr)
{
    const struct primitive *primitive = item->primitive;
    if (!primitive->translates) return STATUS_OK;
    for (uint32_t l = 0; l < primitive->lane_count; l++)
        for (uint32_t at = 1; at < item->size; at++) {
            const struct plan_lane *lane = &plan->lane[item->lane_first + l];
            bool same = lane->send_count[at] == lane->send_count[0] &&
                        lane->arrival_count[at] == lane->arrival_count[0];
            for (uint32_t s = 0; same && s < lane->send_count[0]; s++)
                same = step_translates(item, l, at, s);
            for (uint32_t k = 0; same && primitive->chunk_at != NULL && k < item->size; k++)
                same = primitive->chunk_at(item->size, at, k) ==
                       (primitive->chunk_at(item->size, 0, k) + at) % item->size;
            if (!same)
                return error_set(reterr, STATUS_INVALID, where,
                                 "%s says that it translates, but in lane %u position %u does not "
                                 "do what position 0 does",
                                 primitive->name, l, at);
        }
    return STATUS_OK;
}

/* Bytes of the array that all pieces of an item carry. Its chunk is as many times the smallest part
 * as ranks hold together, along dimensions that are neither its own nor scattered. */
static units_wide item_share_bytes(const struct plan *plan, const struct plan_item *item,
                                   uint64_t *ret_rest)
{
    units_wide const all = (units_wide)plan_item_unit_bytes(item) * 2 * item->size;
    uint32_t const covered = proof_covered(plan, item);
    uint32_t const scattered = proof_scattered(plan, item);
    uint64_t apart = 1, together = 1;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        if ((covered >> d & 1) != 0) continue;
        *((scattered >> d & 1) != 0 ? &apart : &together) *= plan->group.dimension[d].size;
    }
    *ret_rest = 0;
    if (item->primitive->kind == COLLECTIVE_ALL_TO_ALL) return all * group_rank_count(&plan->group);
    *ret_rest = plan_item_unit_bytes(item) / item->piece_count % together;
    return all * apart;
}

/* Each item of an order carries its order's share, and the shares of all orders make up the array;
 * no more than rounding is added. */
static enum status bytes_check(const struct plan *plan, const char *where, struct error *reterr)
{
    uint64_t const rank_count = group_rank_count(&plan->group);
    units_wide least = 0, most = 0;
    for (uint32_t order = 0; order < plan->order_count; order++) {
        units_wide low = 0, high = 0;
        for (uint32_t i = 0; i < plan->item_count; i++) {
            const struct plan_item *item = &plan->item[i];
            if (item->order != order) continue;
            bool const exchanges = item->primitive->kind == COLLECTIVE_ALL_TO_ALL;
            uint64_t rest = 0;
            units_wide const share = item_share_bytes(plan, item, &rest);
            uint64_t const rounding =
                2 * rank_count * item->piece_count * (exchanges ? item->size : 1);
            if (rest != 0 || item->piece_count != plan->item[0].piece_count)
                return error_set(reterr, STATUS_INVALID, where,
                                 "item %u: chunks are not whole multiples of those before", i);
            /* The share lies in (share - rounding, share]. */
            units_wide const above = share > rounding ? share - rounding : 0;
            if (high != 0 && (share <= low || above >= high))
                return error_set(reterr, STATUS_INVALID, where,
                                 "item %u carries %llu bytes, and others of its order at most %llu",
                                 i, (unsigned long long)share, (unsigned long long)high);
            low = above > low ? above : low;
            high = high == 0 || share < high ? share : high;
        }
        least += low;
        most += high;
    }
    if (most < plan->size_bytes || least >= plan->size_bytes)
        return error_set(reterr, STATUS_INVALID, where, "the orders carry %llu bytes of %llu",
                         (unsigned long long)most, (unsigned long long)plan->size_bytes);
    return STATUS_OK;
}

/* Portions go over all nodes of another dimension of the group, each over at least one. */
static enum status portions_check(const struct plan *plan, const struct plan_item *item,
                                  const char *where, struct error *reterr)
{
    if (item->portion_end == NULL) return STATUS_OK;
    uint32_t const dimension = item->portion_dimension;
    bool good = !item->flat && dimension < plan->group.dimension_count &&
                dimension != item->dimension && item->portion_count >= 1;
    for (uint32_t k = 0, before = 0; good && k < item->portion_count; k++) {
        good = item->portion_end[k] > before;
        before = item->portion_end[k];
    }
    if (good && item->portion_end[item->portion_count - 1] == plan->group.dimension[dimension].size)
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where,
                     "item %u (%s): its portions do not make up a piece",
                     (unsigned)(item - plan->item), item->primitive->name);
}

static enum status shape_check(const struct plan *plan, const struct plan_item *item,
                               const char *where, struct error *reterr)
{
    const struct primitive *primitive = item->primitive;
    const uint64_t size =
        item->flat ? group_rank_count(&plan->group) : plan->group.dimension[item->dimension].size;
    bool const known = primitive->lane_count >= 1 && primitive->lane_count <= PRIMITIVE_LANES_MAX &&
                       (primitive->routed || (!item->flat && primitive->lane_count <= 2));
    if (!known || size != item->size)
        return error_set(reterr, STATUS_INVALID, where, "item %u (%s) has %u lanes for %u of %llu",
                         (unsigned)(item - plan->item), primitive->name, primitive->lane_count,
                         item->size, (unsigned long long)size);
    uint32_t const others = (1u << plan->group.dimension_count) - 1 - proof_covered(plan, item);
    uint32_t const told = item->at_root | item->off_root | item->parted;
    if ((told & ~others) != 0 || (told != 0 && !collective_is_rooted(plan->kind)))
        return error_set(
            reterr, STATUS_INVALID, where,
            "item %u (%s) is told apart by a root along its own dimension, or has none",
            (unsigned)(item - plan->item), primitive->name);
    if (primitive->routed && primitive->refuses != NULL && primitive->refuses(item->size) != NULL)
        return error_set(reterr, STATUS_INVALID, where, "%s on %u ranks %s", primitive->name,
                         item->size, primitive->refuses(item->size));
    return STATUS_OK;
}

enum status proof_forms(const struct plan *plan, const char *where, struct error *reterr)
{
    bool const divides = plan->kind != COLLECTIVE_PERMUTE && plan->size_bytes > 0;
    for (uint32_t i = 0; i < plan->item_count; i++)
        STATUS_TRY(portions_check(plan, &plan->item[i], where, reterr));
    if (divides && plan->ragged_units == NULL) STATUS_TRY(bytes_check(plan, where, reterr));
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct plan_item *item = &plan->item[i];
        STATUS_TRY(shape_check(plan, item, where, reterr));
        STATUS_TRY(orders_check(plan, item, where, reterr));
        STATUS_TRY(translation_check(plan, item, where, reterr));
    }
    return STATUS_OK;
}
