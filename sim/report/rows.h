/*
 * rows.h: the tables of a run and of a roofline: a column is one row here, for the screen and for
 * the JSON.
 */
#ifndef SIM_REPORT_ROWS_H
#define SIM_REPORT_ROWS_H

#include "sim/report/column.h"

extern const struct column_table rows_ranks;       /* Of struct trace. */
extern const struct column_table rows_phases;      /* Of struct analysis. */
extern const struct column_table rows_collectives; /* Of struct analysis, by class. */
extern const struct column_table rows_groups;      /* Of struct roofline. */
extern const struct column_table
    rows_overlaps; /* Its collectives over tp and the matmuls that hide them. */

/* What several collectives together have of theirs. */
void rows_collectives_add_sum(double time_s, double exposed_s, struct strbuf *text);

#endif
