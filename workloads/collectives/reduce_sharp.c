/*
 * Reduce in the network: every rank but the root sends its array, switches add them, and one sum
 * comes down to the root, which adds its own.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2 * size, .move_count = size, .peer = 0};
}

const struct primitive primitive_reduce_sharp = {
    .name = "reduce_sharp",
    .help = "switches add the arrays of the others for the root: V/w and one latency",
    .source = "Klenk et al., An In-Network Architecture for Accelerating Shared-Memory "
              "Multiprocessor Collectives (ISCA 2020), section 4",
    .kind = COLLECTIVE_REDUCE,
    .family = PRIMITIVE_SHARP,
    .lane_count = 1,
    .network = PRIMITIVE_NETWORK_REDUCE,
    .routed = true,
    .send_count = count_one_of_others,
    .arrival_count = count_one_of_root,
    .step = step_of,
    .move = move_array,
    .cost = cost_sharp_array,
};
