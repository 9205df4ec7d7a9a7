/*
 * ReduceScatter on a ring, one way: the partial sum for the lower neighbour, farthest along the
 * ring, leaves first; every rank on its way adds its own.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = 2, .arrivals = step, .chunks = step + 1, .move_count = 1};
}

const struct primitive primitive_reduce_scatter_ring_one_way = {
    .name = "reduce_scatter_ring_one_way",
    .help = "partial sums go round a ring in one direction, farthest first: "
            "V(N-1)/(N·w) and N-1 hops",
    .source = "Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of "
              "workstations, JPDC 69 (2009), section 4: the logical ring",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_RING_ONE_WAY,
    .ring = true,
    .lane_count = 1,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_ring_sum,
    .chunk_at = ring_sum,
    .cost = cost_one_way,
};
