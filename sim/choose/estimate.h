/*
 * estimate.h: what a plan should take: α + β·V, from the known forms of its primitives.
 *
 * Each primitive has a depth, the messages that follow one another, and bytes that the busiest
 * member of a dimension passes in series (Thakur, Rabenseifner and Gropp 2005; the book, chapters 3
 * and 12). α is the depths of a chain of items times what a message takes on its way without bytes;
 * β is what the busiest wires carry, and in part what a chain takes one item after the other: its
 * first piece does. No queue is simulated; plans that collide on a wire take longer.
 */
#ifndef SIM_CHOOSE_ESTIMATE_H
#define SIM_CHOOSE_ESTIMATE_H

#include "sim/collective/plan.h"
#include "sim/machine/machine.h"

struct contention_cache;

struct collective_estimate {
    double alpha_s;         /* Time of the plan if it had no bytes. */
    double beta_s_per_byte; /* Time that each byte of plan.size_bytes adds. */
    double time_s;          /* α + β·V */
    double wire_s;          /* Bytes on the busiest wires alone: never more than time_s. */
};

/* With the plan's own protocol. `known` keeps what does not depend on the size; or NULL. */
void collective_estimate(const struct machine *machine, const struct plan *plan,
                         struct contention_cache *known, struct collective_estimate *ret_estimate);

#endif
