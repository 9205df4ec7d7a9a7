/*
 * hosts.h: what hosts add to a collective between slices of TPUs, in closed form: a constant; a
 * time for each message that a rank sends to other slices, one after the other; and the slowest of
 * all hosts. Of N times that are exponential with one mean, the largest has the mean times 1 + 1/2
 * + ... + 1/N.
 */
#ifndef SIM_COLLECTIVE_HOSTS_H
#define SIM_COLLECTIVE_HOSTS_H

#include "sim/collective/plan.h"

/* The time of hosts before the first message of a request; 0: it lies in one slice, or the profile
 * has no such time. */
int64_t hosts_begin_ps(const struct machine *machine, const struct plan_request *request);

/* Sets the protocol of a request that waits for hosts. */
void hosts_begin(const struct machine *machine, struct plan_request *request);

#endif
