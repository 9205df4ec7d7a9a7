/*
 * scenario_parts.h: what the files of sim/scenario share: readers and writers of parts that have no
 * rows (key.h), and of optional members.
 */
#ifndef SIM_SCENARIO_SCENARIO_PARTS_H
#define SIM_SCENARIO_SCENARIO_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/scenario/scenario.h"

struct arena;
struct json;
struct json_writer;

/* `base_folder` is where the file lies that names the chip, or NULL. */
enum status scenario_machine_read(struct arena *arena, struct json *object, const char *base_folder,
                                  struct machine_plan *ret_plan, struct error *reterr);
/* The `network` of a machine. */
enum status scenario_network_read(struct json *object, struct machine_network_plan *ret_plan,
                                  struct error *reterr);
/* `has_tiers`: it has leaves, spines and cores, whether or not the plan says more of them. */
void scenario_network_write(struct json_writer *writer, const struct machine_network_plan *plan,
                            bool has_tiers);

enum status scenario_mesh_read(struct json *object, struct mesh_plan *ret_plan,
                               struct error *reterr);
/* An exact amount with the largest unit of which it is a whole number, short for round numbers;
 * `units` rise by thousands and are ended by NULL. */
enum { SCENARIO_AMOUNT_BYTES = 40 };
extern const char *const scenario_rates[];
extern const char *const scenario_durations[];
const char *scenario_amount_text(char *buffer, uint64_t amount, const char *const *units);

/* How many coordinates a chip of this machine has; 0 if that cannot be said, because the chip or
 * the shape is not known (machine_build() will say so). */
uint32_t scenario_axis_count(struct arena *arena, const struct machine_plan *plan);

/* Optional members: the value is left as it is where there is none. */
enum status scenario_take_text(struct json *object, const char *key, const char **value,
                               struct error *reterr);
enum status scenario_take_flag(struct json *object, const char *key, bool *value,
                               struct error *reterr);
enum status scenario_take_count(struct json *object, const char *key, uint32_t least, uint32_t most,
                                uint32_t *value, struct error *reterr);
enum status scenario_take_choice(struct json *object, const char *key, const char *const *choices,
                                 uint32_t *value, struct error *reterr);
enum status scenario_need_array(struct json *json, uint32_t least, uint32_t most,
                                struct error *reterr);

#endif
