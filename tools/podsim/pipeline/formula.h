/*
 * formula.h: the published bubble of a schedule, next to the one that came out.
 */
#ifndef TOOLS_PODSIM_PIPELINE_FORMULA_H
#define TOOLS_PODSIM_PIPELINE_FORMULA_H

#include "sim/report/column_table.h"
#include "sim/schedule/schedule_play.h"

/* The bubble that a formula is held against. */
int64_t formula_measured(const struct schedule_formula *formula,
                         const struct schedule_played *played);

/* Which bubble of a row that is, by its key; NULL: there is no formula. */
const char *formula_of(const struct schedule_formula *formula);

/* Columns: the formula as it is published, where it holds, which bubble it is of, and its figure in
 * the unit of the rows; null where there is none, as of a schedule from a file. */
#define FORMULA_COLUMNS(X, row_formula, bubble, ...)                                               \
    X(FORMULA_TEXT, "formula_text", WORDS((row_formula)->text),                                    \
      SHOWN("", "formula", -2, column_words))                                                      \
    X(FORMULA_HOLDS, "formula_holds", WORDS((row_formula)->holds), HIDDEN)                         \
    X(FORMULA_OF, "formula_of", WORDS(formula_of(row_formula)), HIDDEN)                            \
    X(FORMULA, "formula", OR_NULL((row_formula)->measure != SCHEDULE_NO_FORMULA, REAL(bubble)),    \
      __VA_ARGS__)

#endif
