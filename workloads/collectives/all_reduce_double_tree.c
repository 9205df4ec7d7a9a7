/*
 * AllReduce along two binary trees, half of the array on each: who passes on data in one is a leaf
 * in the other, so that every rank sends and receives about as much. Lanes: up and down the first
 * tree, up and down the second.
 */
#include "sim/collective/collective.h"
#include "workloads/collectives/trees.h"

enum { UP, DOWN, TREE_LANES, LANES = 2 * TREE_LANES };

static struct tree_node node_of(uint32_t size, uint32_t lane, uint32_t position)
{
    return binary_node_of(size, lane >= TREE_LANES, position);
}

static uint32_t send_count(uint32_t size, uint32_t lane, uint32_t position)
{
    struct tree_node const node = node_of(size, lane, position);
    return lane % TREE_LANES == UP ? !node.is_root : node.child_count;
}

static uint32_t arrival_count(uint32_t size, uint32_t lane, uint32_t position)
{
    struct tree_node const node = node_of(size, lane, position);
    return lane % TREE_LANES == UP ? node.child_count : !node.is_root;
}

static struct primitive_step step_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step)
{
    struct tree_node const node = node_of(size, lane, position);
    struct primitive_step content = {.units = size, .move_count = size, .wait_lane = (uint8_t)lane};
    if (lane % TREE_LANES == UP) {
        content.slot = node.number;
        content.peer = node.parent;
        content.arrivals = node.child_count;
    } else {
        content.peer = node.child[step];
        content.arrivals = node.is_root ? node.child_count : 1;
        if (node.is_root) content.wait_lane = (uint8_t)(lane - DOWN);
    }
    return content;
}

static struct primitive_move move_of(uint32_t size, uint32_t lane, uint32_t position, uint32_t step,
                                     uint32_t move)
{
    (void)size;
    (void)position;
    (void)step;
    return (struct primitive_move){.source = lane % TREE_LANES == UP ? primitive_any : 0,
                                   .destination = move,
                                   .halves = lane < TREE_LANES ? PRIMITIVE_HALF_FIRST
                                                               : PRIMITIVE_HALF_SECOND};
}

/* Bytes are what each tree would take by itself. */
static struct primitive_cost cost_of(uint32_t size)
{
    uint64_t const storeys = binomial_storeys(size);
    return (struct primitive_cost){.depth = (uint32_t)(2 * storeys),
                                   .units = 4 * storeys * size,
                                   .port_units = 4 * (uint64_t)size,
                                   .reach = PRIMITIVE_REACH_NEAR,
                                   .relay = PRIMITIVE_RELAY_WHOLE,
                                   .bounds = PRIMITIVE_COST_UNITS};
}

const struct primitive primitive_all_reduce_double_tree = {
    .name = "all_reduce_double_tree",
    .help = "half the array on each of two binary trees: 2V/w with many pieces, about 2·log2(N) "
            "latencies",
    .source = "Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast, "
              "reduction and scan (2009), section 2; NCCL 2.4, double binary trees",
    .kind = COLLECTIVE_ALL_REDUCE,
    .family = PRIMITIVE_DOUBLE_TREE,
    .lane_count = LANES,
    .routed = true,
    .send_count = send_count,
    .arrival_count = arrival_count,
    .step = step_of,
    .move = move_of,
    .cost = cost_of,
};
