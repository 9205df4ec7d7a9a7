/*
 * Scatter along a binomial tree: whoever has what its part of the tree ends up with sends each
 * child's share, the largest first.
 */
#include "workloads/collectives/patterns.h"
#include "workloads/collectives/trees.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    uint32_t const child = binomial_children(size, position) - 1 - step;
    uint32_t const peer = position + (UINT32_C(1) << child), count = binomial_held(size, peer);
    return (struct primitive_step){
        .units = 2 * count, .arrivals = position > 0 ? 1 : 0, .move_count = count, .peer = peer};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    uint32_t const child = binomial_children(size, position) - 1 - step;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = position + (UINT32_C(1) << child) + move,
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_scatter_tree = {
    .name = "scatter_tree",
    .help = "bundles go down a binomial tree: V(N-1)/(N·w) and ceil(log2 N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.3, first half: binomial tree",
    .kind = COLLECTIVE_SCATTER,
    .family = PRIMITIVE_TREE,
    .lane_count = 1,
    .routed = true,
    .send_count = count_children_binomial,
    .arrival_count = count_one_of_others,
    .step = step_of,
    .move = move_of,
    .origin = origin_binomial,
    .cost = cost_binomial_bundles,
};
