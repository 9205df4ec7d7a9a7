/*
 * AllToAll on a ring, one way: each rank sends one bundle with all it has for the others to its
 * higher neighbour; each rank on the way takes out its chunk and passes on the rest. Half the links
 * are idle; it is here to be compared with.
 */
#include "workloads/collectives/patterns.h"

/* The bundle still has chunks for the ranks that are step+1 to size-1 away from its origin. */
static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    uint32_t const count = size - 1 - step;
    return (struct primitive_step){.units = 2 * count, .arrivals = step, .move_count = count};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    return (struct primitive_move){
        .source = ring_chunk(size, position, step),
        .destination = (position + move + 1) % size,
        .halves = PRIMITIVE_HALVES,
    };
}

static struct primitive_cost cost_of(uint32_t size)
{
    uint64_t const units = (uint64_t)size * (size - 1);
    return (struct primitive_cost){
        .depth = size - 1, .units = units, .port_units = units, .serial = true};
}

const struct primitive primitive_all_to_all_ring_one_way = {
    .name = "all_to_all_ring_one_way",
    .help = "bundles go round a ring in one direction, a chunk less each hop: V(N-1)/(2N·w) and "
            "N-1 hops",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 3, AllToAll: half of an "
              "AllGather on a ring in one direction",
    .kind = COLLECTIVE_ALL_TO_ALL,
    .family = PRIMITIVE_RING_ONE_WAY,
    .ring = true,
    .lane_count = 1,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
