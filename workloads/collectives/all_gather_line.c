/*
 * AllGather on a line: chunks travel to both ends, each rank first sending its own and then
 * passing on what comes. The link at an end carries all chunks but one, so both directions of a
 * link help no more than one: a line takes twice as long as a ring.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)move;
    return (struct primitive_move){
        .source = lane == 0 ? position - step : position + step,
        .destination = primitive_any,
        .halves = PRIMITIVE_HALVES,
    };
}

const struct primitive primitive_all_gather_line = {
    .name = "all_gather_line",
    .help = "whole chunks travel to both ends of a line: V(N-1)/(N·w) and N-1 hops",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 3, AllGather, for an axis "
              "without wraparound (chapter 2): bidirectional, but the ends have one neighbour",
    .kind = COLLECTIVE_ALL_GATHER,
    .family = PRIMITIVE_LINE,
    .ring = false,
    .lane_count = 2,
    .send_count = count_passed_on_line,
    .arrival_count = count_before_on_line,
    .step = step_passed_on,
    .move = move_of,
    .cost = cost_line,
};
