/*
 * list_text.h: the catalogues in words, for `podsim list`.
 */
#ifndef TOOLS_PODSIM_LIST_LIST_TEXT_H
#define TOOLS_PODSIM_LIST_LIST_TEXT_H

#include "sim/base/status.h"

struct arena;
struct strbuf;

/* A line an entry. */
typedef enum status list_all_fn(struct arena *arena, struct strbuf *text, struct error *reterr);
/* All about one; an unknown one is refused with the nearest. */
typedef enum status list_one_fn(struct arena *arena, const char *name, struct strbuf *text,
                                struct error *reterr);

list_all_fn list_chips, list_shapes, list_collectives, list_models, list_scenarios, list_schedules;
list_one_fn list_chip, list_shape, list_collective, list_model, list_scenario, list_schedule;

#endif
