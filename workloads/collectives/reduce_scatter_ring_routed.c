/*
 * ReduceScatter on a ring through switches, one way round: the sum for a rank begins behind it and
 * goes all the way round, each rank adding its part.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = 2, .arrivals = step, .chunks = step + 1, .move_count = 1, .peer = 1, .slot = step};
}

const struct primitive primitive_reduce_scatter_ring_routed = {
    .name = "reduce_scatter_ring_routed",
    .help = "sums go round through the switch, one way: V(N-1)/(N·w) and N-1 latencies",
    .source = "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of "
              "Workstations (2009), section 3; NCCL's ring",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_RING,
    .lane_count = 1,
    .translates = true,
    .routed = true,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_ring_sum,
    .chunk_at = ring_sum,
    .cost = cost_one_way,
};
