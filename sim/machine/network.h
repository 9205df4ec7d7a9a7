/*
 * network.h: the levels of switches of a machine, from the chip's numbers and the plan.
 *
 * NVLink: GPUs around the NVSwitches of their node; more GPUs than a switch has ports stand in
 * boards of half as many, which a second tier joins.
 *
 * Beyond the node, a fat tree by the rule of the SuperPod (book, chapter 12, Beyond the Node Level;
 * NVIDIA DGX SuperPOD reference architecture, Table 3): half of the ports of a leaf go down, to the
 * n-th NIC of as many nodes (a scalable unit). As long as one link from each leaf can reach each
 * spine, there are just enough spines for all that comes up, each with equally many links to every
 * leaf. Beyond that, pods of as many leaves as a spine has ports down, joined by cores.
 *
 * TPU slices: chip, PCIe, host, NIC, DCN: one switch that is never in the way, unless the plan
 * asks for leaves and spines.
 */
#ifndef SIM_MACHINE_NETWORK_H
#define SIM_MACHINE_NETWORK_H

#include "sim/base/status.h"
#include "sim/machine/machine.h"

struct arena;

/* Axes, axis names and lengths are there; adds levels and says which axis each serves. */
enum status network_build(struct arena *arena, const struct machine_plan *plan,
                          struct machine *machine, struct error *reterr);

/* What the maker calls the switches that join the GPUs of a node: "NVSwitch", "switch". */
const char *network_switch_name(const struct chip_network *chip);

#endif
