/*
 * Broadcast along a chain from the root on: each rank passes on chunk after chunk.
 */
#include "workloads/collectives/patterns.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position + 1 < size ? size : 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    return (struct primitive_step){.units = 2,
                                   .arrivals = position > 0 ? step + 1 : 0,
                                   .move_count = 1,
                                   .peer = (position + 1) % size,
                                   .slot = step};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)move;
    return (struct primitive_move){
        .source = primitive_any, .destination = step, .halves = PRIMITIVE_HALVES};
}

static struct primitive_origin origin_of(uint32_t size, uint32_t position, uint32_t arrival)
{
    (void)size;
    return (struct primitive_origin){position - 1, arrival};
}

const struct primitive primitive_broadcast_chain = {
    .name = "broadcast_chain",
    .help = "chunk after chunk along a chain: V(1 + (N-2)/(N·P))/w in P pieces, and N-1 latencies",
    .source = "NCCL, broadcast and reduce over a ring cut open at the root; Chan et al., "
              "Collective communication: theory, practice, and experience (2007), section 5",
    .kind = COLLECTIVE_BROADCAST,
    .family = PRIMITIVE_CHAIN,
    .lane_count = 1,
    .routed = true,
    .send_count = send_count,
    .arrival_count = count_chunks_of_others,
    .step = step_of,
    .move = move_of,
    .origin = origin_of,
    .cost = cost_chain,
};
