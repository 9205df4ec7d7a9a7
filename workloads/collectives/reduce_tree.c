/*
 * Reduce along a binomial tree: whoever has the sums of its part of the tree sends them to its
 * parent.
 */
#include "workloads/collectives/patterns.h"
#include "workloads/collectives/trees.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)step;
    uint32_t const bit = binomial_bit(size, position);
    return (struct primitive_step){.units = 2 * size,
                                   .arrivals = binomial_children(size, position),
                                   .move_count = size,
                                   .peer = position - (UINT32_C(1) << bit),
                                   .slot = bit};
}

const struct primitive primitive_reduce_tree = {
    .name = "reduce_tree",
    .help = "up a binomial tree, added at every node: V·ceil(log2 N)/w and as many latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.4: binomial tree",
    .kind = COLLECTIVE_REDUCE,
    .family = PRIMITIVE_TREE,
    .lane_count = 1,
    .routed = true,
    .send_count = count_one_of_others,
    .arrival_count = count_children_binomial,
    .step = step_of,
    .move = move_array,
    .cost = cost_binomial,
};
