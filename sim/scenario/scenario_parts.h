/*
 * scenario_parts.h: what the files of sim/scenario share.
 */
#ifndef SIM_SCENARIO_SCENARIO_PARTS_H
#define SIM_SCENARIO_SCENARIO_PARTS_H

#include "sim/scenario/key.h"
#include "sim/scenario/scenario.h"

/* `base_folder` is where the file lies that names the chip, or NULL. */
enum status scenario_machine_read(struct arena *arena, struct json *object, const char *base_folder,
                                  struct machine_plan *ret_plan, struct error *reterr);

/* The whole mesh, in the order of the file. */
void scenario_mesh_write(struct json_writer *writer, const char *name,
                         const struct key_source *source);

/* How many coordinates a chip of this machine has; 0 if that cannot be said, because the chip or
 * the shape is not known (machine_build() will say so). */
uint32_t scenario_axis_count(struct arena *arena, const struct machine_plan *plan);

#endif
