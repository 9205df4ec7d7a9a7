/*
 * overrides.h: checks the links and chips that a scenario overrides, and hands them to the machine.
 */
#ifndef SIM_MACHINE_OVERRIDES_H
#define SIM_MACHINE_OVERRIDES_H

#include "sim/base/status.h"
#include "sim/machine/machine.h"

struct arena;

/* Faster chips are allowed for what-ifs, up to this. */
static const uint32_t overrides_ppm_max = 100 * 1000000;

enum status overrides_check_links(struct arena *arena, const struct machine_plan *plan,
                                  struct machine *machine, struct error *reterr);

/* A later entry overrides an earlier one that names the same chip. */
enum status overrides_check_chips(struct arena *arena, const struct machine_chip_override *chips,
                                  uint32_t count, struct machine *machine, struct error *reterr);

#endif
