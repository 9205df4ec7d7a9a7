/*
 * patterns.h: what many primitives do alike: how many messages a position sends or gets, and which
 * chunks are in one. The root is position 0.
 */
#ifndef WORKLOADS_COLLECTIVES_PATTERNS_H
#define WORKLOADS_COLLECTIVES_PATTERNS_H

#include <stddef.h>

#include "sim/collective/collective.h"

static inline uint32_t log2_up(uint32_t size)
{
    uint32_t log = 0;
    while ((UINT64_C(1) << log) < size) log++;
    return log;
}

static inline const char *refuses_but_powers_of_two(uint32_t size)
{
    return (size & (size - 1)) == 0 ? NULL : "needs a power of two";
}

/* Messages of each position. */
static inline uint32_t count_one_each(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    (void)position;
    return 1;
}

static inline uint32_t count_others_each(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    (void)position;
    return size - 1;
}

static inline uint32_t count_half_each(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    (void)position;
    return size / 2;
}

static inline uint32_t count_log2_each(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    (void)position;
    return log2_up(size);
}

/* Messages of the root alone, or of all others. */
static inline uint32_t count_one_of_root(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position == 0 ? 1 : 0;
}

static inline uint32_t count_others_of_root(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position == 0 ? size - 1 : 0;
}

static inline uint32_t count_one_of_others(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position > 0 ? 1 : 0;
}

static inline uint32_t count_chunks_of_others(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position > 0 ? size : 0;
}

/* Positions of a line before one, as its lane goes, and behind it. */
static inline uint32_t count_before_on_line(uint32_t size, uint32_t lane, uint32_t position)
{
    return lane == 0 ? position : size - 1 - position;
}

static inline uint32_t count_behind_on_line(uint32_t size, uint32_t lane, uint32_t position)
{
    return lane == 0 ? size - 1 - position : position;
}

/* What a position of a line passes on: what comes from before it, and its own. */
static inline uint32_t count_passed_on_line(uint32_t size, uint32_t lane, uint32_t position)
{
    bool const is_end = count_behind_on_line(size, lane, position) == 0;
    return is_end ? 0 : count_before_on_line(size, lane, position) + 1;
}

/* The chunk that has come so many steps round a ring that goes one way. */
static inline uint32_t ring_chunk(uint32_t size, uint32_t position, uint32_t step)
{
    return (position + size - step) % size;
}

/* The sum that leaves as the `index`-th where sums go round so: that for the farthest first. */
static inline uint32_t ring_sum(uint32_t size, uint32_t position, uint32_t index)
{
    return (position + size - 1 - index) % size;
}

/* Chunks that Bruck's k-th message carries. */
static inline uint32_t bruck_chunks(uint32_t size, uint32_t k)
{
    uint32_t const distance = UINT32_C(1) << k;
    return distance < size - distance ? distance : size - distance;
}

/* Each message a chunk that came in the one before, one way round. */
static inline struct primitive_cost cost_one_way(uint32_t size)
{
    uint64_t const units = 2 * ((uint64_t)size - 1);
    return (struct primitive_cost){
        .depth = size - 1, .units = units, .port_units = units, .serial = true};
}

/* Chunks that are passed on along a line: the last link carries the chunks of all others. */
static inline struct primitive_cost cost_line(uint32_t size)
{
    uint64_t const units = 2 * ((uint64_t)size - 1);
    return (struct primitive_cost){.depth = size - 1, .units = units, .port_units = units};
}

/* A chunk to each of the others, or from each. */
static inline struct primitive_cost cost_direct(uint32_t size)
{
    uint64_t const units = 2 * ((uint64_t)size - 1);
    return (struct primitive_cost){.depth = 1,
                                   .units = units,
                                   .port_units = units,
                                   .paired = true,
                                   .reach = PRIMITIVE_REACH_ALL};
}

/* An array to each of the others, or from each. */
static inline struct primitive_cost cost_direct_array(uint32_t size)
{
    struct primitive_cost cost = cost_direct(size);
    cost.units *= size;
    cost.port_units *= size;
    return cost;
}

/* Chunks, twice as many to the rank twice as far. */
static inline struct primitive_cost cost_bruck(uint32_t size)
{
    uint64_t const units = 2 * ((uint64_t)size - 1);
    return (struct primitive_cost){.depth = log2_up(size),
                                   .units = units,
                                   .port_units = units,
                                   .serial = true,
                                   .reach = PRIMITIVE_REACH_SCALED};
}

/* As cost_bruck(), between partners. */
static inline struct primitive_cost cost_recursive(uint32_t size)
{
    struct primitive_cost cost = cost_bruck(size);
    cost.paired = true;
    return cost;
}

/* Switches copy or add: a chunk for each other rank. */
static inline struct primitive_cost cost_sharp(uint32_t size)
{
    uint64_t const units = 2 * ((uint64_t)size - 1);
    return (struct primitive_cost){
        .depth = 1, .units = units, .port_units = units, .reach = PRIMITIVE_REACH_NEAR};
}

/* Switches copy or add: an array. */
static inline struct primitive_cost cost_sharp_array(uint32_t size)
{
    return (struct primitive_cost){.depth = 1,
                                   .units = 2 * (uint64_t)size,
                                   .port_units = 2 * (uint64_t)size,
                                   .reach = PRIMITIVE_REACH_NEAR};
}

/* Chunk after chunk along a chain. */
static inline struct primitive_cost cost_chain(uint32_t size)
{
    uint64_t const chunks = size;
    return (struct primitive_cost){.depth = size - 1,
                                   .units = 2 * (2 * chunks - 2),
                                   .port_units = 2 * chunks,
                                   .relay = PRIMITIVE_RELAY_CHUNKS};
}

static inline struct primitive_cost cost_permute(uint32_t size)
{
    (void)size;
    return (struct primitive_cost){.depth = 1, .units = 2, .port_units = 2};
}

/* A chunk that came in the step before, or the own one. */
static inline struct primitive_step step_passed_on(uint32_t size, uint32_t lane, uint32_t position,
                                                   uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2, .arrivals = step, .move_count = 1};
}

/* Chunks for one peer in a round, behind all that came in the rounds before. */
static inline struct primitive_step step_of_round(uint32_t round, uint32_t chunks, uint32_t peer)
{
    return (struct primitive_step){
        .units = 2 * chunks, .arrivals = round, .move_count = chunks, .peer = peer, .slot = round};
}

/* What ring_chunk() says, for all. */
static inline struct primitive_move move_ring_chunk(uint32_t size, uint32_t lane, uint32_t position,
                                                    uint32_t step, uint32_t move)
{
    (void)lane;
    (void)move;
    return (struct primitive_move){.source = ring_chunk(size, position, step),
                                   .destination = primitive_any,
                                   .halves = PRIMITIVE_HALVES};
}

/* The sum that ring_sum() says. */
static inline struct primitive_move move_ring_sum(uint32_t size, uint32_t lane, uint32_t position,
                                                  uint32_t step, uint32_t move)
{
    (void)lane;
    (void)move;
    return (struct primitive_move){.source = primitive_any,
                                   .destination = ring_sum(size, position, step),
                                   .halves = PRIMITIVE_HALVES};
}

/* The own chunk, for all. */
static inline struct primitive_move move_own_chunk(uint32_t size, uint32_t lane, uint32_t position,
                                                   uint32_t step, uint32_t move)
{
    (void)size;
    (void)lane;
    (void)step;
    (void)move;
    return (struct primitive_move){
        .source = position, .destination = primitive_any, .halves = PRIMITIVE_HALVES};
}

/* Sent by the root, to each of the others in order. */
static inline struct primitive_origin origin_root(uint32_t size, uint32_t position,
                                                  uint32_t arrival)
{
    (void)size;
    (void)arrival;
    return (struct primitive_origin){0, position - 1};
}

/* All chunks of an array, or of its sum. */
static inline struct primitive_move move_array(uint32_t size, uint32_t lane, uint32_t position,
                                               uint32_t step, uint32_t move)
{
    (void)size;
    (void)lane;
    (void)position;
    (void)step;
    return (struct primitive_move){
        .source = primitive_any, .destination = move, .halves = PRIMITIVE_HALVES};
}

#endif
