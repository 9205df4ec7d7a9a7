/*
 * Reduce round a ring, both ways: the sum of one half of each chunk comes to the root from below,
 * that of the other from above, and each rank adds its part on the way.
 */
#include "workloads/collectives/patterns.h"
#include "workloads/collectives/root_ring.h"

static bool is_farthest(uint32_t size, uint32_t lane, uint32_t position)
{
    return root_ring_to(size, lane, position) + 1 == size;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return is_farthest(size, lane, position) ? 0 : size;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    return (struct primitive_step){
        .units = 1, .arrivals = is_farthest(size, lane, position) ? 0 : step + 1, .move_count = 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)position;
    (void)move;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = step,
                                   .halves =
                                       lane == 0 ? PRIMITIVE_HALF_FIRST : PRIMITIVE_HALF_SECOND};
}

const struct primitive primitive_reduce_ring = {
    .name = "reduce_ring",
    .help = "half of it each way round, chunk after chunk, added on the way: V(1 + "
            "(N-2)/(N·P))/(2w) in P pieces, and "
            "N-1 hops",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 5, pipelined on a ring; here as two chains, one each way",
    .kind = COLLECTIVE_REDUCE,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = count_chunks_of_others,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
    .cost = cost_root_ring_array,
};
