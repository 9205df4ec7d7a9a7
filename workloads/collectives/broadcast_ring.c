/*
 * Broadcast round a ring, both ways: one half of each chunk goes up from the root to all others,
 * the other half down, chunk after chunk.
 */
#include "workloads/collectives/patterns.h"
#include "workloads/collectives/root_ring.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return root_ring_from(size, lane, position) + 1 < size ? size : 0;
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

const struct primitive primitive_broadcast_ring = {
    .name = "broadcast_ring",
    .help = "half of it each way round, chunk after chunk: V(1 + (N-2)/(N·P))/(2w) in P pieces, "
            "and N-1 hops",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 5, pipelined on a ring; here as two chains, one each way",
    .kind = COLLECTIVE_BROADCAST,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = send_count,
    .arrival_count = count_chunks_of_others,
    .step = step_root_ring,
    .move = move_of,
    .cost = cost_root_ring_array,
};
