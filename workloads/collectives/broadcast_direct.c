/*
 * Broadcast straight from the root to each other rank, one after the other.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2 * size, .move_count = size, .peer = step + 1};
}

const struct primitive primitive_broadcast_direct = {
    .name = "broadcast_direct",
    .help = "the root sends the array to each: V(N-1)/w and one latency",
    .source = "Chan et al., Collective communication: theory, practice, and experience (2007), "
              "section 4: the lower bounds, and sending straight to each",
    .kind = COLLECTIVE_BROADCAST,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .send_count = count_others_of_root,
    .arrival_count = count_one_of_others,
    .step = step_of,
    .move = move_array,
    .origin = origin_root,
    .cost = cost_direct_array,
};
