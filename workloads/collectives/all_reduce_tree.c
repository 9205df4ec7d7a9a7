/*
 * AllReduce along a binomial tree: sums climb it to position 0 (lane 0), and the result comes down
 * again (lane 1).
 */
#include "sim/collective/collective.h"
#include "workloads/collectives/trees.h"

enum { UP, DOWN, LANES };

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    bool const is_up = lane == UP;
    return is_up ? position > 0 : binomial_children(size, position);
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    bool const is_up = lane == UP;
    return is_up ? binomial_children(size, position) : position > 0;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    uint32_t const children = binomial_children(size, position);
    struct primitive_step content = {.units = 2 * size, .move_count = size};
    if (lane == UP) {
        content.slot = binomial_bit(size, position);
        content.peer = position - (UINT32_C(1) << content.slot);
        content.arrivals = children;
        content.wait_lane = UP;
    } else {
        content.peer = position + (UINT32_C(1) << (children - 1 - step));
        content.arrivals = position > 0 ? 1 : children;
        content.wait_lane = position > 0 ? DOWN : UP;
    }
    return content;
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)position;
    (void)step;
    return (struct primitive_move){
        .source = lane == UP ? primitive_any : 0, .destination = move, .halves = PRIMITIVE_HALVES};
}

static struct primitive_cost cost_of(uint32_t size)
{
    struct primitive_cost cost = cost_binomial(size); /* Of one way; up and down by other ports. */
    cost.depth *= 2;
    cost.units *= 2;
    return cost;
}

const struct primitive primitive_all_reduce_tree = {
    .name = "all_reduce_tree",
    .help = "sums up a binomial tree and down again: 2V·ceil(log2 N)/w in one piece, 2·ceil(log2 "
            "N) latencies",
    .source = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations "
              "in MPICH (2005), section 4.4, and 4.3 back: binomial tree",
    .kind = COLLECTIVE_ALL_REDUCE,
    .family = PRIMITIVE_TREE,
    .lane_count = LANES,
    .routed = true,
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
