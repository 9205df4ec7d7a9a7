/*
 * schedules.h: `podsim pipeline` with given times: which schedules, what came out, how it is shown.
 */
#ifndef TOOLS_PODSIM_PIPELINE_SCHEDULES_H
#define TOOLS_PODSIM_PIPELINE_SCHEDULES_H

#include "sim/schedule/schedule_play.h"
#include "tools/podsim/pipeline/comparison.h"

enum { SCHEDULES_UNIT = 1000000000 }; /* Parts of a unit of time that can be written: 9 decimals. */

/* Besides what all rows have. A tick is a part of a unit, divided by the chunks of a rank, so that
 * the times of a chunk are whole. */
struct schedules_row {
    struct comparison_row *of;
    struct schedule_played played;
    struct schedule_played without_hops;
    struct period period; /* From step to step, in ticks. */
    double ticks_per_unit;
};

struct schedules {
    struct comparison *of;
    /* Times of a rank's whole share, in parts of a unit. */
    int64_t forward, input, weight, pair, hop;
    uint32_t kept_ppm; /* The part of a chunk's activations that is kept between input and weight
                          gradient. */
    uint32_t held_max; /* "auto": microbatches; 0: as 1F1B. */
    struct schedules_row row[COMPARISON_ROWS_MAX];
};

extern const struct option schedules_options[];

extern const struct comparison_way schedules_way;

/* What the way does, file by file. */
enum status schedules_read(struct comparison *comparison, struct error *reterr);
void schedules_rank(struct comparison *comparison, uint32_t row);
/* Whether rows have equally many ranks and microbatches: only then their times are of the same
 * work. */
bool schedules_are_together(const struct comparison_row *row, const struct comparison_row *other);
enum status schedules_play(struct comparison *comparison, uint32_t row, uint32_t thread,
                           struct error *reterr);
void schedules_write_text(const struct comparison *comparison,
                          const struct report_terminal *terminal, struct strbuf *text);
void schedules_put_head(const struct comparison *comparison, struct json_writer *json);
void schedules_put_row(const struct comparison *comparison, uint32_t row, struct json_writer *json);
enum status schedules_write_svg(const struct comparison *comparison, struct strbuf *text,
                                struct error *reterr);

/* Figures of a row (schedules_columns.c). */
extern const struct column_line schedules_cells, schedules_screen;
column_find_fn schedules_find;
/* Four digits behind the point at most, none that are 0. */
struct table_figure schedules_figure(double value);

/* In units: a time of a row, what a rank holds at most of its whole share's activations. */
double schedules_units(const struct schedules_row *row, int64_t ticks);
double schedules_peak(const struct schedules *schedules, const struct schedules_row *row,
                      uint32_t rank);
double schedules_peak_most(const struct schedules *schedules, const struct schedules_row *row);
/* What the formula is held against, in units. */
double schedules_measured(const struct schedules_row *row);

#endif
