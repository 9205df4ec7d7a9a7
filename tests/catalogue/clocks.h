/*
 * clocks.h: how long a plan takes on idle links, from clocks alone: a link is one instant, when it
 * is free. An independent small model of what the replay does with queues, for the tests.
 */
#ifndef TESTS_CATALOGUE_CLOCKS_H
#define TESTS_CATALOGUE_CLOCKS_H

#include <stdint.h>

#include "sim/collective/plan.h"

/* When the last rank has got its last message. Rings are folded to one position, since all are
 * alike; lines are played in full. A route of several links counts the bytes on the first. */
int64_t clocks_play_ps(const struct plan *plan, uint64_t bytes_per_s, int64_t hop_ps);

#endif
