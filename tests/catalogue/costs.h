/*
 * costs.h: what a primitive takes by its moves, for the proof of what its entry says. The moves are
 * played on ports that know nothing of the entry's formula: each position has one out and one in,
 * or where neighbours are sent to, one for each of them.
 */
#ifndef TESTS_CATALOGUE_COSTS_H
#define TESTS_CATALOGUE_COSTS_H

#include <stdint.h>

#include "sim/collective/collective.h"

enum { COSTS_RANKS_MAX = 64 };

struct costs_clock {
    uint64_t unit_time; /* Of half a chunk through a port. */
    uint64_t way_time;  /* From one position to any other. */
    uint32_t piece_count;
};

/* When the last message has come. A message leaves by its sender's port while it comes in by the
 * receiver's, as soon as both are free; what switches copy or add passes a port of each once. */
uint64_t costs_play(const struct primitive *primitive, uint32_t size,
                    const struct costs_clock *clock, uint64_t *ret_port_units);

/* The most units of others' blocks that a position sends, or gets, where positions lie in blocks of
 * `inside`. */
uint64_t costs_crossing(const struct primitive *primitive, uint32_t size, uint32_t inside);

/* How far messages go among 8 positions or more; of fewer several answers are right. */
enum primitive_reach costs_reach(const struct primitive *primitive, uint32_t size);

/* How positions pass on the whole array, among 8 or more. */
enum primitive_relay costs_relay(const struct primitive *primitive, uint32_t size);

#endif
