/*
 * AllGather on a ring, one way: in each step a rank passes on to its higher neighbour the chunk
 * that it received in the step before. Half the links are idle; it is here to be compared with.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2, .arrivals = step, .move_count = 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    (void)move;
    return (struct primitive_move){
        .source = ring_chunk(size, position, step),
        .destination = primitive_any,
        .halves = PRIMITIVE_HALVES,
    };
}

const struct primitive primitive_all_gather_ring_one_way = {
    .name = "all_gather_ring_one_way",
    .help = "whole chunks go round a ring in one direction: V(N-1)/(N·w) and N-1 hops",
    .source =
        "Austin et al., How to Scale Your Model (2025), chapter 3, AllGather: the ring in one "
        "direction, which the book begins with",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_RING_ONE_WAY,
    .ring = true,
    .lane_count = 1,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_one_way,
};
