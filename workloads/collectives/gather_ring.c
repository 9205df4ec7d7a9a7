/*
 * Gather round a ring, both ways: each sends its own chunk towards the root by the shorter way, and
 * then passes on what comes from behind, half by half. On an even ring the antipodal chunk goes
 * half each way.
 */
#include "workloads/collectives/root_ring.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return position > 0 ? root_ring_beyond(size, root_ring_to(size, lane, position) - 1) : 0;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return root_ring_beyond(size, root_ring_to(size, lane, position));
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = 1, .arrivals = step < 2 ? 0 : step - 1, .move_count = 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)move;
    uint32_t const distance = root_ring_to(size, lane, position) + step / 2;
    return (struct primitive_move){.source = root_ring_at(size, lane == 1, distance),
                                   .destination = primitive_any,
                                   .halves = root_ring_half(size, lane, distance, step % 2 != 0)};
}

const struct primitive primitive_gather_ring = {
    .name = "gather_ring",
    .help = "the own chunk first, then those from behind, by the shorter way: V(N-1)/(N·2w) and "
            "floor(N/2) hops",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, met where both links of the root are always busy",
    .kind = COLLECTIVE_GATHER,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
    .cost = cost_root_ring,
};
