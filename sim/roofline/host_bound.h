/*
 * host_bound.h: how long copies between chips and their hosts take at least, in closed form.
 *
 * Bytes over the rate of the link, which is shared evenly by the chips that it serves; the two
 * directions are links apart. Source: the book, chapter 2, "PCIe bandwidth is limited", questions 3
 * and 6; chapter 12, 12.6.
 */
#ifndef SIM_ROOFLINE_HOST_BOUND_H
#define SIM_ROOFLINE_HOST_BOUND_H

#include "sim/machine/machine.h"

struct host_bound {
    double time_s; /* The largest of the three below. */
    double bytes_s;
    double latency_s;
    double hbm_s;         /* Each byte read or written once, by the chip. */
    const char *bound_by; /* "latency", "host", "hbm" */
};

/* Every chip copies `bytes`, each in one direction. The machine has a link to the host. */
void host_bound(const struct machine *machine, double bytes, struct host_bound *ret_bound);

/* Seconds of the link for `bytes` of each chip that it serves, one way. 0 bytes take none. */
double host_link_s(const struct machine *machine, double bytes);

#endif
