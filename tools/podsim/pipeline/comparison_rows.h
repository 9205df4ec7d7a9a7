/*
 * comparison_rows.h: the rows of `podsim pipeline`, once they are ranked: as JSON, as CSV and as
 * lines of a table, each in the order that rows are shown in. Schedules in CSV (--schedule-csv,
 * --csv-out) are another form.
 */
#ifndef TOOLS_PODSIM_PIPELINE_COMPARISON_ROWS_H
#define TOOLS_PODSIM_PIPELINE_COMPARISON_ROWS_H

#include "tools/podsim/pipeline/comparison.h"

/* Times in seconds, of given times in their unit. */
void comparison_write_json(const struct comparison *comparison, struct strbuf *text);
/* The first columns of a line of CSV. */
extern const struct column_line comparison_cells;
void comparison_write_csv(const struct comparison *comparison, struct strbuf *text);

/* A table: a row's name, a count, and the figures of a line. */
enum comparison_count { COMPARISON_MICROBATCHES, COMPARISON_CHUNKS };

struct comparison_table {
    const struct comparison *of;
    enum comparison_count count;
    const struct column_line *line;
    uint32_t columns; /* Name and count: as wide as the widest of them needs. */
};

struct comparison_table comparison_table(const struct comparison *comparison,
                                         enum comparison_count count,
                                         const struct column_line *line);
/* A line of the headings, with `label` over the names. */
void comparison_add_headings(const struct comparison_table *table, uint32_t of, const char *label,
                             struct strbuf *text);
void comparison_add_row(const struct comparison_table *table, uint32_t row, bool colour,
                        struct strbuf *text);

#endif
