/*
 * root_ring.h: how far positions of a ring are from its root, the way that a lane goes.
 */
#ifndef WORKLOADS_COLLECTIVES_ROOT_RING_H
#define WORKLOADS_COLLECTIVES_ROOT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/collective.h"

/* Links from the root to a position along a lane that leads away from it; lane 0 goes up. */
static inline uint32_t root_ring_from(uint32_t size, uint32_t lane, uint32_t position)
{
    return lane == 0 || position == 0 ? position : size - position;
}

/* The position so far from the root. */
static inline uint32_t root_ring_at(uint32_t size, bool up, uint32_t distance)
{
    return up || distance == 0 ? distance : size - distance;
}

/* Units that go by one way round for those who are farther from the root than a position, or come
 * from them: two a chunk, and of an even ring's antipodal chunk one. */
static inline uint32_t root_ring_beyond(uint32_t size, uint32_t distance)
{
    return distance < size / 2 ? 2 * (size / 2 - distance) - (size % 2 == 0) : 0;
}

/* Which half of a chunk that is: of the antipodal one, the lane's own. */
static inline uint8_t root_ring_half(uint32_t size, uint32_t lane, uint32_t distance, bool second)
{
    bool const last = 2 * distance == size ? lane == 1 : second;
    return last ? PRIMITIVE_HALF_SECOND : PRIMITIVE_HALF_FIRST;
}

/* One half chunk after another, each behind those that came before it. */
static inline struct primitive_step step_root_ring(uint32_t size, uint32_t lane, uint32_t position,
                                                   uint32_t step)
{
    (void)size;
    (void)lane;
    return (struct primitive_step){
        .units = 1, .arrivals = position > 0 ? step + 1 : 0, .move_count = 1};
}

/* Half chunks by the shorter way, those for the farthest first, or those from behind last. */
static inline struct primitive_cost cost_root_ring(uint32_t size)
{
    return (struct primitive_cost){.depth = size / 2, .units = size - 1, .port_units = size - 1};
}

/* Half of the array each way round, chunk after chunk. */
static inline struct primitive_cost cost_root_ring_array(uint32_t size)
{
    return (struct primitive_cost){.depth = size - 1,
                                   .units = 2 * ((uint64_t)size - 1),
                                   .port_units = size,
                                   .relay = PRIMITIVE_RELAY_CHUNKS};
}

#endif
