/*
 * Broadcast with multicast: the root sends the array once, and switches copy it to all others.
 */
#include "sim/collective/collective.h"

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position == 0 ? 1 : 0;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2 * size, .move_count = size, .peer = primitive_any};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_move){
        .source = primitive_any, .destination = move, .halves = PRIMITIVE_HALVES};
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
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
};
