/*
 * The rule and its constants come from playing plans out with clocks (tests/catalogue/clocks.c) for
 * 2x16 to 16x20x28 and 1 kB to 10 GB; test_collective_time.c holds the figures that they reach.
 *
 * Time is about T(1 + f/P) + P·h/2: T what the links take, f the wait with one piece, h the hops of
 * the longest dimension; least at P = sqrt(2·f·T/h). Taking turns pays from T = the sum of hops on.
 */
#include "sim/collective/pieces.h"

#include "sim/base/units.h"

/* What a link carries while a message crosses one hop: 1 us at 45 to 100 GB/s. Plans know no rates,
 * and the choice is flat around its best. */
static const uint64_t hop_bytes = 65536;

/* A chunk's link time is at least as many times its hops, so that these put no more than an eighth
 * on top where nothing is to be won. */
static const uint64_t hop_share = 4;

/* Next to a further level, orders on a grid fill each other's ways while their pieces take this
 * multiple of their hops; and as there are several, more pieces pay than for one ring. */
static const uint64_t grid_share = 8, grid_least = 3;

/* What switches copy or add is not cut into portions (level_overlap.h), but no message of it waits
 * for an earlier one's arrival either: pieces are worth their messages down to a quarter of the
 * way. */
static const uint64_t network_share = 4;

/* An AllToAll's wait: the orders share the array evenly whatever the dimensions. */
static const uint64_t exchange_wait_ppm = 125000;

/* The nearest integer to the root. */
static uint64_t root(uint64_t square)
{
    uint64_t root = 0;
    while ((2 * root + 1) * (2 * root + 1) <= 4 * square) root++;
    return root;
}

/* What a plan asks of the links, in hops' worth of bytes. */
struct demand {
    uint64_t link_hops; /* On the busiest link, had all dimensions as much to do. */
    uint64_t hops;      /* Of all dimensions, one after the other. */
    uint64_t hops_max;  /* Of the longest. */
    uint64_t size_max;  /* Of an exchange's busiest dimension: members, times its stride. */
    bool is_even;       /* Rings all alike. */
};

/* In both directions all links of a ring carry the same; a byte costs a line twice as much. */
static bool is_both_ways(const struct group_dimension *dimension, uint32_t cost)
{
    return cost == dimension->stride;
}

static struct demand demand_of(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                               uint64_t size_bytes)
{
    static const uint64_t scale = UINT64_C(1) << 20;
    struct demand demand = {.is_even = true};
    uint64_t ports = 0;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *at = &group->dimension[d];
        bool const both = is_both_ways(at, cost[d]);
        uint64_t const own = (uint64_t)(both ? at->size / 2 : at->size - 1) * at->stride;
        uint64_t const width = (uint64_t)at->size * at->stride;
        demand.is_even = demand.is_even && at->ring && at->size == group->dimension[0].size &&
                         cost[d] == cost[0];
        demand.hops += own;
        if (own > demand.hops_max) demand.hops_max = own;
        if (width > demand.size_max) demand.size_max = width;
        ports += 2 * scale / cost[d];
    }
    demand.link_hops = (uint64_t)((units_wide)size_bytes * scale / ports / hop_bytes);
    return demand;
}

struct pieces pieces_choose(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                            const struct shares *shares, enum collective_kind kind,
                            uint64_t size_bytes)
{
    struct pieces pieces = {1, false};
    struct demand const demand = demand_of(group, cost, size_bytes);
    if (demand.is_even) return pieces; /* They never wait for each other. */
    bool const exchanges = kind == COLLECTIVE_ALL_TO_ALL;
    uint64_t const link_hops =
        exchanges ? size_bytes / (8 * group_rank_count(group)) * demand.size_max / hop_bytes
                  : demand.link_hops;
    if (link_hops < demand.hops) return pieces;
    uint64_t const wait_ppm = exchanges ? exchange_wait_ppm : shares_wait_ppm(group, cost, shares);
    uint64_t const count =
        root((uint64_t)((units_wide)link_hops * 2 * wait_ppm / PPM_ONE / demand.hops_max));
    if (count > 1) pieces.count = (uint32_t)(count < PIECES_CHOSEN_MAX ? count : PIECES_CHOSEN_MAX);
    pieces.turns = kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_ALL_REDUCE;
    return pieces;
}

uint32_t pieces_beside(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                       uint64_t size_bytes)
{
    struct demand const demand = demand_of(group, cost, size_bytes);
    uint64_t const best = root(2 * demand.link_hops / demand.hops);
    uint64_t const most = demand.link_hops / (hop_share * demand.hops);
    uint64_t const count = best < most ? best : most;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* In picoseconds, so that levels of different rates compare. */
int64_t pieces_level_ps(const struct pieces_level *level, uint64_t bytes)
{
    return units_duration_ps(bytes, level->bytes_per_s);
}

/* What the two rings of an AllReduce take, by their pieces: the first piece's sums and the last
 * one's gather have the links to themselves, and wait for each message's way. */
static uint64_t rings_ps(uint64_t busy_ps, uint64_t again_ps, uint64_t rest_ps, uint64_t pieces)
{
    uint64_t const alone_ps = busy_ps / pieces + again_ps;
    uint64_t const both_ps = 2 * busy_ps / pieces;
    return 2 * (rest_ps / pieces + alone_ps) +
           (pieces - 1) * (both_ps > alone_ps ? both_ps : alone_ps);
}

static uint64_t rings_best(uint64_t busy_ps, uint64_t again_ps, uint64_t rest_ps)
{
    uint64_t best = 1, least_ps = UINT64_MAX;
    for (uint64_t pieces = 1; pieces <= PIECES_LEVELS_MAX; pieces++) {
        uint64_t const ps = rings_ps(busy_ps, again_ps, rest_ps, pieces);
        if (ps >= least_ps) continue;
        least_ps = ps;
        best = pieces;
    }
    return best;
}

/* Where distances double, the least messages are single shards. Next to whole shares, which a link
 * serves as they come, one that is late by its fellows' unequal ways waits for all of one, and so
 * does what waits for it: unless it is about as long as those ways differ. */
static uint64_t doubling_most(const struct pieces_level *level)
{
    if (level->shards == 0) return UINT64_MAX;
    return level->bytes / level->shards / (level->hop_bytes / (level->twice ? 4 : 8) + 1);
}

/* More pieces than these make a level wait for the way of its messages; `rest_ps` is what a single
 * piece would leave bare of the other levels, of which the longest takes `longest_ps`. */
static uint64_t pieces_bearable(const struct pieces_level *level, uint64_t rest_ps,
                                uint64_t longest_ps)
{
    if (level->again_ps == 0) return UINT64_MAX;
    uint64_t const busy_ps = (uint64_t)pieces_level_ps(level, level->bytes);
    uint64_t const least = root(rest_ps / level->again_ps);
    uint64_t most = UINT64_MAX;
    switch (level->series) {
    case PIECES_FREE:
        break;
    case PIECES_RING:
        return level->twice ? rings_best(busy_ps, level->again_ps, rest_ps) : least;
    case PIECES_FILLED:
        most = busy_ps / level->again_ps;
        return most > least ? most : least;
    case PIECES_DOUBLING:
        most = doubling_most(level);
        return most < least ? most : least;
    case PIECES_GRID:
        most = busy_ps / (grid_share * level->again_ps);
        if ((longest_ps - busy_ps) / level->again_ps > most)
            most = (longest_ps - busy_ps) / level->again_ps;
        return grid_least * least > most ? grid_least * least : most;
    }
    return most;
}

/* What levels take with a single piece. */
struct times {
    uint64_t longest_ps; /* Of one level. */
    uint64_t rest_ps;    /* Of the others, one after the other. */
    uint64_t way_ps;     /* Of a message through all. */
};

static struct times times_of(const struct pieces_level *levels, uint32_t count)
{
    struct times times = {0, 0, 0};
    uint64_t sum_ps = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t const busy_ps = (uint64_t)pieces_level_ps(&levels[i], levels[i].bytes);
        sum_ps += busy_ps * (levels[i].passes > 1 ? levels[i].passes : 1);
        times.longest_ps = busy_ps > times.longest_ps ? busy_ps : times.longest_ps;
        times.way_ps += (uint64_t)pieces_level_ps(&levels[i], levels[i].hop_bytes);
    }
    times.rest_ps = sum_ps - times.longest_ps;
    return times;
}

uint64_t pieces_wanted(const struct pieces_level *levels, uint32_t count)
{
    struct times const times = times_of(levels, count);
    uint64_t best = times.way_ps == 0 ? PIECES_LEVELS_MAX : times.rest_ps / times.way_ps;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t const most = pieces_bearable(&levels[i], times.rest_ps, times.longest_ps);
        best = most < best ? most : best;
    }
    if (best > PIECES_LEVELS_MAX) best = PIECES_LEVELS_MAX;
    return best > 1 ? best : 1;
}

/* Whether switches copy or add on some level, and more pieces cost nothing but messages. */
static bool are_free(const struct pieces_level *levels, uint32_t count)
{
    bool in_network = false;
    for (uint32_t i = 0; i < count; i++) {
        if (levels[i].series != PIECES_FREE) return false;
        in_network = in_network || levels[i].in_network;
    }
    return in_network;
}

uint32_t pieces_of_levels(const struct pieces_level *levels, uint32_t count)
{
    uint64_t best = pieces_wanted(levels, count);
    if (are_free(levels, count)) best *= network_share;
    uint64_t messages = 0;
    for (uint32_t i = 0; i < count; i++) messages += levels[i].messages;
    uint64_t const most = messages == 0 ? 1 : PIECES_MESSAGES_MAX / messages;
    if (most <= 1) return 1;
    return (uint32_t)(best < most ? best : most);
}

uint64_t pieces_needed(const struct pieces_level *levels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (levels[i].longer_alone) return UINT64_MAX;
    struct times const times = times_of(levels, count);
    units_wide const bare = (units_wide)times.longest_ps * PIECES_BARE_PPM;
    return bare == 0 ? 1 : (uint64_t)((units_wide)times.rest_ps * PPM_ONE / bare) + 1;
}
