/*
 * Scatter round a ring, both ways: chunks leave the root by the shorter way, those for the farthest
 * first, and are passed on half by half. On an even ring the antipodal chunk goes half each way.
 */
#include "workloads/collectives/root_ring.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return root_ring_beyond(size, root_ring_from(size, lane, position));
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return position > 0 ? root_ring_beyond(size, root_ring_from(size, lane, position) - 1) : 0;
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)position;
    (void)move;
    uint32_t const number = step + (size % 2 == 0 ? 1 : 0); /* As if it went whole. */
    uint32_t const distance = size / 2 - number / 2;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = root_ring_at(size, lane == 0, distance),
                                   .halves = root_ring_half(size, lane, distance, number % 2 != 0)};
}

const struct primitive primitive_scatter_ring = {
    .name = "scatter_ring",
    .help = "chunks for the farthest leave first, by the shorter way: V(N-1)/(N·2w) and floor(N/2) "
            "hops",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, met where both links of the root are always busy",
    .kind = COLLECTIVE_SCATTER,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_root_ring,
    .move = move_of,
    .cost = cost_root_ring,
};
