/*
 * trees.h: who is above and below whom in the trees that several primitives climb.
 *
 * Binomial: position p hangs below p without its lowest bit, and holds the positions from p up to
 * p plus that bit; 0 holds all. The k-th child lies by 2^k above its parent.
 *
 * Binary: in order, as NCCL builds it (src/graph/trees.cc, ncclGetBtree): odd positions are leaves;
 * 0 is the root and has one child. The second tree of a pair is the first one's mirror image, or
 * shifted by one where their number is odd, so that who works in one is a leaf in the other.
 */
#ifndef WORKLOADS_COLLECTIVES_TREES_H
#define WORKLOADS_COLLECTIVES_TREES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/collective.h"

enum { TREE_CHILDREN_MAX = 2 };

/* The number of the lowest bit of a position; of 0 the number of bits that `size` positions need.
 */
static inline uint32_t binomial_bit(uint32_t size, uint32_t position)
{
    uint32_t bit = 0;
    while ((position >> bit & 1) == 0 && (UINT64_C(1) << bit) < size) bit++;
    return bit;
}

static inline uint32_t binomial_children(uint32_t size, uint32_t position)
{
    uint32_t count = 0;
    uint32_t const bit = binomial_bit(size, position);
    while (count < bit && position + (UINT64_C(1) << count) < size) count++;
    return count;
}

/* One message of a position for each of its children. */
static inline uint32_t count_children_binomial(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return binomial_children(size, position);
}

/* Positions that a position holds, itself included. */
static inline uint32_t binomial_held(uint32_t size, uint32_t position)
{
    uint64_t const held = UINT64_C(1) << binomial_bit(size, position);
    return held < size - position ? (uint32_t)held : size - position;
}

/* A parent sends to its farthest child first. */
static inline struct primitive_origin origin_binomial(uint32_t size, uint32_t position,
                                                      uint32_t arrival)
{
    (void)arrival;
    uint32_t const bit = binomial_bit(size, position);
    uint32_t const parent = position - (UINT32_C(1) << bit);
    return (struct primitive_origin){parent, binomial_children(size, parent) - 1 - bit};
}

/* Bits that `size` positions need: the storeys of a binomial tree. */
static inline uint32_t binomial_storeys(uint32_t size)
{
    return binomial_bit(size, 0);
}

static inline bool is_power_of_two(uint32_t size)
{
    return (size & (size - 1)) == 0;
}

/* Trees of other sizes than powers of two have leaves nearer to the root. */
static inline uint8_t binomial_bounds(uint32_t size)
{
    return is_power_of_two(size) ? 0 : PRIMITIVE_COST_DEPTH;
}

/* An array down a binomial tree, or up. */
static inline struct primitive_cost cost_binomial(uint32_t size)
{
    uint32_t const storeys = binomial_storeys(size);
    uint64_t const units = 2 * (uint64_t)size * storeys;
    return (struct primitive_cost){.depth = storeys,
                                   .units = units,
                                   .port_units = units,
                                   .reach = PRIMITIVE_REACH_NEAR,
                                   .relay = PRIMITIVE_RELAY_WHOLE,
                                   .bounds = binomial_bounds(size)};
}

/* Chunks in bundles: where positions are a power of two, a block of as many has a bundle. */
static inline struct primitive_cost cost_binomial_bundles(uint32_t size)
{
    uint64_t const units = 2 * ((uint64_t)size - 1);
    return (struct primitive_cost){.depth = binomial_storeys(size),
                                   .units = units,
                                   .port_units = units,
                                   .paired = is_power_of_two(size),
                                   .reach = PRIMITIVE_REACH_NEAR,
                                   .bounds = binomial_bounds(size)};
}

struct tree_node {
    bool is_root;
    uint32_t parent;
    uint32_t number; /* Which of its parent's children it is. */
    uint32_t child[TREE_CHILDREN_MAX];
    uint32_t child_count;
};

/* The lowest bit of a position; of 0 the least power of two that is not below `size`. */
static inline uint32_t binary_bit(uint32_t size, uint32_t position)
{
    uint32_t bit = 1;
    while (bit < size && (position & bit) == 0) bit <<= 1;
    return bit;
}

static inline uint32_t binary_parent(uint32_t size, uint32_t position)
{
    uint32_t const bit = binary_bit(size, position);
    uint32_t const above = (position ^ bit) | bit << 1;
    return above < size ? above : position ^ bit;
}

static inline struct tree_node binary_node(uint32_t size, uint32_t position)
{
    struct tree_node node = {.is_root = position == 0};
    uint32_t half = binary_bit(size, position) >> 1;
    if (position == 0) {
        node.child[0] = half;
        node.child_count = half > 0 ? 1 : 0;
        return node;
    }
    node.parent = binary_parent(size, position);
    if (half > 0) node.child[node.child_count++] = position - half;
    while (half > 0 && position + half >= size) half >>= 1;
    if (half > 0) node.child[node.child_count++] = position + half;
    node.number = node.parent != 0 && position > node.parent ? 1 : 0;
    return node;
}

/* A position of the second tree as one of the first, and back. */
static inline uint32_t binary_other(uint32_t size, uint32_t position, bool back)
{
    if (size % 2 == 0) return size - 1 - position;
    return (position + (back ? 1 : size - 1)) % size;
}

static inline struct tree_node binary_node_of(uint32_t size, bool second, uint32_t position)
{
    if (!second) return binary_node(size, position);
    struct tree_node node = binary_node(size, binary_other(size, position, false));
    node.parent = binary_other(size, node.parent, true);
    for (uint32_t i = 0; i < node.child_count; i++)
        node.child[i] = binary_other(size, node.child[i], true);
    return node;
}

#endif
