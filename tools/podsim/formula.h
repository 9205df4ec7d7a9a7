/*
 * formula.h: the published bubble of a schedule, next to the one that came out.
 */
#ifndef TOOLS_PODSIM_FORMULA_H
#define TOOLS_PODSIM_FORMULA_H

#include "sim/schedule/schedule_play.h"

struct json_writer;

/* The bubble that a formula is held against. */
int64_t formula_measured(const struct schedule_formula *formula,
                         const struct schedule_played *played);

/* Members of a row: the formula as it is published, where it holds, which bubble it is of, and its
 * figure in the unit of the rows; null where there is none, as of a schedule from a file. */
void formula_put(struct json_writer *json, const struct schedule_formula *formula, double bubble);

#endif
