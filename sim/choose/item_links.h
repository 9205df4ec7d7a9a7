/*
 * item_links.h: links of the grid that an item's messages use, for closed forms: of overridden ones
 * the slowest decides, since in a ring or a line each message passes all.
 */
#ifndef SIM_CHOOSE_ITEM_LINKS_H
#define SIM_CHOOSE_ITEM_LINKS_H

#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

/* Bytes per second of the slowest link, in any group, that an item uses along a dimension of the
 * grid; more where it carries less than the busiest. Without an item any link of the axis may be
 * used. Links that are faster than the others do not count: something always takes one of these. */
double item_links_rate(const struct machine *machine, const struct plan *plan,
                       const struct plan_item *item, uint32_t dimension);

/* How much longer its longest hop is than the others; 0 along an axis of a level. */
double item_links_hop_s(const struct machine *machine, const struct plan *plan,
                        const struct plan_item *item, uint32_t dimension);

#endif
