/*
 * AllGather on a ring, both ways: in each step a rank passes on, to either side, the chunk that it
 * received in the step before; after half the ring every chunk has been everywhere. On an even ring
 * the antipodal chunk would come from both sides, so each side brings one half of it.
 */
#include "workloads/collectives/patterns.h"

static bool is_half(uint32_t size, uint32_t step)
{
    return size % 2 == 0 && step == size / 2 - 1;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)lane;
    (void)position;
    return (struct primitive_step){
        .units = is_half(size, step) ? 1 : 2, .arrivals = step, .move_count = 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)move;
    uint32_t const own_half = lane == 0 ? PRIMITIVE_HALF_FIRST : PRIMITIVE_HALF_SECOND;
    return (struct primitive_move){
        .source = (lane == 0 ? position + size - step : position + step) % size,
        .destination = primitive_any,
        .halves = (uint8_t)(is_half(size, step) ? own_half : PRIMITIVE_HALVES),
    };
}

static struct primitive_cost cost_of(uint32_t size)
{
    return (struct primitive_cost){
        .depth = size / 2, .units = size - 1, .port_units = size - 1, .serial = true};
}

const struct primitive primitive_all_gather_ring = {
    .name = "all_gather_ring",
    .help = "whole chunks go round a ring in both directions at once: "
            "V(N-1)/(N·2w) and floor(N/2) hops",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 3, AllGather: a ring in both "
              "directions; the finite factor (N-1)/N and the antipodal chunk in halves are counted",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_RING,
    .ring = true,
    .lane_count = 2,
    .send_count = count_half_each,
    .arrival_count = count_half_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
