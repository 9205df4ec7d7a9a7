/*
 * rules.h: the book's rules of thumb for sharded training, with the scenario's numbers.
 */
#ifndef SIM_ROOFLINE_RULES_H
#define SIM_ROOFLINE_RULES_H

#include "sim/roofline/roofline.h"

/* Fills `roofline->rules` from the rest of the roofline. */
void rules_evaluate(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline);

#endif
