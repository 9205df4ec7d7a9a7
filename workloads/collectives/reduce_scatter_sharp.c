/*
 * ReduceScatter in the network: every rank sends its parts towards the others, switches add those
 * for one receiver, and one sum comes down to it, which it adds its own part to.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = 2, .chunks = step + 1, .move_count = 1, .peer = step + 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    (void)move;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = next_sum(size, position, step),
                                   .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_reduce_scatter_sharp = {
    .name = "reduce_scatter_sharp",
    .help = "switches add what is for one receiver: V(N-1)/(N·w) up, V/(N·w) down, one latency",
    .source = "Klenk et al., An In-Network Architecture for Accelerating Shared-Memory "
              "Multiprocessor Collectives (ISCA 2020), section 4: reduction in the NVSwitch",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_SHARP,
    .lane_count = 1,
    .routed = true,
    .translates = true,
    .digits = true,
    .network = PRIMITIVE_NETWORK_REDUCE,
    .send_count = count_others_each,
    .arrival_count = count_one_each,
    .step = step_of,
    .move = move_of,
    .chunk_at = next_sum,
    .cost = cost_sharp,
};
