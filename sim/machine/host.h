/*
 * host.h: how a chip reaches the memory of its host.
 *
 * One link each way: PCIe, a chip's own, or NVLink-C2C, which the GPUs of a CPU share. Where the
 * machine has a DCN, a chip's messages over it take the same PCIe link first (level.h, the tier
 * "host"), so they and copies to the host wait for each other. What lies behind the link, the
 * CPU's memory, is never in the way here.
 *
 * Sources: the book, chapter 2, TPU Specs, and chapter 12, 12.6; the numbers stand in
 * topology/chips/.
 */
#ifndef SIM_MACHINE_HOST_H
#define SIM_MACHINE_HOST_H

#include <stdint.h>

#include "sim/machine/level.h"

struct machine_host {
    const char *cable_name;       /* "PCIe", "C2C" */
    const char *port_name[2];     /* "PCIe up": to the host; "PCIe down". */
    uint64_t bytes_per_s;         /* One way; 0: no host can be reached. */
    int64_t latency_ps;           /* One way. */
    uint32_t box[LEVEL_AXES_MAX]; /* Chips that share a link. */
    uint8_t level; /* Whose first cables are these links; LEVEL_NONE: they are links apart. */
};

struct machine;

/* The machine's chip, axes and levels are there. */
void host_build(struct machine *machine);

/* Chips that share a link, where the unit is whole. */
uint32_t host_sharers(const struct machine *machine);

#endif
