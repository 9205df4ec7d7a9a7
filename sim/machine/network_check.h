/*
 * network_check.h: refuses what a plan says of switches that a machine does not have.
 */
#ifndef SIM_MACHINE_NETWORK_CHECK_H
#define SIM_MACHINE_NETWORK_CHECK_H

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/machine/machine.h"

/* Before levels are built; `far`: something lies beyond a node or slice. */
enum status network_check_plan(const struct machine_network_plan *plan,
                               const struct machine *machine, bool far, struct error *reterr);

/* Of the tiers and switches that were built. */
enum status network_check_built(const struct machine_network_plan *plan,
                                const struct machine *machine, struct error *reterr);

#endif
