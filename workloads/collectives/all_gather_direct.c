/*
 * AllGather by direct exchange: every rank sends its chunk to every other, one after the other. In
 * each step all ranks send to the same displacement, so that every port has one message in and one
 * out.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = step + 1, .slot = step};
}

const struct primitive primitive_all_gather_direct = {
    .name = "all_gather_direct",
    .help = "every rank sends its chunk to every other through the switch: V(N-1)/(N·w) and one "
            "latency",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 12, Collectives on GPUs: "
              "within a node every GPU sends its share straight to the others",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_DIRECT,
    .lane_count = 1,
    .routed = true,
    .translates = true,
    .digits = true,
    .send_count = count_others_each,
    .arrival_count = count_others_each,
    .step = step_of,
    .move = move_own_chunk,
    .cost = cost_direct,
};
