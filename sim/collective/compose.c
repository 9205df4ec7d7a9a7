#include "sim/collective/compose.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/compose_build.h"
#include "sim/collective/spanning.h"
#include "sim/machine/machine.h"

static struct chain chain_of(const struct levels *levels, uint32_t order)
{
    struct chain chain = {.count = 0};
    for (uint32_t i = 0; i < levels->outer_count; i++)
        chain.dimension[chain.count++] = levels->outer[i];
    for (uint32_t j = 0; j < levels->grid_count; j++)
        chain.dimension[chain.count++] = levels->grid[(order + j) % levels->grid_count];
    return chain;
}

/* An exchange goes inside first: then one message a node leaves it, on the rank's own rail. A
 * ragged one goes outside first: then one copy of a token leaves for a node, and is spread there;
 * and where it returns, the other way.
 */
static struct chain exchange_chain_of(const struct levels *levels, uint32_t order)
{
    struct chain chain = {.count = 0};
    for (uint32_t j = 0; j < levels->grid_count; j++)
        chain.dimension[chain.count++] = levels->grid[(order + j) % levels->grid_count];
    for (uint32_t i = levels->outer_count; i-- > 0;)
        chain.dimension[chain.count++] = levels->outer[i];
    return chain;
}

static enum status lanes_add(const struct build *build, struct plan_item *item)
{
    struct plan *plan = build->plan;
    const struct group_dimension *dimension = &plan->group.dimension[item->dimension];
    const struct primitive *primitive = item->primitive;
    item->lane_first = (uint8_t)plan->lane_count;
    for (uint32_t l = 0; l < primitive->lane_count; l++) {
        void *memory = NULL;
        uint64_t const seats = (uint64_t)item->size + 1; /* Who takes no part sends nothing. */
        STATUS_TRY(arena_try(build->arena, 2 * seats, sizeof(uint32_t), &memory, build->reterr));
        uint32_t *sends = memory, *arrivals = sends + seats;
        for (uint32_t at = 0; at < item->size; at++) {
            sends[at] = primitive->send_count(item->size, l, at);
            arrivals[at] = primitive->arrival_count(item->size, l, at);
        }
        SIM_ASSERT(plan->lane_count < PLAN_LANES_MAX);
        struct plan_lane *lane = &plan->lane[plan->lane_count++];
        *lane = (struct plan_lane){
            .item = (uint8_t)(item - plan->item),
            .lane = (uint8_t)l,
            .send_count = sends,
            .arrival_count = arrivals,
        };
        if (primitive->routed) continue;
        lane->leg_count = 1;
        lane->leg[0] = (struct plan_leg){
            .port = (uint8_t)machine_port(dimension->axis, l == 1),
            .hops = (uint16_t)dimension->stride,
        };
    }
    return STATUS_OK;
}

/* Half a chunk of an item: rounded up once, then exact multiples along the chain, so that what a
 * gather has collected is what the next one passes on. `together`: ranks that hold the same. */
static uint64_t unit_bytes(const struct build *build, uint64_t size_bytes, uint32_t order,
                           uint64_t exchanged, uint64_t together)
{
    units_wide const share = (units_wide)size_bytes * (uint64_t)build->shares.weight[order];
    units_wide pieces = (units_wide)build->pieces.count * (uint64_t)build->shares.total * 2;
    pieces *= group_rank_count(&build->plan->group);
    pieces *= exchanged;
    return (uint64_t)((share + pieces - 1) / pieces) * together;
}

/* Cuts an item of the level inside into portions, and has it, or the exchange behind it, wait for
 * what a portion needs. Both carry `together` times the smallest part in a piece. */
static void portions_set(const struct build *build, const struct chain *chain, uint32_t level,
                         struct plan_item *item)
{
    const struct level_overlap *overlap = &build->overlap;
    bool const gathers = item->primitive->kind == COLLECTIVE_ALL_GATHER;
    if (overlap->count == 0) return;
    if (level == 0) {
        if (!gathers) item->wait = overlap->reduce_wait;
        return;
    }
    item->portion_count = overlap->count;
    item->portion_end = gathers ? overlap->gather_end : overlap->reduce_end;
    item->portion_dimension = chain->dimension[0];
    item->unit_bytes /= overlap->nodes;
    if (gathers) item->wait = overlap->gather_wait;
}

enum status item_add(const struct build *build, const struct primitive *primitive, uint32_t order,
                     const struct chain *chain, uint32_t level, uint8_t *after)
{
    struct plan *plan = build->plan;
    bool const flat = chain == NULL;
    uint32_t const dimension = flat ? 0 : chain->dimension[level];
    uint64_t together = 1;
    uint32_t const size =
        flat ? (uint32_t)group_rank_count(&plan->group) : plan->group.dimension[dimension].size;
    bool const exchanges = primitive->kind == COLLECTIVE_ALL_TO_ALL;
    for (uint32_t j = 0; !flat && !exchanges && j < level; j++)
        together *= plan->group.dimension[chain->dimension[j]].size;
    SIM_ASSERT(plan->item_count < PLAN_ITEMS_MAX);
    struct plan_item *item = &plan->item[plan->item_count];
    *item = (struct plan_item){
        .primitive = primitive,
        .dimension = (uint8_t)dimension,
        .after = *after,
        .turn = PLAN_NO_ITEM,
        .order = (uint8_t)plan->order_count,
        .flat = flat,
        .cyclic = flat && primitive->translates && !primitive->digits,
        .size = size,
        .unit_bytes = unit_bytes(build,
                                 flat ? build->request->size_bytes
                                      : build_crossing_bytes(build->request, dimension),
                                 order, exchanges ? size : 1, together),
        .piece_count = build->pieces.count,
    };
    if (build_is_ragged(build))
        item->unit_bytes = units_ceil_divide(build->request->ragged.token_bytes, 2);
    if (!flat) portions_set(build, chain, level, item);
    STATUS_TRY(lanes_add(build, item));
    *after = (uint8_t)plan->item_count++;
    return STATUS_OK;
}

/* An AllReduce: sums are scattered from the innermost level out and gathered back in. */
static enum status all_reduce_add(const struct build *build, uint32_t order,
                                  const struct chain *chain, uint8_t *after)
{
    const struct choice *choice = build->choice;
    const struct primitive *whole = choice->whole[chain->dimension[0]];
    uint32_t const last = whole == NULL ? 0 : 1;
    for (uint32_t level = chain->count; level-- > last;)
        STATUS_TRY(
            item_add(build, choice->once[chain->dimension[level]], order, chain, level, after));
    if (whole != NULL) STATUS_TRY(item_add(build, whole, order, chain, 0, after));
    for (uint32_t level = last; level < chain->count; level++)
        STATUS_TRY(
            item_add(build, choice->gather[chain->dimension[level]], order, chain, level, after));
    return STATUS_OK;
}

static enum status order_add(const struct build *build, uint32_t order, uint8_t *after)
{
    const struct choice *choice = build->choice;
    enum collective_kind const kind = build->plan->kind;
    bool const inside_first =
        kind == COLLECTIVE_ALL_TO_ALL && !build_is_ragged(build) && !build->request->spreads;
    struct chain const chain =
        inside_first ? exchange_chain_of(&choice->levels, order) : chain_of(&choice->levels, order);
    if (kind == COLLECTIVE_ALL_REDUCE) return all_reduce_add(build, order, &chain, after);
    if (spanning_applies(choice, &build->plan->group, kind))
        return spanning_add(build, order, &chain, after);
    if (choice->by_axis) return rooted_add(build, order, &chain, after);
    if (choice->rooted != NULL && kind == COLLECTIVE_BROADCAST)
        STATUS_TRY(item_add(build, choice->rooted, order, NULL, 0, after));
    for (uint32_t j = 0; j < chain.count; j++) {
        bool const reversed = kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_REDUCE ||
                              build->request->ragged.returns;
        uint32_t const level = reversed ? chain.count - 1 - j : j;
        STATUS_TRY(
            item_add(build, choice->once[chain.dimension[level]], order, &chain, level, after));
    }
    if (choice->rooted != NULL && kind == COLLECTIVE_REDUCE)
        return item_add(build, choice->rooted, order, NULL, 0, after);
    return STATUS_OK;
}

static enum status flat_add(const struct build *build, uint8_t *after)
{
    const struct choice *choice = build->choice;
    const struct primitive *first = choice->whole[0] != NULL ? choice->whole[0] : choice->once[0];
    STATUS_TRY(item_add(build, first, 0, NULL, 0, after));
    if (build->plan->kind != COLLECTIVE_ALL_REDUCE || choice->whole[0] != NULL) return STATUS_OK;
    return item_add(build, choice->gather[0], 0, NULL, 0, after);
}

static enum status orders_add(const struct build *build)
{
    struct plan *plan = build->plan;
    uint32_t const grid_count = build->choice->levels.grid_count;
    bool const one = build->choice->flat || grid_count == 0 || build_is_ragged(build);
    uint32_t const orders = one ? 1 : grid_count;
    for (uint32_t k = 0; k < orders; k++) {
        if (build->shares.weight[k] == 0) continue;
        uint8_t after = PLAN_NO_ITEM;
        STATUS_TRY(build->choice->flat ? flat_add(build, &after) : order_add(build, k, &after));
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

/* Links serve first come, first served, chunk by chunk: behind the large chunks of a last gather
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

/* What runs along a dimension: the first of its items, for an AllReduce may gather otherwise than
 * it adds. NULL: nothing does. */
static const struct primitive *runs_along(const struct build *build, uint32_t dimension)
{
    const struct plan *plan = build->plan;
    const struct primitive *whole = build->choice->whole[dimension];
    for (uint32_t i = 0; i < plan->item_count; i++) {
        if (plan->item[i].dimension != dimension || plan->item[i].flat) continue;
        return whole != NULL ? whole : plan->item[i].primitive;
    }
    return NULL;
}

/* What the levels of a plan go by, the innermost first. */
struct goes_by {
    struct algorithm levels; /* ALGORITHM_LEVELS */
    bool asked; /* Axes of the grid go by others than suit them: what was asked for says it all. */
};

static void level_add(struct goes_by *by, struct algorithm_level level)
{
    SIM_ASSERT(by->levels.level_count < ALGORITHM_LEVELS_MAX);
    by->levels.level[by->levels.level_count++] = level;
}

/* Where `auto` has the axes of a grid differ, they are two levels: "ring+line". */
static void dimensions_add(const struct build *build, const uint8_t *dimension, uint32_t count,
                           struct goes_by *by)
{
    const struct primitive *last = NULL;
    struct algorithm const mixed = choice_mixed();
    bool alike = true, suited = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const d = dimension[i];
        const struct primitive *const here = runs_along(build, d);
        if (here == NULL) continue;
        suited =
            suited && here->family == choice_suited(build->request, here->kind, d, build->choice);
        alike = alike && (last == NULL || last->family == here->family);
        last = here;
    }
    if (last == NULL) return;
    if (alike) {
        level_add(by, (struct algorithm_level){ALGORITHM_FAMILY, last->family, NULL});
        return;
    }
    by->asked = by->asked || !suited;
    for (uint32_t i = 0; i < mixed.level_count; i++) level_add(by, mixed.level[i]);
}

static struct algorithm joined(const struct algorithm *levels)
{
    bool alike = levels->level[0].means == ALGORITHM_FAMILY;
    for (uint32_t i = 1; i < levels->level_count; i++)
        alike = alike && levels->level[i].means == ALGORITHM_FAMILY &&
                levels->level[i].family == levels->level[0].family;
    return alike ? algorithm_by(levels->level[0].family) : *levels;
}

/* What would build this plan again. */
static struct algorithm built_by(const struct build *build)
{
    const struct choice *choice = build->choice;
    const struct levels *levels = &choice->levels;
    const struct plan *plan = build->plan;
    struct goes_by by = {.levels = {.means = ALGORITHM_LEVELS}};
    if (choice->rooted != NULL) return (struct algorithm){.means = ALGORITHM_SCATTER_GATHER};
    if (choice->by_axis) return rooted_algorithm(build);
    if (choice->flat) {
        struct algorithm algorithm = algorithm_by(plan->item[0].primitive->family);
        algorithm.flat = !collective_is_rooted(plan->kind);
        return algorithm;
    }
    dimensions_add(build, levels->grid, levels->grid_count, &by);
    for (uint32_t i = levels->outer_count; i-- > 0;)
        dimensions_add(build, &levels->outer[i], 1, &by);
    return by.asked ? build->request->algorithm : joined(&by.levels);
}

enum status compose(struct arena *arena, const struct plan_request *request, const char *where,
                    const struct choice *choice, struct plan *plan, struct error *reterr)
{
    struct build build = {.arena = arena,
                          .request = request,
                          .where = where,
                          .choice = choice,
                          .plan = plan,
                          .reterr = reterr};
    STATUS_TRY(compose_split(&build));
    STATUS_TRY(orders_add(&build));
    if (build.pieces.turns) turns_set(plan);
    if (choice->by_axis && plan->kind == COLLECTIVE_REDUCE) rooted_turns_set(plan);
    plan->algorithm = built_by(&build);
    return STATUS_OK;
}
