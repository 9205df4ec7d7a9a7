/*
 * column_table.h: the words of a table of columns, for the files that have one. A table is a macro
 * TABLE(X) of rows X(name, key, value, screen), in the order of the JSON. `name` is a constant of
 * the table; `value` is one of those below, and `screen` SHOWN(...), IN_WORDS(...), NAMED(...)
 * or HIDDEN:
 *
 *     enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
 *     static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
 *     static void find(..., struct column_value *ret_values) { TABLE(COLUMN_FIND) }
 */
#ifndef SIM_REPORT_COLUMN_TABLE_H
#define SIM_REPORT_COLUMN_TABLE_H

#include "sim/base/units.h"
#include "sim/report/column.h"

#define COLUMN_NAME(name, ...) name,
#define COLUMN_ENTRY(name, word, value, ...) [name] = {.key = (word), __VA_ARGS__},
#define COLUMN_FIND(name, word, value, ...) ret_values[name] = value;

#define COLUMN_VALUE(its_kind, ...) ((struct column_value){.kind = (its_kind), __VA_ARGS__})
#define WORDS(text) COLUMN_VALUE(COLUMN_WORDS, .words = (text))
#define SAID(word, text) COLUMN_VALUE(COLUMN_WORDS, .words = (word), .said = (text))
#define LIST(text) COLUMN_VALUE(COLUMN_LIST, .words = (text))
#define WHOLE(count) COLUMN_VALUE(COLUMN_WHOLE, .whole = (uint64_t)(count))
#define REAL(figure) COLUMN_VALUE(COLUMN_REAL, .real = (double)(figure))
#define FLAG(is) COLUMN_VALUE(COLUMN_FLAG, .flag = (is))
#define SECONDS(duration_ps) REAL(units_seconds(duration_ps))
#define PERCENT(part, whole) REAL((whole) > 0 ? 100 * (double)(part) / (double)(whole) : 0)
#define WHERE(has, value) ((has) ? (value) : (struct column_value){.kind = COLUMN_NONE})
#define OR_NULL(has, value) ((has) ? (value) : (struct column_value){.kind = COLUMN_NULL})

#define SHOWN(first, second, columns, shown)                                                       \
    .heading = {first, second}, .width = (columns), .look = (shown)
#define HIDDEN .look = NULL

/* A figure in a line of words: a column without a place, and its text until the line is written. */
#define IN_WORDS(shown) .look = (shown)
#define NAMED(name, shown) .heading = {"", name}, .look = (shown)
#define CELL(columns, values, name)                                                                \
    column_cell(&(columns)[name], (values)[name], &(struct table_figure){{0}})

#endif
