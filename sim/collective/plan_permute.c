#include "sim/collective/plan_permute.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"

/* The shortest way round a ring, forwards if both are as long; on a line the only one. */
static int64_t way(const struct group_dimension *dimension, int32_t offset)
{
    int64_t const size = dimension->size;
    if (!dimension->ring) return offset;
    int64_t const forward = ((int64_t)offset % size + size) % size;
    return 2 * forward <= size ? forward : forward - size;
}

static enum status counts_fill(struct arena *arena, const struct group_dimension *dimension,
                               int64_t distance, struct plan_lane *lane, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 2 * (uint64_t)dimension->size, sizeof(uint32_t), &memory, reterr));
    uint32_t *sends = memory, *arrivals = sends + dimension->size;
    int64_t const size = dimension->size;
    for (int64_t at = 0; at < size; at++) {
        int64_t const to = at + distance, from = at - distance;
        sends[at] = dimension->ring || (to >= 0 && to < size);
        arrivals[at] = dimension->ring || (from >= 0 && from < size);
    }
    lane->send_count = sends;
    lane->arrival_count = arrivals;
    return STATUS_OK;
}

/* Where switches serve a dimension that the displacement crosses, every rank has a target. */
static bool crosses_switches(const struct plan *plan)
{
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if (plan->group.dimension[d].switched &&
            plan->permute.offset[d] % (int64_t)plan->group.dimension[d].size != 0)
            return true;
    return false;
}

/* One message from each rank, of a primitive that names its receivers. */
static enum status one_each(struct arena *arena, const struct primitive *primitive,
                            struct plan *plan, struct error *reterr)
{
    uint32_t const ranks = (uint32_t)group_rank_count(&plan->group);
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, ranks, sizeof(uint32_t), &memory, reterr));
    uint32_t *ones = memory;
    for (uint32_t r = 0; r < ranks; r++) ones[r] = 1;
    plan->item[0] = (struct plan_item){
        .primitive = primitive,
        .after = PLAN_NO_ITEM,
        .turn = PLAN_NO_ITEM,
        .last = true,
        .size = ranks,
        .unit_bytes = units_ceil_divide(plan->size_bytes, 2),
        .piece_count = 1,
    };
    plan->lane[0] = (struct plan_lane){.send_count = ones, .arrival_count = ones};
    plan->item_count = plan->lane_count = plan->order_count = 1;
    return STATUS_OK;
}

/* The same over all dimensions together. */
static enum status one_each_flat(struct arena *arena, struct plan *plan, struct error *reterr)
{
    const struct primitive *routed = primitive_find(COLLECTIVE_PERMUTE, PRIMITIVE_SHIFT, true);
    STATUS_TRY(one_each(arena, routed, plan, reterr));
    plan->item[0].flat = true;
    return STATUS_OK;
}

static enum status routed_build(struct arena *arena, const char *where, struct plan *plan,
                                struct error *reterr)
{
    const struct group *group = &plan->group;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        int64_t const size = dimension->size;
        if (!dimension->ring && !dimension->switched && plan->permute.offset[d] != 0)
            return error_set(reterr, STATUS_UNSUPPORTED, where,
                             "a permute through switches and along %s, which has no wraparound, "
                             "at once; do one after the other",
                             dimension->name);
        plan->permute.offset[d] = (int32_t)((plan->permute.offset[d] % size + size) % size);
    }
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        uint32_t const d = plan->flat_dimension[i];
        plan->permute.peer =
            plan->permute.peer * group->dimension[d].size + (uint32_t)plan->permute.offset[d];
    }
    return one_each_flat(arena, plan, reterr);
}

/* Each rank sends to the one at a fixed distance after it, the last to the first: neighbours in the
 * innermost level mostly, and where that ends in the next. */
static enum status shift_build(struct arena *arena, const char *where, struct plan *plan,
                               struct error *reterr)
{
    const struct group *group = &plan->group;
    int64_t const ranks = (int64_t)group_rank_count(group);
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (!group->dimension[d].switched)
            return error_set(reterr, STATUS_UNSUPPORTED, where,
                             "a shift by ranks over several axes goes through switches, and %s has "
                             "links of a grid",
                             group->dimension[d].name);
    plan->permute.peer = (uint32_t)((plan->permute.shift % ranks + ranks) % ranks);
    STATUS_TRY(one_each_flat(arena, plan, reterr));
    plan->item[0].cyclic = true;
    return STATUS_OK;
}

static uint32_t one_message(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    (void)position;
    return 1;
}

static struct primitive_step mirror_step(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    (void)lane;
    (void)step;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = size - 1 - position};
}

static struct primitive_move mirror_move(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step, uint32_t move)
{
    (void)lane;
    (void)step;
    (void)move;
    return (struct primitive_move){
        .source = position, .destination = size - 1 - position, .halves = PRIMITIVE_HALVES};
}

static struct primitive_cost mirror_cost(uint32_t size)
{
    (void)size;
    return (struct primitive_cost){.depth = 1, .units = 2, .port_units = 2};
}

/* Not in the catalogue: nobody asks for it but pipelines of two copies. */
static const struct primitive mirror = {
    .name = "permute_mirror",
    .help = "every rank sends one message to the one as far from the other end",
    .source = "github.com/deepseek-ai/DualPipe: ranks i and p-1-i hold the same two stages",
    .kind = COLLECTIVE_PERMUTE,
    .family = PRIMITIVE_SHIFT,
    .lane_count = 1,
    .routed = true,
    .send_count = one_message,
    .arrival_count = one_message,
    .step = mirror_step,
    .move = mirror_move,
    .cost = mirror_cost,
};

/* Each pair is as far apart as it is: messages name their receivers, on grids too. */
static enum status mirror_build(struct arena *arena, const char *where, struct plan *plan,
                                struct error *reterr)
{
    const struct group_dimension *dimension = &plan->group.dimension[0];
    if (plan->group.dimension_count != 1 || dimension->size % 2 != 0)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "ranks are mirrored along one axis, of which they are an even number");
    return one_each(arena, &mirror, plan, reterr);
}

enum status plan_permute_build(struct arena *arena, const char *where, struct plan *plan,
                               struct error *reterr)
{
    const struct group *group = &plan->group;
    struct plan_lane lane = {0};
    uint32_t lines = 0, counted = 0;
    if (plan->permute.shift != 0) return shift_build(arena, where, plan, reterr);
    if (plan->permute.mirrors) return mirror_build(arena, where, plan, reterr);
    if (crosses_switches(plan)) return routed_build(arena, where, plan, reterr);
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        if (dimension->switched) continue; /* A whole number of turns. */
        int64_t const distance = way(dimension, plan->permute.offset[d]);
        int64_t const members = distance < 0 ? -distance : distance;
        plan->permute.offset[d] = (int32_t)distance;
        if (members == 0) continue;
        if (members >= dimension->size)
            return error_set(reterr, STATUS_INVALID, where,
                             "a shift by %lld reaches nobody on a line of %u", (long long)distance,
                             dimension->size);
        if (members * dimension->stride > UINT16_MAX)
            return error_set(reterr, STATUS_LIMIT, where, "a route of more than %u links",
                             UINT16_MAX);
        /* Who sends is known by the position in one dimension: on rings everybody does. */
        if (lane.leg_count == 0 || !dimension->ring) counted = d;
        if (!dimension->ring && lines++ > 0)
            return error_set(reterr, STATUS_UNSUPPORTED, where,
                             "a permute along two axes without wraparound at once; "
                             "do one after the other");
        lane.leg[lane.leg_count++] = (struct plan_leg){
            .port = (uint8_t)machine_port(dimension->axis, distance < 0),
            .hops = (uint16_t)(members * dimension->stride),
        };
    }
    if (lane.leg_count == 0) return STATUS_OK;
    STATUS_TRY(counts_fill(arena, &group->dimension[counted], plan->permute.offset[counted], &lane,
                           reterr));
    plan->item[0] = (struct plan_item){
        .primitive = primitive_find(COLLECTIVE_PERMUTE, PRIMITIVE_SHIFT, false),
        .dimension = (uint8_t)counted,
        .size = group->dimension[counted].size,
        .after = PLAN_NO_ITEM,
        .turn = PLAN_NO_ITEM,
        .last = true,
        .unit_bytes = units_ceil_divide(plan->size_bytes, 2),
        .piece_count = 1,
    };
    plan->lane[0] = lane;
    plan->item_count = plan->lane_count = plan->order_count = 1;
    return STATUS_OK;
}
