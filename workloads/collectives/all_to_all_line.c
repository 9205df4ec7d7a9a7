/*
 * AllToAll on a line: each rank sends towards either end one bundle with all it has for the ranks
 * on that side; each rank on the way takes out its chunk and passes on the rest.
 */
#include "workloads/collectives/patterns.h"

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    uint32_t const count = count_behind_on_line(size, lane, position);
    return (struct primitive_step){.units = 2 * count, .arrivals = step, .move_count = count};
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    return (struct primitive_move){
        .source = lane == 0 ? position - step : position + step,
        .destination = lane == 0 ? position + 1 + move : position - 1 - move,
        .halves = PRIMITIVE_HALVES,
    };
}

static struct primitive_cost cost_of(uint32_t size)
{
    uint64_t const chunks = size;
    return (struct primitive_cost){
        .depth = size - 1, .units = chunks * (chunks - 1), .port_units = chunks * chunks / 2};
}

const struct primitive primitive_all_to_all_line = {
    .name = "all_to_all_line",
    .help = "bundles travel to both ends of a line, a chunk less each hop: "
            "V(N-1)/(2N·w) in one piece, N-1 hops",
    .source = "Austin et al., How to Scale Your Model (2025), chapter 3, AllToAll, for an axis "
              "without wraparound: the ring's bundles, stored and forwarded from end to end",
    .kind = COLLECTIVE_ALL_TO_ALL,
    .family = PRIMITIVE_LINE,
    .ring = false,
    .lane_count = 2,
    .send_count = count_passed_on_line,
    .arrival_count = count_before_on_line,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
