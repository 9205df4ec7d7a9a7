/*
 * exchange.h: routed primitives by hand, for tests of the replay that need to know each message.
 */
#ifndef TESTS_SUPPORT_EXCHANGE_H
#define TESTS_SUPPORT_EXCHANGE_H

#include "sim/collective/collective.h"

/* One message a pair, to displacement 1, 2, ... in one lane. */
extern const struct primitive exchange_direct;
/* One message a pair in four lanes, each of which has a range of displacements. */
extern const struct primitive exchange_lanes;
/* A ReduceScatter with one message a pair. */
extern const struct primitive exchange_scatter;
/* One message a pair, as if positions differed: no part of the exchange can be folded. */
extern const struct primitive exchange_unlike;
/* Position p sends one message to position exchange_target[p]. */
extern const struct primitive exchange_permutation;
extern const uint32_t *exchange_target;
/* Position 0 sends one message to each other position, in turn. */
extern const struct primitive exchange_root;

#endif
