/*
 * AllReduce in the network: every rank sends its array up once, switches add them, and the sum
 * comes down to all.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2 * size, .move_count = size, .peer = primitive_any};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    (void)step;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = (position + move) % size,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_all_reduce_sharp = {
    .name = "all_reduce_sharp",
    .help = "switches add the arrays of all and send the sum down to all: V/w and one latency",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 12, In-network reductions; "
              "Graham et al., Scalable Hierarchical Aggregation Protocol (COMHPC 2016), section 3",
    .kind = COLLECTIVE_ALL_REDUCE,
    .family = PRIMITIVE_SHARP,
    .lane_count = 1,
    .routed = true,
    .translates = true,
    .digits = true,
    .network = PRIMITIVE_NETWORK_ALL_REDUCE,
    .send_count = count_one_each,
    .arrival_count = count_one_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_sharp_array,
};
