/*
 * table.h: what the screens share: figures as people read them, bars, colours, wrapped sentences.
 */
#ifndef SIM_REPORT_TABLE_H
#define SIM_REPORT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/report/report.h"

struct strbuf;

enum {
    TABLE_COLUMNS = 96,
    TABLE_FIGURE_BYTES = 48,
    TABLE_LABEL_COLUMNS = 24,
    TABLE_LINE_COLUMNS = 13,
    TABLE_BAR_COLUMNS = 50
};

struct table_figure {
    char text[TABLE_FIGURE_BYTES];
};

struct table_figure table_seconds(double seconds);
struct table_figure table_duration(int64_t duration_ps); /* A duration in seconds. */
struct table_figure table_instant(double seconds); /* "2015.921 ms": to compare two instants. */
struct table_figure table_bytes(double bytes);
struct table_figure table_rate(double bytes_per_s);
struct table_figure table_flop_rate(double flop_per_s);
struct table_figure table_percent(double part, double whole); /* "12.3%" */
struct table_figure table_count(uint64_t count);              /* "4,194,304" */

/* Columns that a string takes. */
uint32_t table_columns(const char *string);

/* A name in `columns` columns at most; "…" is the last of a name that is longer. */
void table_name(struct strbuf *text, const char *name, uint32_t columns);

/* Right aligned so that the figure ends at `column`. */
void table_right(struct strbuf *text, uint32_t column, const char *figure);

/* The name of a figure that stands in a line of its own; the figure follows. */
void table_label(struct strbuf *text, const char *name);

/* The name of a line of a run's screen, at its begin; figures and words follow. */
void table_line(struct strbuf *text, const char *name);

/* Two blanks and up to `width` cells, fewer where the terminal ends, for the share of `part` in
 * `whole`. */
void table_bar(struct strbuf *text, double part, double whole, uint32_t width);

/* How many columns a sentence has: TABLE_COLUMNS, or fewer where the terminal ends. */
uint32_t table_wrap_columns(const struct strbuf *text);

/* A sentence, wrapped at TABLE_COLUMNS or where the terminal ends, further lines indented to
 * `indent`; ends the line. */
void table_wrap(struct strbuf *text, uint32_t indent, const char *sentence);

/* Wraps and frees a sentence that was put together. */
void table_wrap_close(struct strbuf *text, uint32_t indent, struct strbuf *sentence);

enum table_colour { TABLE_BOLD, TABLE_DIM, TABLE_GREEN, TABLE_YELLOW, TABLE_RED, TABLE_PLAIN };

/* Nothing unless `colour`. */
void table_colour(struct strbuf *text, bool colour, enum table_colour which);

/* "4x4"; "tp 8 over x y:2, dp 2 over y:2" */
void table_shape(const struct machine *machine, struct strbuf *text);
void table_mesh(const struct mesh *mesh, const struct machine *machine, struct strbuf *text);

/* Title, machine, mesh and workload: the first lines of a screen. */
void table_heading(const struct report_input *input, bool colour, struct strbuf *text);

#endif
