/*
 * rows.h: the tables of a run: a column is one row here, for the screen and for the JSON.
 */
#ifndef SIM_REPORT_ROWS_H
#define SIM_REPORT_ROWS_H

#include "sim/base/status.h"
#include "sim/report/column.h"

struct analysis;
struct arena;
struct machine;
struct notes;

extern const struct column_table rows_ranks; /* Rows of struct trace. */

void rows_add_phases(const struct machine *machine, const struct analysis *analysis,
                     struct strbuf *text);
void rows_put_phases(const struct machine *machine, const struct analysis *analysis,
                     struct json_writer *json);

/* The first `shown_max` collectives, and the sum of the others; nothing where there is none. */
enum status rows_add_collectives(struct arena *arena, const struct analysis *analysis,
                                 uint32_t shown_max, struct strbuf *text, struct error *reterr);
/* Collectives and computes. */
enum status rows_put_classes(struct arena *arena, const struct analysis *analysis,
                             struct json_writer *json, struct error *reterr);

/* What lies between the lower bound and the step: the first `shown_max`, and the rest. */
void rows_add_parts(const struct notes *notes, uint32_t shown_max, struct strbuf *text);
void rows_put_parts(const struct notes *notes, struct json_writer *json);

#endif
