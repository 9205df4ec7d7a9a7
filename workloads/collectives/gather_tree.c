/*
 * Gather along a binomial tree: whoever has all of its part of the tree sends it to its parent.
 */
#include "workloads/collectives/patterns.h"
#include "workloads/collectives/trees.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)step;
    uint32_t const bit = binomial_bit(size, position), count = binomial_held(size, position);
    return (struct primitive_step){.units = 2 * count,
                                   .arrivals = binomial_children(size, position),
                                   .move_count = count,
                                   .peer = position - (UINT32_C(1) << bit),
                                   .slot = bit};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)step;
    return (struct primitive_move){
        .source = position + move, .destination = primitive_any, .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_gather_tree = {
    .name = "gather_tree",
    .help = "bundles go up a binomial tree: V(N-1)/(N·w) and ceil(log2 N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.4, first half: binomial tree",
    .kind = COLLECTIVE_GATHER,
    .family = PRIMITIVE_TREE,
    .lane_count = 1,
    .routed = true,
    .send_count = count_one_of_others,
    .arrival_count = count_children_binomial,
    .step = step_of,
    .move = move_of,
    .cost = cost_binomial_bundles,
};
