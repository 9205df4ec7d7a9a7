/*
 * exchange.h: routed primitives by hand, for tests of the replay that need to know each message.
 */
#ifndef TESTS_SUPPORT_EXCHANGE_H
#define TESTS_SUPPORT_EXCHANGE_H

#include "sim/collective/collective.h"

/* One message a pair, to displacement 1, 2, ... in one lane. */
extern const struct primitive exchange_direct;
/* The same in four lanes, each with a range of displacements. */
extern const struct primitive exchange_lanes;
/* The same as a ReduceScatter. */
extern const struct primitive exchange_scatter;
/* The same as if positions differed: nothing of it can be folded. */
extern const struct primitive exchange_unlike;
/* Position p sends one message to position exchange_target[p]. */
extern const struct primitive exchange_permutation;
extern const uint32_t *exchange_target;
/* Position 0 sends one message to each other position, in turn. */
extern const struct primitive exchange_root;

#endif
