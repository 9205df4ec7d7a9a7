/*
 * Permute through switches: every rank sends one message; the plan says by how many members it is
 * displaced. Here, where there is no plan, by one.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = 1};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)lane;
    (void)step;
    (void)move;
    return (struct primitive_move){
        .source = position, .destination = (position + 1) % size, .halves = PRIMITIVE_HALVES};
}

const struct primitive primitive_permute_routed = {
    .name = "permute_routed",
    .help = "every rank sends one message through switches, all by the same displacement: V/w and "
            "one latency",
    .source = "send and receive of point-to-point libraries, for instance NCCL, Point-to-point "
              "communication; one of each a rank",
    .kind = COLLECTIVE_PERMUTE,
    .family = PRIMITIVE_SHIFT,
    .lane_count = 1,
    .routed = true,
    .translates = true,
    .digits = true,
    .send_count = count_one_each,
    .arrival_count = count_one_each,
    .step = step_of,
    .move = move_of,
    .cost = cost_permute,
};
