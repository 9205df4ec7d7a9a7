/* What is constant about a lane of a routed primitive. */
#include "sim/base/arena.h"
#include "sim/replay/tree.h"

/* Steps looked at one by one, to find whether any waits. */
static const uint64_t steps_looked_at_max = UINT64_C(1) << 22;

static uint32_t bits_for(uint64_t count)
{
    uint32_t bits = 0;
    while (count > UINT64_C(1) << bits) bits++;
    return bits;
}

static uint32_t most(const uint32_t *count, uint32_t positions)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < positions; i++) result = count[i] > result ? count[i] : result;
    return result;
}

/* All positions, or the one that speaks for them. */
static uint32_t positions_of(const struct lane_table *lane)
{
    return lane->ring ? 1 : lane->size;
}

/* The lanes of the lane's item in which some step waits for arrivals of this one; bits. */
static uint64_t lanes_that_wait(const struct plan *plan, const struct lane_table *lane)
{
    if (plan->script != NULL) return UINT64_MAX; /* Its messages wait for those of several lanes. */
    uint32_t const positions = positions_of(lane);
    uint64_t left = steps_looked_at_max, waits = 0;
    for (uint32_t l = 0; l < lane->primitive->lane_count; l++) {
        const uint32_t *send_count = plan->lane[lane->item->lane_first + l].send_count;
        for (uint32_t position = 0; position < positions; position++)
            for (uint32_t s = 0; s < send_count[position]; s++) {
                struct primitive_step const step = plan_step(plan, lane->item, l, position, s);
                if (left-- == 0) return UINT64_MAX;
                if (step.arrivals > 0 && step.wait_lane == lane->lane) waits |= lane_bit(l);
            }
    }
    return waits;
}

/* The least shift along an axis that maps what the item does onto itself, in chips. */
static uint32_t shift_of(const struct routed_lane *routed, uint32_t axis)
{
    for (uint32_t d = 0; d < routed->plan->group.dimension_count; d++) {
        const struct group_dimension *dimension = &routed->plan->group.dimension[d];
        if (dimension->axis != axis || !(routed->item->flat || routed->item->dimension == d))
            continue;
        uint32_t const shift = plan_item_shift(routed->plan, routed->item, d);
        return shift == 1 ? 1 : shift * dimension->stride;
    }
    return 1;
}

/* The period of a shift along an axis that takes the links which a message may have to queue for
 * to other links (routed.h): boxes of queueing tiers, and the extent where positions differ. */
static uint32_t tie_period(const struct replay *replay, const struct lane_table *lane,
                           uint32_t axis)
{
    const struct routed_lane *routed = lane->routed;
    uint32_t const length = replay->machine->shape[axis];
    /* Senders of a message number are displaced alike. */
    bool const translates = lane->primitive->translates && !lane->item->cyclic &&
                            routed->plan->ragged_units == NULL && routed->plan->script == NULL;
    uint32_t period = 1;
    bool const closes = routed->extent[axis] == replay->routes->paths.length[axis];
    if (routed->axes >> axis & 1 && routed->twisted && !(translates && closes))
        period = routed->extent[axis];
    else if (routed->axes >> axis & 1 && !translates)
        period = shift_of(routed, axis);
    for (uint32_t index = 0; index < replay->routes->level_count && routed->switched; index++) {
        const struct level_links *links = &replay->routes->level[index];
        for (uint32_t t = 1; t < links->level->tier_count; t++) {
            uint32_t const box = links->level->tier[t - 1].box[axis];
            if (links->tier[t].queues && box > 1) period = level_shift(period, box, length);
        }
    }
    /* A shift has to take groups to groups too, or displacements that go around one do not. */
    uint32_t const extent = routed->extent[axis];
    if (extent % period != 0 && period % extent != 0) period = level_shift(period, extent, length);
    return period;
}

static enum status axis_build(struct arena *arena, const struct replay *replay,
                              struct lane_table *lane, uint32_t axis, uint64_t *ties,
                              struct error *reterr)
{
    struct routed_lane *routed = lane->routed;
    uint32_t const length = replay->machine->shape[axis];
    uint32_t const period = tie_period(replay, lane, axis), extent = routed->extent[axis];
    void *end = NULL, *tie = NULL;
    STATUS_TRY(arena_try(arena, length, sizeof(uint32_t), &end, reterr));
    STATUS_TRY(arena_try(arena, length, sizeof(uint32_t), &tie, reterr));
    routed->end[axis] = end;
    routed->tie[axis] = tie;
    for (uint32_t at = 0; at < length; at++) {
        routed->end[axis][at] = at / extent * extent + extent;
        routed->tie[axis][at] = at % period * (uint32_t)*ties;
    }
    *ties *= period;
    return STATUS_OK;
}

/* Steps of a primitive whose positions are alike, with displacements digit by digit. */
static enum status steps_build(struct arena *arena, struct lane_table *lane, struct error *reterr)
{
    static const uint32_t first[MACHINE_AXES_MAX];
    struct routed_lane *routed = lane->routed;
    uint32_t const count = lane->steps.send_count[0];
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof *routed->steps, &memory, reterr));
    struct routed_step *steps = memory;
    for (uint32_t number = 0; number < count; number++) {
        struct primitive_step const step =
            plan_step(routed->plan, routed->item, lane->lane, 0, number);
        struct routed_step *own = &steps[number];
        *own = (struct routed_step){.units = step.units, .slot = step.slot};
        uint32_t peer = step.peer;
        const uint8_t *digit = NULL;
        for (uint32_t i = plan_item_digits(routed->plan, routed->item, &digit); i-- > 0;) {
            const struct group_dimension *dimension = &routed->plan->group.dimension[digit[i]];
            own->by.at[dimension->axis] = peer % dimension->size * dimension->stride;
            peer /= dimension->size;
        }
        own->antipode = path_antipode_by(&routed->balance, first, own->by.at);
    }
    routed->guide = ROUTED_BY_STEP;
    routed->steps = steps;
    return STATUS_OK;
}

/* Whether all messages of a number go alike: round whole axes, over links all alike. */
static bool go_together(const struct replay *replay, const struct routed_lane *routed)
{
    bool together = !routed->switched && routed->balance.by_sender == 0 && !routed->twisted &&
                    replay->fold->link_class == NULL;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        together = together && (routed->extent[axis] == 1 ||
                                routed->extent[axis] == replay->routes->paths.length[axis]);
    return together;
}

/* Slots of a step in which collectives surely come again, or pieces of a collective. */
enum { AGAIN_LEAST = 4 };

/* Room for the places that messages come to, where they are few. */
static enum status ways_build(struct arena *arena, const struct replay *replay,
                              struct lane_table *lane, struct error *reterr)
{
    struct routed_lane *routed = lane->routed;
    uint32_t const hops = path_links_most(replay->machine, routed->axes);
    bool const differ = routed->guide == ROUTED_BY_POSITION;
    /* Of a ragged exchange each piece has units of its own, and else portions of a piece do. */
    routed->places.pieces = lane->item->ragged_units != NULL ? lane->piece_count : lane->portions;
    uint64_t const messages =
        differ ? (uint64_t)most(lane->steps.send_count, positions_of(lane)) * routed->places.pieces
               : lane->steps.send_count[0];
    uint64_t const count = messages * hops * replay->chip_count;
    /* To remember is work, and pays where a step asks again. */
    if (differ && replay->program->roles[0].slot_count < AGAIN_LEAST &&
        lane->piece_count / routed->places.pieces < AGAIN_LEAST)
        return STATUS_OK;
    bool const steps = routed->guide == ROUTED_BY_STEP || routed->guide == ROUTED_BY_AXIS;
    if ((!steps && !differ) || count > ROUTED_WAYS_MAX) return STATUS_OK;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof *routed->places.ways, &memory, reterr));
    routed->guide = differ ? ROUTED_BY_PLACE : ROUTED_BY_WAY;
    routed->places.ways = memory;
    routed->places.hops = hops;
    return STATUS_OK;
}

static enum status inbox_build(struct arena *arena, const struct replay *replay,
                               struct lane_table *lane, struct error *reterr)
{
    struct routed_lane *routed = lane->routed;
    const struct plan *plan = routed->plan;
    uint64_t const rows = (uint64_t)replay->chip_count * EPOCHS_AHEAD;
    bool const pieces = lane->piece_count > 1 &&
                        (lane->waits || lane->chain.behind_count > 0 || plan->part_count > 1);
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, rows, sizeof *routed->ahead, &memory, reterr));
    routed->ahead = memory;
    STATUS_TRY(arena_try(arena, rows, sizeof *routed->ahead_units, &memory, reterr));
    routed->ahead_units = memory;
    if (!lane->primitive->ordered && !pieces && !lane->chain.led_by_message) return STATUS_OK;
    uint64_t const slots =
        (uint64_t)most(lane->steps.arrival_count, positions_of(lane)) * lane->piece_count;
    routed->words = (uint32_t)((slots + 63) / 64);
    STATUS_TRY(arena_try(arena, rows * routed->words, sizeof *routed->slots, &memory, reterr));
    routed->slots = memory;
    return STATUS_OK;
}

static enum status order_check(const struct replay *replay, struct lane_table *lane, uint64_t ties,
                               struct error *reterr)
{
    struct routed_lane *routed = lane->routed;
    uint64_t const sends =
        (uint64_t)most(lane->steps.send_count, positions_of(lane)) * lane->piece_count;
    uint32_t const hops = path_links_most(replay->machine, routed->axes) + 2;
    uint32_t const tree_hops = TREE_STEPS * LEVEL_TIERS_MAX;
    uint32_t const hop_bits = bits_for(hops > tree_hops ? hops : tree_hops);
    routed->tie_bits = (uint8_t)bits_for(ties);
    routed->number_bits = (uint8_t)bits_for(sends);
    if (replay->lanes.plan_count > 1u << KEY_ROUTED_PLAN_BITS)
        return error_set(reterr, STATUS_LIMIT, "/workload",
                         "more than %u different collectives, some over switches",
                         1u << KEY_ROUTED_PLAN_BITS);
    if (routed->tie_bits + routed->number_bits + hop_bits > KEY_WHAT_BITS)
        return error_set(reterr, STATUS_LIMIT, "/workload",
                         "%s \"%s\" over %u ranks, of %llu messages a rank, is more than the order "
                         "of events can tell apart",
                         collective_kind_name(lane->primitive->kind),
                         primitive_algorithm(lane->primitive), lane->size,
                         (unsigned long long)sends);
    return STATUS_OK;
}

/* Whether some way joins all members: the grid, or a level whose highest units hold whole extents.
 */
static enum status reach_check(const struct replay *replay, const struct lane_table *lane,
                               struct error *reterr)
{
    const struct routed_lane *routed = lane->routed;
    const struct routes *routes = replay->routes;
    if (!routed->switched) return STATUS_OK;
    for (uint32_t index = 0; index < routes->level_count; index++) {
        const struct level_links *links = &routes->level[index];
        const struct path_tier *top = &links->path->tier[links->level->tier_count - 1];
        bool joins = true;
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
            for (uint32_t at = 0; routed->axes >> axis & 1 && at < replay->machine->shape[axis];
                 at += routed->extent[axis])
                joins = joins &&
                        top->unit_at[axis][at] == top->unit_at[axis][routed->end[axis][at] - 1];
        if (joins) return STATUS_OK;
    }
    return error_set(reterr, STATUS_UNSUPPORTED, "/mesh",
                     "no level of the machine joins all %u members of a group", lane->size);
}

enum status routed_build(struct arena *arena, struct replay *replay, const struct plan *plan,
                         struct lane_table *lane, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof *lane->routed, &memory, reterr));
    struct routed_lane *routed = lane->routed = memory;
    routed->plan = plan;
    routed->item = lane->item;
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++)
        routed->extent[axis] = routed->stride[axis] = 1;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *dimension = &plan->group.dimension[d];
        if (!lane->item->flat && lane->item->dimension != d) continue;
        routed->axes |= 1u << dimension->axis;
        routed->switched = routed->switched || dimension->switched;
        routed->stride[dimension->axis] = dimension->stride;
        routed->extent[dimension->axis] = dimension->size * dimension->stride;
    }
    /* Along one axis nothing is shorter than the plain way. */
    uint32_t const grid = routed->axes & ((1u << replay->machine->grid_axis_count) - 1);
    routed->twisted = replay->routes->paths.twisted != NULL && (grid & (grid - 1)) != 0;
    for (uint32_t way = 0; way <= LEVELS_MAX; way++)
        routed->overhead_ps[way] =
            replay->machine->chip.launch.message_ps + plan->protocol.message_ps[way];
    /* Links lead to each peer of a node. A flat group over more axes also sends to chips elsewhere:
     * all of these messages are put on its NIC at once. So are a chain's pieces on the link to its
     * one peer. */
    for (uint32_t axis = 0; axis < replay->machine->axis_count && plan->script == NULL; axis++)
        if (routed->axes >> axis & 1 && machine_is_meshed(replay->machine, axis))
            lane->abreast = true;
    uint64_t ties = 1;
    for (uint32_t axis = MACHINE_AXES_MAX; axis-- > 0;)
        STATUS_TRY(axis_build(arena, replay, lane, axis, &ties, reterr));
    STATUS_TRY(reach_check(replay, lane, reterr));
    routed->balance = plan_item_balance(replay->machine, plan, lane->item);
    if (lane->primitive->network != PRIMITIVE_NETWORK_NONE) {
        STATUS_TRY(tree_build(arena, replay, lane, reterr));
        routed->guide = ROUTED_BY_TREE;
        ties *= lane->size; /* How far it is to the receiver or the source. */
    }
    routed->wakes = lanes_that_wait(plan, lane);
    lane->waits = routed->wakes != 0;
    if (lane->ring && routed->guide != ROUTED_BY_TREE) STATUS_TRY(steps_build(arena, lane, reterr));
    if (routed->guide == ROUTED_BY_STEP && go_together(replay, routed))
        routed->guide = ROUTED_TOGETHER;
    bool const along = routed->switched && (routed->axes & (routed->axes - 1)) == 0;
    if (routed->guide == ROUTED_BY_STEP && along) {
        routed->guide = ROUTED_BY_AXIS;
        routed->axis = (uint32_t)__builtin_ctz(routed->axes);
    }
    STATUS_TRY(ways_build(arena, replay, lane, reterr));
    for (uint32_t i = 0; i < ROUTED_COSTS; i++) {
        STATUS_TRY(arena_try(arena, replay->routes->kind_count, sizeof(int64_t), &memory, reterr));
        routed->costs[i].link_ps = memory;
        STATUS_TRY(arena_try(arena, replay->routes->kind_count, sizeof(uint64_t), &memory, reterr));
        routed->costs[i].bytes = memory;
    }
    STATUS_TRY(order_check(replay, lane, ties, reterr));
    return inbox_build(arena, replay, lane, reterr);
}

uint64_t routed_bound(const struct lane_table *lane)
{
    uint64_t const sends =
        (uint64_t)most(lane->steps.send_count, positions_of(lane)) * lane->piece_count;
    if (lane->routed->guide == ROUTED_BY_TREE) return tree_bound(lane);
    return 2 * sends + 2;
}

void routed_cost_fill(const struct replay *replay, const struct lane_table *lane, uint32_t units,
                      struct routed_cost *cost)
{
    const struct routed_lane *routed = lane->routed;
    cost->units = units;
    uint64_t const payload = units * routed->item->unit_bytes;
    uint32_t const far_first = replay->fold->link_class_count + LEVEL_TIERS_MAX;
    cost->memory = lane_message_cost(replay, routed->plan, lane->primitive, payload);
    cost->slowest_ps = 0;
    for (uint32_t kind = 0; kind < replay->routes->kind_count; kind++) {
        cost->bytes[kind] = lane_wire_bytes(routed->plan, payload, kind >= far_first);
        cost->link_ps[kind] =
            replay->routes->rate[kind] == 0
                ? 0
                : units_duration_ps(cost->bytes[kind], replay->routes->rate[kind]);
        if (cost->link_ps[kind] > cost->slowest_ps) cost->slowest_ps = cost->link_ps[kind];
    }
}

void routed_ahead(struct replay *replay, uint64_t key, uint32_t chip)
{
    (void)key;
    __builtin_prefetch(&replay->routes->places[chip]);
}
