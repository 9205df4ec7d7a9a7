/*
 * ecmp_collisions.h: what an item with too many messages to simulate takes where flows keep the
 * cables that a hash names: how many messages of each step want the fullest cable of a way.
 */
#ifndef SIM_CHOOSE_ECMP_COLLISIONS_H
#define SIM_CHOOSE_ECMP_COLLISIONS_H

#include <stdbool.h>

#include "sim/choose/contention.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

/* Fills the times of a byte, byte_s and wire_byte_s; false where no flow is hashed, where ranks do
 * not all send as often, or where there are too many messages even to count. */
bool ecmp_count(const struct machine *machine, const struct plan *plan,
                const struct plan_item *item, struct contention_times *ret);

/* What a chip has of a level, one way, for what its switches copy or add: where a hash names
 * cables, all of that from or to one unit goes by one, since its ends are the unit's whoever sent
 * it. */
double ecmp_network_rate(const struct machine *machine, uint32_t axis);

#endif
