/*
 * comparison_rows.h: `podsim pipeline --csv FILE`: its rows as a table for other programs, one line
 * a row in the order that they are shown in. Schedules in CSV (--schedule-csv, --csv-out) are
 * another form.
 */
#ifndef TOOLS_PODSIM_COMPARISON_ROWS_H
#define TOOLS_PODSIM_COMPARISON_ROWS_H

#include "tools/podsim/comparison.h"

/* The table, once rows are ranked. Times in seconds, of given times in their unit. */
void comparison_rows_write(const struct comparison *comparison, struct text *text);

#endif
