/*
 * AllGather on a ring, one way: in each step a rank passes on to its higher neighbour the chunk
 * that it received in the step before. Half the links are idle; it is here to be compared with.
 */
#include "workloads/collectives/patterns.h"

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
    .step = step_passed_on,
    .move = move_ring_chunk,
    .cost = cost_one_way,
};
