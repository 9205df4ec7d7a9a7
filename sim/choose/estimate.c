#include "sim/choose/estimate.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/units.h"
#include "sim/choose/contention.h"
#include "sim/choose/ecmp_collisions.h"
#include "sim/choose/item_links.h"
#include "sim/collective/ragged.h"
#include "sim/collective/spanning.h"
#include "sim/roofline/level_rate.h"

enum { WAYS = CONTENTION_WIRES }; /* Wires: axes of the grid, then levels. */

/* What an item costs. Times of bytes are for all pieces together. */
struct cost {
    double latency_s;      /* Time of the first piece on its ways, without bytes. */
    double wire_s[WAYS];   /* Time of the bytes on each wire. */
    double serial_s;       /* Time of the bytes, one message after the other. */
    double next_latency_s; /* How much later each further piece is, without bytes. */
    double next_s;         /* How much later all further pieces are together, with bytes. */
};

struct estimator {
    const struct machine *machine;
    const struct plan *plan;
    double wire;     /* Bytes on the wire for one. */
    double far_wire; /* The same between nodes. */
    struct contention_cache *known;
};

static double log2_up(double value)
{
    double log = 0;
    for (double reach = 1; reach < value; reach *= 2) log++;
    return log;
}

/* From one member to the farthest along a dimension, once; NCCL's or another protocol's own time
 * with it. */
static double message_s(const struct estimator *estimator, uint32_t dimension)
{
    const struct machine *machine = estimator->machine;
    const struct group_dimension *at = &estimator->plan->group.dimension[dimension];
    const struct plan_protocol *protocol = &estimator->plan->protocol;
    double const own = units_seconds(machine->chip.launch.message_ps);
    uint8_t const index = machine->axis_level[at->axis];
    if (index == LEVEL_NONE)
        return own + at->stride * units_seconds(machine->chip.hop_latency_ps) +
               units_seconds(protocol->message_ps[0]);
    return own +
           units_seconds(level_latency_ps(machine, at) + protocol->message_ps[1 + (size_t)index]);
}

/* What a chip has of a dimension's wires, one way: its share of a level's cables, or a link, the
 * slowest that an item uses. NULL: any. */
static double rate_of(const struct estimator *estimator, const struct plan_item *item,
                      uint32_t dimension)
{
    const struct machine *machine = estimator->machine;
    const struct group_dimension *at = &estimator->plan->group.dimension[dimension];
    if (machine->axis_level[at->axis] == LEVEL_NONE)
        return item_links_rate(machine, estimator->plan, item, dimension) / at->stride;
    if (item != NULL && item->primitive->network != PRIMITIVE_NETWORK_NONE)
        return ecmp_network_rate(machine, at->axis);
    return level_rate(machine, at->axis);
}

static uint32_t wire_of(const struct estimator *estimator, uint32_t dimension)
{
    uint8_t const index =
        estimator->machine->axis_level[estimator->plan->group.dimension[dimension].axis];
    return index == LEVEL_NONE ? estimator->plan->group.dimension[dimension].axis
                               : MACHINE_AXES_MAX + (uint32_t)index;
}

static bool takes(const struct plan_item *item, uint32_t dimension)
{
    return item->flat || item->dimension == dimension;
}

/* Bytes on a dimension's wires for one of payload. */
static double wire_bytes_of(const struct estimator *estimator, uint32_t dimension)
{
    return wire_of(estimator, dimension) > MACHINE_AXES_MAX ? estimator->far_wire : estimator->wire;
}

/* Bytes on an item's wires for one of payload: of messages by several levels those of the farthest.
 */
static double item_bytes_of(const struct estimator *estimator, const struct plan_item *item)
{
    uint32_t far = item->dimension;
    for (uint32_t d = 0; item->flat && d < estimator->plan->group.dimension_count; d++)
        if (d == 0 || wire_of(estimator, d) > wire_of(estimator, far)) far = d;
    return wire_bytes_of(estimator, far);
}

/* Links between partners at distance 1, 2, 4, ... along an axis, all together. */
static double doubling_links(const struct group_dimension *at)
{
    double links = 0;
    for (double apart = 1; apart < at->size; apart *= 2)
        links += at->ring ? fmin(apart, at->size - apart) : apart;
    return links;
}

/* The hops of messages in series on the grid: one each between neighbours, all distances in turn,
 * or once along all axes. Returns the ranks that the grid joins. */
static double grid_latency_s(const struct estimator *estimator, const struct plan_item *item,
                             const struct primitive_cost *of, double ranks, double *ret_latency_s)
{
    const struct plan *plan = estimator->plan;
    double here = 1, far = 0, doubling = 0, hop = 0, overridden = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        if (!takes(item, d) || at->switched) continue;
        double const once = message_s(estimator, d);
        here *= at->size;
        far += (at->ring ? at->size / 2 : at->size - 1) * once;
        doubling += doubling_links(at) * once;
        hop = fmax(hop, once);
        overridden += item_links_hop_s(estimator->machine, plan, item, d);
    }
    *ret_latency_s = doubling * of->depth / log2_up(ranks);
    if (of->reach == PRIMITIVE_REACH_NEXT) *ret_latency_s = (ranks - ranks / here) * hop;
    if (of->depth == 1) *ret_latency_s = far;
    *ret_latency_s += overridden;
    return here;
}

/* Messages in series, each as long as its way: over the grid, or once through a level. A ring
 * crosses a farther level where its nearer ones end; doubling distances come to it once they have
 * passed these. */
static double routed_latency_s(const struct estimator *estimator, const struct plan_item *item,
                               const struct primitive_cost *of, double ranks)
{
    const struct plan *plan = estimator->plan;
    double total = 0;
    double inside = grid_latency_s(estimator, item, of, ranks, &total);
    double longest = total;
    for (uint32_t wire = MACHINE_AXES_MAX; wire < WAYS; wire++) {
        double here = 1, way = 0;
        for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
            if (!takes(item, d) || wire_of(estimator, d) != wire) continue;
            here *= plan->group.dimension[d].size;
            way = fmax(way, message_s(estimator, d));
        }
        if (here == 1) continue;
        longest = fmax(longest, way);
        if (of->reach == PRIMITIVE_REACH_NEXT)
            total += (ranks / inside - ranks / (inside * here)) * way;
        else
            total += of->depth * (log2_up(inside * here) - log2_up(inside)) / log2_up(ranks) * way;
        inside *= here;
    }
    return of->depth == 1 ? longest : total;
}

/* How often the busiest link of an axis carries what a member sends in series. An exchange goes
 * half through the middle, and round an even ring to the far side all one way unless it is dealt
 * out; doubling distances take as many links; to and from a root there are two ways round. */
static double grid_share(const struct primitive *primitive, enum primitive_reach reach,
                         const struct group_dimension *at, double ranks)
{
    double const size = at->size, middle = floor(size / 2), ways = at->ring ? 2 : 1;
    bool const one_way = primitive->kind != COLLECTIVE_ALL_TO_ALL && at->ring && at->size % 2 == 0;
    switch (reach) {
    case PRIMITIVE_REACH_NEXT:
    case PRIMITIVE_REACH_NEAR:
        return 1;
    case PRIMITIVE_REACH_ALL:
        if (collective_is_rooted(primitive->kind)) return 1 / ways;
        return ranks / (ranks - 1) * middle * (size - middle) / size *
               (one_way ? 1 + 2 / size : 1) / ways;
    case PRIMITIVE_REACH_DOUBLING:
        return doubling_links(at) / log2_up(size);
    case PRIMITIVE_REACH_SCALED:
        return (size + 1) / 3;
    }
    return 1;
}

/* Of what is sent in series, how much passes the busiest port. */
static double port_share(const struct primitive_cost *cost)
{
    return cost->units > 0 ? (double)cost->port_units / (double)cost->units : 1;
}

/* What routed messages take of a wire. Between levels each takes the farthest in which its ends
 * differ. `inside`: members that nearer levels join. Returns how many this one joins. */
static double add_routed(const struct estimator *estimator, const struct plan_item *item,
                         const struct primitive_cost *of, double bytes, uint32_t wire,
                         double inside, struct cost *cost)
{
    const struct plan *plan = estimator->plan;
    double const ranks = item->size;
    double here = 1, time_s = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        const struct group_dimension *at = &plan->group.dimension[d];
        if (!takes(item, d) || wire_of(estimator, d) != wire) continue;
        here *= at->size;
        double passed = of->paired ? inside * (here - 1) / (ranks - 1) : 1;
        if (!at->switched) passed = grid_share(item->primitive, of->reach, at, ranks);
        time_s = bytes * passed /
                 fmin(rate_of(estimator, item, d),
                      level_mesh_rate(estimator->machine, at, of->paired ? at->size - 1 : 1));
    }
    cost->wire_s[wire] += time_s * port_share(of);
    cost->serial_s = fmax(cost->serial_s, time_s);
    return here;
}

/* Of the rank that has the most to send or to receive, in half tokens of a piece. */
static double ragged_units(const struct plan *plan, const struct plan_item *item)
{
    struct ragged_load const load = ragged_item_load(plan, item);
    return 2 * fmax((double)load.sent_most_bytes, (double)load.received_most_bytes) /
           ((double)plan->ragged.token_bytes * item->piece_count);
}

/* What a simulation of an item's messages tells. */
static struct cost contention_cost(const struct estimator *estimator, const struct plan_item *item,
                                   const struct contention_times *contention)
{
    double const bytes = (double)plan_item_unit_bytes(item) * item_bytes_of(estimator, item);
    struct cost cost = {
        .latency_s = contention->latency_s,
        .serial_s = contention->byte_s * bytes,
        .next_latency_s = contention->next_latency_s,
        .next_s = contention->next_byte_s * bytes,
    };
    for (uint32_t wire = 0; wire < WAYS; wire++)
        cost.wire_s[wire] = contention->wire_byte_s[wire] * bytes;
    return cost;
}

/* What the adders of switches take for an array along a dimension: in each unit one addition less
 * than there are contributions, at the group's share of the unit. */
static double adders_s(const struct estimator *estimator, const struct plan_item *item)
{
    const struct machine *machine = estimator->machine;
    const struct group_dimension *at = &estimator->plan->group.dimension[item->dimension];
    enum primitive_network const network = item->primitive->network;
    if (item->flat || !at->switched) return 0;
    if (network != PRIMITIVE_NETWORK_REDUCE && network != PRIMITIVE_NETWORK_ALL_REDUCE) return 0;
    const struct level *level = &machine->level[machine->axis_level[at->axis]];
    double const elements =
        16.0 * at->size * (double)plan_item_unit_bytes(item) / plan_element_bits(estimator->plan);
    double longest_s = 0, below = 1;
    for (uint32_t tier = 0; tier < level->tier_count && below < at->size; tier++) {
        uint32_t const box = level_box_length(machine, level, (int32_t)tier, at->axis);
        double const inside = fmin(at->size, (box - 1) / at->stride + 1);
        double const share = inside / level_box_chips(machine, level, (int32_t)tier);
        double const rate = (double)level->tier[tier].reduce_flop_per_s * share;
        /* Towards one receiver its own part does not come by the switch. */
        double const own = network == PRIMITIVE_NETWORK_REDUCE ? 2 : 1;
        longest_s = fmax(longest_s, fmax(inside / below - own, 0) * elements / rate);
        below = inside;
    }
    return longest_s;
}

static struct cost links_cost(const struct estimator *estimator, const struct plan_item *item)
{
    struct contention_times contention;
    if (contention_find(estimator->machine, estimator->plan, item, estimator->known, &contention))
        return contention_cost(estimator, item, &contention);

    const struct plan *plan = estimator->plan;
    const struct primitive *primitive = item->primitive;
    struct cost cost = {.latency_s = 0};
    struct primitive_cost of = primitive->cost(item->size);
    /* Of an AllReduce one half is busy upwards, the other downwards. */
    if (plan->kind == COLLECTIVE_ALL_REDUCE && primitive->kind != plan->kind &&
        primitive->network != PRIMITIVE_NETWORK_NONE)
        of.port_units = item->size;
    double const units = plan->ragged_units != NULL ? ragged_units(plan, item) : (double)of.units;
    double const wire_bytes = item_bytes_of(estimator, item);
    double const bytes = units * (double)plan_item_unit_bytes(item) * wire_bytes;
    if (primitive->routed) {
        double inside = 1;
        cost.latency_s = routed_latency_s(estimator, item, &of, item->size);
        for (uint32_t wire = 0; wire < WAYS; wire++)
            inside *= add_routed(estimator, item, &of, bytes, wire, inside, &cost);
    } else {
        cost.latency_s = of.depth * message_s(estimator, item->dimension) +
                         item_links_hop_s(estimator->machine, plan, item, item->dimension);
        cost.serial_s = bytes / rate_of(estimator, item, item->dimension);
        cost.wire_s[wire_of(estimator, item->dimension)] = cost.serial_s * port_share(&of);
    }
    double const counted = (double)plan_item_unit_bytes(item) * wire_bytes;
    cost.serial_s = fmax(cost.serial_s, contention.byte_s * counted);
    for (uint32_t wire = 0; wire < WAYS; wire++)
        cost.wire_s[wire] = fmax(cost.wire_s[wire], contention.wire_byte_s[wire] * counted);
    for (uint32_t wire = 0; wire < WAYS; wire++) cost.next_s = fmax(cost.next_s, cost.wire_s[wire]);
    if (of.serial) {
        cost.next_latency_s = cost.latency_s;
        cost.next_s = cost.serial_s;
    }
    return cost;
}

static struct cost cost_of(const struct estimator *estimator, const struct plan_item *item)
{
    struct cost cost = links_cost(estimator, item);
    double const adding_s = adders_s(estimator, item);
    /* Where members send to one receiver after the other, all together, the first messages find
     * nothing to be added to. */
    bool const idles = adding_s > 0 && item->primitive->network == PRIMITIVE_NETWORK_REDUCE &&
                       item->primitive->kind == COLLECTIVE_REDUCE_SCATTER;
    double const first_s = idles ? cost.serial_s / (item->size - 1) : 0;
    cost.serial_s = fmax(cost.serial_s, first_s + adding_s);
    cost.next_s = fmax(cost.next_s, adding_s);
    return cost;
}

static double permute_s(const struct estimator *estimator, double *ret_alpha_s)
{
    const struct plan *plan = estimator->plan;
    double slowest = INFINITY, grid = 0, level = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++) {
        int32_t const offset = plan->permute.offset[d];
        const struct group_dimension *at = &plan->group.dimension[d];
        if (offset == 0) continue;
        slowest = fmin(
            slowest, fmin(rate_of(estimator, NULL, d), level_mesh_rate(estimator->machine, at, 1)) /
                         wire_bytes_of(estimator, d));
        if (plan->group.dimension[d].switched)
            level = fmax(level, message_s(estimator, d));
        else
            grid += (offset < 0 ? -offset : offset) * message_s(estimator, d);
    }
    *ret_alpha_s += fmax(grid, level);
    return isinf(slowest) ? 0 : (double)plan->size_bytes / slowest;
}

/* Along a chain of items the first piece takes them one after the other; each further one is later
 * by what the slowest of them needs for it. Items of a chain that are cut finer than others (in
 * portions) let these begin sooner, too. */
struct chain_time {
    double first_s;   /* The first piece, without bytes. */
    double latency_s; /* All pieces, without bytes. */
    double time_s;
};

static struct chain_time chain_time(const struct plan *plan, const struct cost *costs,
                                    uint32_t last)
{
    double pieces = 1, further_s = 0, idle_s = 0;
    struct chain_time chain = {0, 0, 0};
    for (uint32_t at = last; at != PLAN_NO_ITEM; at = plan->item[at].after)
        pieces = fmax(pieces, (double)plan_item_pieces(&plan->item[at]));
    for (uint32_t at = last; at != PLAN_NO_ITEM; at = plan->item[at].after) {
        const struct cost *cost = &costs[at];
        double const waits_s =
            ((double)plan_item_pieces(&plan->item[at]) - 1) * cost->next_latency_s;
        chain.first_s += cost->latency_s;
        chain.time_s += cost->latency_s + cost->serial_s / pieces;
        idle_s = fmax(idle_s, waits_s);
        further_s = fmax(further_s, waits_s + cost->next_s * (1 - 1 / pieces));
    }
    return (struct chain_time){chain.first_s, chain.first_s + idle_s, chain.time_s + further_s};
}

void collective_estimate(const struct machine *machine, const struct plan *plan,
                         struct contention_cache *known, struct collective_estimate *ret_estimate)
{
    const struct plan_protocol *protocol = &plan->protocol;
    double const near = protocol->wire_ppm == 0 ? 1 : (double)protocol->wire_ppm / PPM_ONE;
    double const far = protocol->far_ppm == 0 ? near : (double)protocol->far_ppm / PPM_ONE;
    struct estimator const estimator = {machine, plan, near, far, known};
    struct cost cost[PLAN_ITEMS_MAX];
    double root_s[WAYS] = {0}, other_s[WAYS] = {0}; /* Of the root's links, and of those far off. */
    double alpha_s = 0, first_s = 0, time_s = 0, busiest_s = 0;
    for (uint32_t i = 0; i < plan->item_count && plan->kind != COLLECTIVE_PERMUTE; i++) {
        cost[i] = cost_of(&estimator, &plan->item[i]);
        struct chain_time const chain = chain_time(plan, cost, i);
        for (uint32_t wire = 0; wire < WAYS; wire++) {
            enum spanning_part const part = spanning_part(plan->item[i].primitive);
            if (part == SPANNING_CLOSE || part == SPANNING_NEAR_CLOSE)
                continue; /* Over links of its own. */
            if (plan->item[i].off_root == 0) root_s[wire] += cost[i].wire_s[wire];
            if (plan->item[i].at_root == 0) other_s[wire] += cost[i].wire_s[wire];
        }
        first_s = fmax(first_s, chain.first_s);
        alpha_s = fmax(alpha_s, chain.latency_s);
        time_s = fmax(time_s, chain.time_s);
    }
    for (uint32_t wire = 0; wire < WAYS; wire++)
        busiest_s = fmax(busiest_s, fmax(root_s[wire], other_s[wire]));
    /* While messages of one item are on their way, the wire carries another item's. */
    time_s = fmax(time_s, busiest_s + first_s);
    if (plan->kind == COLLECTIVE_PERMUTE) time_s = permute_s(&estimator, &alpha_s) + alpha_s;
    if (plan->group.dimension_count > 0) {
        double const begin_s = units_seconds(plan->protocol.begin_ps);
        alpha_s += begin_s;
        time_s += begin_s;
    }
    *ret_estimate = (struct collective_estimate){
        .alpha_s = alpha_s,
        .beta_s_per_byte = plan->size_bytes > 0 ? (time_s - alpha_s) / (double)plan->size_bytes : 0,
        .time_s = time_s,
        .wire_s = busiest_s,
    };
}
