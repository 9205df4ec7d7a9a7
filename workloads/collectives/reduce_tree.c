/*
 * Reduce along a binomial tree: whoever has the sums of its part of the tree sends them to its
 * parent.
 */
#include "sim/collective/collective.h"
#include "workloads/collectives/trees.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return binomial_children(size, position);
}

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

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_move){
        .source = primitive_any, .destination = move, .halves = PRIMITIVE_HALVES};
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
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
};
