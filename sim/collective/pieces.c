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

/* An AllToAll's wait: the orders share the array evenly whatever the dimensions. */
static const uint64_t exchange_wait_ppm = 125000;

/* The nearest integer to the root. */
static uint64_t root(uint64_t square)
{
    uint64_t root = 0;
    while ((2 * root + 1) * (2 * root + 1) <= 4 * square) root++;
    return root;
}

struct pieces pieces_choose(const struct group *group, const uint32_t cost[GROUP_DIMENSIONS_MAX],
                            const struct shares *shares, enum collective_kind kind,
                            uint64_t size_bytes)
{
    struct pieces pieces = {1, false};
    uint64_t hops = 0, hops_max = 0, ports = 0, size_max = 0;
    bool is_even = true;
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *at = &group->dimension[d];
        uint64_t const own = (uint64_t)(cost[d] == 1 ? at->size / 2 : at->size - 1) * at->stride;
        is_even = is_even && at->size == group->dimension[0].size && cost[d] == 1;
        hops += own;
        if (own > hops_max) hops_max = own;
        if (at->size > size_max) size_max = at->size;
        ports += cost[d] == 1 ? 2 : 1;
    }
    if (is_even) return pieces; /* Rings all alike never wait for each other. */
    bool const exchanges = kind == COLLECTIVE_ALL_TO_ALL;
    uint64_t const link_bytes =
        exchanges ? size_bytes / (8 * group_rank_count(group)) * size_max : size_bytes / ports;
    uint64_t const link_hops = link_bytes / hop_bytes;
    if (link_hops < hops) return pieces;
    uint64_t const wait_ppm = exchanges ? exchange_wait_ppm : shares_wait_ppm(group, cost, shares);
    uint64_t const count =
        root((uint64_t)((units_wide)link_hops * 2 * wait_ppm / PPM_ONE / hops_max));
    if (count > 1) pieces.count = (uint32_t)(count < PIECES_CHOSEN_MAX ? count : PIECES_CHOSEN_MAX);
    pieces.turns = kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_ALL_REDUCE;
    return pieces;
}
