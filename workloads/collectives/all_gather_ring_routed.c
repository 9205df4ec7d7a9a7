/*
 * AllGather on a ring through switches, one way round: each rank passes on to the next one what it
 * got in the step before.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = 2, .arrivals = step, .move_count = 1, .peer = 1, .slot = step};
}

const struct primitive primitive_all_gather_ring_routed = {
    .name = "all_gather_ring_routed",
    .help = "chunks go round through the switch, one way: V(N-1)/(N·w) and N-1 latencies",
    .source = "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of "
              "Workstations (2009), section 3; NCCL's ring",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_RING,
    .lane_count = 1,
    .translates = true,
    .routed = true,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_ring_chunk,
    .cost = cost_one_way,
};
