/*
 * ReduceScatter by direct exchange: every rank sends each other rank its part of what that one
 * ends up with; the receiver adds the parts as they come. All send to the same displacement in a
 * step.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = 2, .chunks = step + 1, .move_count = 1, .peer = step + 1, .slot = step};
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

const struct primitive primitive_reduce_scatter_direct = {
    .name = "reduce_scatter_direct",
    .help = "every rank sends every other its part through the switch, added where it lands: "
            "V(N-1)/(N·w) and one latency",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 12, Collectives on GPUs: "
              "an AllGather within a node, reversed",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .translates = true,
    .digits = true,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_of,
    .chunk_at = next_sum,
    .cost = cost_direct,
};
