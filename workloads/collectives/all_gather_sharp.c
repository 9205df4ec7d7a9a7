/*
 * AllGather with multicast: every rank sends its chunk once, and switches copy it to all others.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = primitive_any};
}

/* In the order of those that it could have come from, the last first. */
static struct primitive_origin origin_of(uint32_t size, uint32_t position, uint32_t arrival)
{
    return (struct primitive_origin){(position + size - 1 - arrival) % size, 0};
}

const struct primitive primitive_all_gather_sharp = {
    .name = "all_gather_sharp",
    .help = "switches copy each chunk to all others: V(N-1)/(N·w) down, V/(N·w) up, one latency",
    .source = "Klenk et al., An In-Network Architecture for Accelerating Shared-Memory "
              "Multiprocessor Collectives (ISCA 2020), section 4: multicast in the NVSwitch",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_SHARP,
    .lane_count = 1,
    .routed = true,
    .translates = true,
    .digits = true,
    .network = PRIMITIVE_NETWORK_MULTICAST,
    .send_count = count_one_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_own_chunk,
    .origin = origin_of,
    .cost = cost_sharp,
};
