/*
 * Broadcast along a binomial tree: whoever has the array sends it across the largest half that
 * lacks it, then across the next.
 */
#include "workloads/collectives/patterns.h"
#include "workloads/collectives/trees.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    uint32_t const child = binomial_children(size, position) - 1 - step;
    return (struct primitive_step){.units = 2 * size,
                                   .arrivals = position > 0 ? 1 : 0,
                                   .move_count = size,
                                   .peer = position + (UINT32_C(1) << child)};
}

const struct primitive primitive_broadcast_tree = {
    .name = "broadcast_tree",
    .help = "down a binomial tree: V·ceil(log2 N)/w and as many latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.3: binomial tree",
    .kind = COLLECTIVE_BROADCAST,
    .family = PRIMITIVE_TREE,
    .lane_count = 1,
    .routed = true,
    .send_count = count_children_binomial,
    .arrival_count = count_one_of_others,
    .step = step_of,
    .move = move_array,
    .origin = origin_binomial,
    .cost = cost_binomial,
};
