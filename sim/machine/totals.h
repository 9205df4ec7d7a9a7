/*
 * totals.h: what a machine's published figures can be checked against: switches, ports, and how
 * much can pass at once. Rates are one way and effective.
 */
#ifndef SIM_MACHINE_TOTALS_H
#define SIM_MACHINE_TOTALS_H

#include <stdint.h>

#include "sim/machine/machine.h"

struct tier_totals {
    uint32_t unit_count;
    uint64_t switch_count;
    uint32_t ports_used;  /* Of the switch that uses most. */
    uint64_t cable_count; /* Cables from below into the tier. The number of cables back is equal. */
    uint32_t links_per_cable;    /* NVLinks that join two GPUs where no switch does; else 1. */
    uint64_t cable_bytes_per_s;  /* Rate of all cables of one direction. */
    uint64_t switch_bytes_per_s; /* All ports of all switches; 0: they have no ports. */
    uint64_t unit_bytes_per_s;   /* From below into one whole unit. */
    uint64_t pair_bytes_per_s;   /* From one chip to one that it meets here, both alone. */
    uint64_t share_bytes_per_s;  /* A chip's rate while all send to chips that they meet here. */
};

void totals_of_tier(const struct machine *machine, uint32_t level, uint32_t tier,
                    struct tier_totals *ret_totals);

struct machine_totals {
    uint64_t chip_egress_bytes_per_s; /* Over all of its links, or its NVLinks. */
    uint64_t
        unit_egress_bytes_per_s; /* Of a node over its NICs; of a host over its NIC. 0: none. */
    uint64_t switch_count;
    /* Between two halves of the machine, cut where least can pass. */
    uint64_t bisection_bytes_per_s;
    uint64_t slice_bisection_bytes_per_s; /* The bisection of one grid; 0 for GPUs. */
};

void totals_of_machine(const struct machine *machine, struct machine_totals *ret_totals);

#endif
