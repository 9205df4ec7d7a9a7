/*
 * rules.h: the book's rules of thumb for sharded training, with the scenario's numbers.
 */
#ifndef SIM_ROOFLINE_RULES_H
#define SIM_ROOFLINE_RULES_H

#include "sim/roofline/roofline.h"

/* Fills `roofline->rules` from the rest of the roofline. */
void rules_evaluate(const struct workload_plan *plan, const struct machine *machine,
                    const struct mesh *mesh, struct roofline *roofline);

/* What the rules' formulas have besides the book's letters, as they are written: "" where it is 1.
 */
struct rules_factors {
    char times_gathers[16]; /* "32·": forward passes that gather their weights again. */
    char over_gathers[16];  /* "/32" */
    char over_stages[16];   /* "/4": ranks of pp. */
    char reductions[48];    /* ", for 16 reductions a step" */
};

struct rules_factors rules_factors(const struct roofline_rules *rules, const struct mesh *mesh);

#endif
