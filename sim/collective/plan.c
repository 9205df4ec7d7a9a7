#include "sim/collective/plan.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/pieces.h"
#include "sim/collective/plan_permute.h"
#include "sim/collective/shares.h"
#include "sim/machine/machine.h"

enum { ALGORITHMS_MAX = 32, PIECES_MAX = 65536 };

static const uint64_t size_bytes_max = UINT64_C(1) << 56;

/* What is being built, and from what. */
struct build {
    struct arena *arena;
    const struct plan_request *request;
    const char *where;
    struct plan *plan;
    struct error *reterr;
    struct shares shares;
    struct pieces pieces;
};

static bool is_auto(const struct plan_request *request)
{
    return request->algorithm == NULL || strcmp(request->algorithm, "auto") == 0;
}

/* "auto, line, ring": what can be chosen for a kind. */
static enum status algorithm_refuse(const struct build *build, enum collective_kind kind)
{
    const char *names[ALGORITHMS_MAX] = {"auto"};
    char list[256] = "auto";
    uint32_t count = 1;
    size_t used = strlen(list);
    for (uint32_t i = 0; i < primitive_count && count + 1 < ALGORITHMS_MAX; i++) {
        if (primitive_table[i]->kind != kind) continue;
        names[count] = primitive_table[i]->algorithm;
        size_t const length = strlen(names[count]);
        if (used + length + 3 > sizeof list) break;
        memcpy(list + used, ", ", 2);
        memcpy(list + used + 2, names[count++], length + 1);
        used += length + 2;
    }
    return error_set(build->reterr, STATUS_NOT_FOUND, build->where,
                     "no algorithm \"%.64s\" for %s; did you mean \"%s\"? (%s)",
                     build->request->algorithm, collective_kind_name(build->request->kind),
                     name_nearest(build->request->algorithm, names), list);
}

static enum status primitive_choose(const struct build *build, enum collective_kind kind,
                                    uint32_t dimension, const struct primitive **ret_primitive)
{
    const struct group_dimension *at = &build->request->group.dimension[dimension];
    const char *name =
        is_auto(build->request) ? (at->ring ? "ring" : "line") : build->request->algorithm;
    const struct primitive *primitive = primitive_find(kind, name);
    if (primitive == NULL) return algorithm_refuse(build, kind);
    if (primitive->ring && !at->ring)
        return error_set(build->reterr, STATUS_UNSUPPORTED, build->where,
                         "\"%s\" needs an axis that closes into a ring, and the %u chips along %s "
                         "do not; \"line\" or \"auto\" do",
                         name, at->size, at->name);
    *ret_primitive = primitive;
    return STATUS_OK;
}

static enum status lanes_add(const struct build *build, struct plan_item *item)
{
    struct plan *plan = build->plan;
    const struct group_dimension *dimension = &plan->group.dimension[item->dimension];
    const struct primitive *primitive = item->primitive;
    item->lane_first = (uint8_t)plan->lane_count;
    for (uint32_t l = 0; l < primitive->lane_count; l++) {
        void *memory = NULL;
        STATUS_TRY(arena_try(build->arena, 2 * (uint64_t)dimension->size, sizeof(uint32_t), &memory,
                             build->reterr));
        uint32_t *sends = memory, *arrivals = sends + dimension->size;
        for (uint32_t at = 0; at < dimension->size; at++) {
            sends[at] = primitive->send_count(dimension->size, l, at);
            arrivals[at] = primitive->arrival_count(dimension->size, l, at);
        }
        SIM_ASSERT(plan->lane_count < PLAN_LANES_MAX);
        plan->lane[plan->lane_count++] = (struct plan_lane){
            .item = (uint8_t)(item - plan->item),
            .lane = (uint8_t)l,
            .leg_count = 1,
            .leg = {{.port = (uint8_t)machine_port(dimension->axis, l == 1),
                     .hops = (uint16_t)dimension->stride}},
            .send_count = sends,
            .arrival_count = arrivals,
        };
    }
    return STATUS_OK;
}

/* Half a chunk of an item: rounded up once, then exact multiples along the chain, so that what a
 * gather has collected is what the next one passes on. */
static uint64_t unit_bytes(const struct build *build, enum collective_kind kind, uint32_t order,
                           uint32_t level)
{
    const struct group *group = &build->plan->group;
    units_wide const share =
        (units_wide)build->request->size_bytes * (uint64_t)build->shares.weight[order];
    uint64_t const rank_count = group_rank_count(group);
    uint32_t const count = group->dimension_count;
    units_wide pieces = (units_wide)build->pieces.count * (uint64_t)build->shares.total * 2;
    pieces *= rank_count;
    uint64_t multiple = 1;
    if (kind == COLLECTIVE_ALL_TO_ALL)
        pieces *= group->dimension[(order + level) % count].size;
    else
        for (uint32_t j = 0; j < level; j++) multiple *= group->dimension[(order + j) % count].size;
    return (uint64_t)((share + pieces - 1) / pieces) * multiple;
}

/* One order of a phase: AllGather and AllToAll from its first dimension on, ReduceScatter from its
 * last one back. `after` is the item that it follows; returns the last item in it. */
static enum status chain_add(const struct build *build, enum collective_kind kind, uint32_t order,
                             uint8_t *after)
{
    struct plan *plan = build->plan;
    uint32_t const count = plan->group.dimension_count;
    for (uint32_t j = 0; j < count; j++) {
        uint32_t const level = kind == COLLECTIVE_REDUCE_SCATTER ? count - 1 - j : j;
        uint32_t const dimension = (order + level) % count;
        const struct primitive *primitive = NULL;
        STATUS_TRY(primitive_choose(build, kind, dimension, &primitive));
        SIM_ASSERT(plan->item_count < PLAN_ITEMS_MAX);
        struct plan_item *item = &plan->item[plan->item_count];
        *item = (struct plan_item){
            .primitive = primitive,
            .dimension = (uint8_t)dimension,
            .after = *after,
            .turn = PLAN_NO_ITEM,
            .order = (uint8_t)plan->order_count,
            .unit_bytes = unit_bytes(build, kind, order, level),
            .piece_count = build->pieces.count,
        };
        STATUS_TRY(lanes_add(build, item));
        *after = (uint8_t)plan->item_count++;
    }
    return STATUS_OK;
}

static enum status orders_add(const struct build *build)
{
    struct plan *plan = build->plan;
    for (uint32_t k = 0; k < plan->group.dimension_count; k++) {
        if (build->shares.weight[k] == 0) continue;
        uint8_t after = PLAN_NO_ITEM;
        if (plan->kind == COLLECTIVE_ALL_REDUCE) {
            STATUS_TRY(chain_add(build, COLLECTIVE_REDUCE_SCATTER, k, &after));
            STATUS_TRY(chain_add(build, COLLECTIVE_ALL_GATHER, k, &after));
        } else {
            STATUS_TRY(chain_add(build, plan->kind, k, &after));
        }
        plan->item[after].last = true;
        plan->order_count++;
    }
    return STATUS_OK;
}

/* How many gathers there are before an item in its chain. */
static uint32_t gather_level(const struct plan *plan, const struct plan_item *item)
{
    uint32_t level = 0;
    for (uint8_t at = item->after; at != PLAN_NO_ITEM; at = plan->item[at].after)
        level += plan->item[at].primitive->kind == COLLECTIVE_ALL_GATHER;
    return level;
}

/* Links serve first come, first served, chunk by chunk: beside the large chunks of a last gather
 * the small ones of a first gather, for which other dimensions wait, would come too late. */
static void turns_set(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->item_count; i++) {
        struct plan_item *item = &plan->item[i];
        if (item->primitive->kind != COLLECTIVE_ALL_GATHER) continue;
        uint32_t const level = gather_level(plan, item);
        uint32_t nearest = 0;
        for (uint32_t j = 0; j < plan->item_count; j++) {
            const struct plan_item *other = &plan->item[j];
            uint32_t const before = gather_level(plan, other);
            if (other->primitive->kind != COLLECTIVE_ALL_GATHER || before >= level ||
                other->dimension != item->dimension)
                continue;
            if (item->turn != PLAN_NO_ITEM && before < nearest) continue;
            item->turn = (uint8_t)j;
            nearest = before;
        }
    }
}

static enum status request_check(const struct plan_request *request, const char *where,
                                 struct error *reterr)
{
    const struct group *group = &request->group;
    SIM_ASSERT(group->dimension_count <= GROUP_DIMENSIONS_MAX);
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        SIM_ASSERT(group->dimension[d].size >= 2 && group->dimension[d].stride >= 1);
        SIM_ASSERT(group->dimension[d].stride <= UINT16_MAX);
    }
    if (request->size_bytes == 0 || request->size_bytes > size_bytes_max)
        return error_set(reterr, STATUS_INVALID, where, "%llu bytes are not between 1 and %llu",
                         (unsigned long long)request->size_bytes,
                         (unsigned long long)size_bytes_max);
    bool const is_chunked =
        request->kind == COLLECTIVE_ALL_GATHER || request->kind == COLLECTIVE_REDUCE_SCATTER;
    if (request->chunk_count > 0 && !is_chunked)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "%s does not go chunk by chunk with another op; "
                         "AllGather and ReduceScatter do",
                         collective_kind_name(request->kind));
    if (request->chunk_count > PIECES_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "%u chunks are more than %u",
                         request->chunk_count, PIECES_MAX);
    return STATUS_OK;
}

/* How other ops may go along with it, chunk by chunk. */
static void parts_fill(struct plan *plan)
{
    uint32_t const count = plan->group.dimension_count;
    bool const is_gather = plan->kind == COLLECTIVE_ALL_GATHER;
    plan->part_count = 1;
    if (plan->chunk_count == 0) return;
    plan->chunk_parts = 1;
    if (count > 1) {
        plan->part_count = plan->chunk_count;
    } else if (is_gather) {
        plan->counts_units = true;
        plan->chunk_parts = 2;
        plan->part_count = 2 * plan->chunk_count;
    }
}

/* The name for a report, from the table: that of the request does not live as long. */
static const char *algorithm_name(const struct plan *plan)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const char *other = plan->item[i].primitive->algorithm;
        if (name != NULL && strcmp(name, other) != 0) return "ring+line";
        name = other;
    }
    return name;
}

static enum status composed_build(struct build *build)
{
    struct plan *plan = build->plan;
    const struct plan_request *request = build->request;
    uint32_t cost[GROUP_DIMENSIONS_MAX] = {0};
    enum collective_kind const kind =
        plan->kind == COLLECTIVE_ALL_REDUCE ? COLLECTIVE_REDUCE_SCATTER : plan->kind;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct primitive *primitive = NULL;
        STATUS_TRY(primitive_choose(build, kind, d, &primitive));
        cost[d] = (primitive->ring && primitive->lane_count == 2 ? 1 : 2) *
                  plan->group.dimension[d].stride;
    }
    /* Every order of an AllToAll crosses every dimension with all it has. */
    if (kind == COLLECTIVE_ALL_TO_ALL)
        build->shares = (struct shares){{1, 1, 1}, plan->group.dimension_count};
    else
        build->shares = shares_solve(&plan->group, cost);
    build->pieces =
        pieces_choose(&plan->group, cost, &build->shares, plan->kind, request->size_bytes);
    if (plan->group.dimension_count > 1 && request->chunk_count > 0) {
        uint32_t const most = pieces_beside(&plan->group, cost, request->size_bytes);
        plan->chunk_count = most < request->chunk_count ? most : request->chunk_count;
        if (plan->chunk_count > 1)
            build->pieces.count = plan->chunk_count;
        else
            plan->chunk_count = 0;
    } else if (request->chunk_count > 0) {
        plan->chunk_count = plan->group.dimension[0].size;
    }
    STATUS_TRY(orders_add(build));
    if (build->pieces.turns) turns_set(plan);
    plan->algorithm = algorithm_name(plan);
    return STATUS_OK;
}

enum status plan_build(struct arena *arena, const struct plan_request *request, const char *where,
                       struct plan *ret_plan, struct error *reterr)
{
    STATUS_TRY(request_check(request, where, reterr));
    struct plan plan = {
        .kind = request->kind,
        .algorithm = "none",
        .group = request->group,
        .size_bytes = request->size_bytes,
    };
    struct build build = {arena, request, where, &plan, reterr, {{0}, 0}, {1, false}};
    if (plan.kind == COLLECTIVE_PERMUTE) {
        if (!is_auto(request) && primitive_find(plan.kind, request->algorithm) == NULL)
            return algorithm_refuse(&build, plan.kind);
        plan.algorithm = "shift";
        memcpy(plan.offset, request->offset, sizeof plan.offset);
        STATUS_TRY(plan_permute_build(arena, where, &plan, reterr));
    } else if (plan.group.dimension_count > 0) {
        STATUS_TRY(composed_build(&build));
    }
    parts_fill(&plan);
    *ret_plan = plan;
    return STATUS_OK;
}
