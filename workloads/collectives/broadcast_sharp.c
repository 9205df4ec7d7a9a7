/*
 * Broadcast with multicast: the root sends the array once, and switches copy it to all others.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2 * size, .move_count = size, .peer = primitive_any};
}

static struct primitive_origin origin_of(uint32_t size, uint32_t position, uint32_t arrival)
{
    (void)size;
    (void)position;
    (void)arrival;
    return (struct primitive_origin){0, 0};
}

const struct primitive primitive_broadcast_sharp = {
    .name = "broadcast_sharp",
    .help = "switches copy the array to all others: V/w and one latency",
    .source = "Klenk et al., An In-Network Architecture for Accelerating Shared-Memory "
              "Multiprocessor Collectives (ISCA 2020), section 4",
    .kind = COLLECTIVE_BROADCAST,
    .family = PRIMITIVE_SHARP,
    .lane_count = 1,
    .network = PRIMITIVE_NETWORK_MULTICAST,
    .routed = true,
    .send_count = count_one_of_root,
    .arrival_count = count_one_of_others,
    .step = step_of,
    .move = move_array,
    .origin = origin_of,
    .cost = cost_sharp_array,
};
