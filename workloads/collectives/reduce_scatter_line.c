/*
 * ReduceScatter on a line: partial sums start at both ends, those for the farthest ranks first;
 * every rank on the way adds its own. The AllGather on a line backwards.
 */
#include "workloads/collectives/patterns.h"

/* The last one that arrives is the rank's own. */
static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    bool const is_start = position == (lane == 0 ? 0 : size - 1);
    return is_start ? 0 : count_behind_on_line(size, lane, position) + 1;
}

/* Chunks come from the two ends in turn, the higher first, until one side runs out; its own last.
 * This is where the `rank`-th of a lane stands in that order. */
static uint32_t chunk_index(uint32_t size, uint32_t lane, uint32_t position, uint32_t rank)
{
    uint32_t const others = count_behind_on_line(size, 1 - lane, position);
    uint32_t const others_before = rank + lane;
    return rank + (others_before < others ? others_before : others);
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    bool const is_start = position == (lane == 0 ? 0 : size - 1);
    return (struct primitive_step){
        .units = 2,
        .arrivals = is_start ? 0 : step + 1,
        .chunks = chunk_index(size, lane, position, step) + 1,
        .move_count = 1,
    };
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)position;
    (void)move;
    return (struct primitive_move){
        .source = primitive_any,
        .destination = lane == 0 ? size - 1 - step : step,
        .halves = PRIMITIVE_HALVES,
    };
}

static uint32_t chunk_at(uint32_t size, uint32_t position, uint32_t index)
{
    uint32_t const above = size - 1 - position, below = position;
    uint32_t const both = 2 * (above < below ? above : below);
    if (index < both) return index % 2 == 0 ? size - 1 - index / 2 : index / 2;
    uint32_t const rank = both / 2 + (index - both);
    return above > below ? size - 1 - rank : rank;
}

const struct primitive primitive_reduce_scatter_line = {
    .name = "reduce_scatter_line",
    .help = "partial sums come in from both ends of a line: V(N-1)/(N·w) and N-1 hops",
    .source =
        "Austin et al., How to Scale Your Model (2025), chapter 3, ReduceScatter, for an axis "
        "without wraparound (chapter 2): the AllGather on a line, transposed",
    .kind = COLLECTIVE_REDUCE_SCATTER,
    .family = PRIMITIVE_LINE,
    .ring = false,
    .lane_count = 2,
    .send_count = count_behind_on_line,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
    .chunk_at = chunk_at,
    .cost = cost_line,
};
