/*
 * AllReduce by recursive doubling: partners at distance 1, 2, 4, ... exchange their sums of the
 * whole array. As few messages in series as there can be, for arrays so small that bytes do not
 * count.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    return step_of_round(step, size, position ^ UINT32_C(1) << step);
}

static struct primitive_cost cost_of(uint32_t size)
{
    uint64_t const units = 2 * (uint64_t)size * log2_up(size);
    return (struct primitive_cost){.depth = log2_up(size),
                                   .units = units,
                                   .port_units = units,
                                   .serial = true,
                                   .reach = PRIMITIVE_REACH_DOUBLING};
}

const struct primitive primitive_all_reduce_recursive_doubling = {
    .name = "all_reduce_recursive_doubling",
    .help = "partners at doubling distance exchange whole sums: V·log2(N)/w and log2(N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.5: recursive doubling",
    .kind = COLLECTIVE_ALL_REDUCE,
    .family = PRIMITIVE_RECURSIVE_DOUBLING,
    .lane_count = 1,
    .partners = true,
    .ordered = true,
    .refuses = refuses_but_powers_of_two,
    .routed = true,
    .send_count = count_log2_each,
    .arrival_count = count_log2_each,
    .step = step_of,
    .move = move_array,
    .cost = cost_of,
};
