/*
 * routing.h: where tokens go when a router sends each to k of E experts, all alike to it: how many
 * of them come to a rank or a node. Counted, not drawn: every rank has the same load.
 */
#ifndef SIM_STEP_ROUTING_H
#define SIM_STEP_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/model/model.h"

/* How many of `tokens` have at least one of their experts among `held` of them that lie next to
 * each other (those of a rank, of a node), on average and rounded up. */
uint64_t routing_hits(const struct model_experts *experts, uint64_t held, uint64_t tokens);

/* Whether `held` experts are part of a group of experts, or whole groups: what a token's limit to
 * a few groups means for others depends on where they begin. */
bool routing_fits_groups(const struct model_experts *experts, uint64_t held);

#endif
