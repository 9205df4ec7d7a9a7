/*
 * schedules.h: `podsim pipeline` with given times: which schedules, what came out, how it is shown.
 */
#ifndef TOOLS_PODSIM_SCHEDULES_H
#define TOOLS_PODSIM_SCHEDULES_H

#include <stdbool.h>

#include "sim/schedule/schedule_play.h"
#include "tools/podsim/options.h"

struct arena;
struct shell;
struct text;

enum {
    SCHEDULES_ROWS_MAX = 512,
    SCHEDULES_COUNTS_MAX = 32,
    SCHEDULES_UNIT = 1000000000, /* Parts of a unit of time that can be written: nine decimals. */
};

/* One schedule with one number of microbatches. A tick is a part of a unit, divided by the chunks
 * of a rank, so that the times of a chunk are whole. */
struct schedules_row {
    const char *name;
    const struct schedule_form *form; /* NULL: from a file. */
    struct schedule_request request;
    struct schedule schedule;
    struct schedule_played played;
    struct schedule_played without_hops;
    double ticks_per_unit;
    struct schedule_formula formula;
    struct error refused; /* STATUS_OK: it was played. */
};

struct schedules {
    const struct options *options;
    struct arena *arena;
    uint32_t stages; /* Ranks. */
    uint32_t microbatches[SCHEDULES_COUNTS_MAX];
    uint32_t count;                            /* Of those. */
    int64_t forward, input, weight, pair, hop; /* Of a rank's whole share, in parts of a unit. */
    uint32_t kept_ppm; /* Of a chunk's activations, between input and weight gradient. */
    uint32_t held_max; /* "auto": microbatches; 0: as 1F1B. */
    struct schedules_row row[SCHEDULES_ROWS_MAX];
    uint32_t row_count;  /* All that are asked for. */
    uint32_t done_count; /* Played or refused, when it was interrupted. */
};

extern const struct option schedules_options[];

enum status schedules_read(struct schedules *schedules, struct error *reterr);

/* Plays the rows that are left; a form that was asked for by name and cannot be is an error, of
 * "all" it is passed over. */
enum status schedules_play(struct schedules *schedules, struct shell *shell, struct error *reterr);

/* In units: a time of a row, what a rank holds at most of its whole share's activations. */
double schedules_units(const struct schedules_row *row, int64_t ticks);
double schedules_peak(const struct schedules *schedules, const struct schedules_row *row,
                      uint32_t rank);
double schedules_peak_most(const struct schedules *schedules, const struct schedules_row *row);
/* What the formula is held against, in units. */
double schedules_measured(const struct schedules_row *row);

void schedules_write_text(const struct schedules *schedules, bool colour, struct text *text);
void schedules_write_json(const struct schedules *schedules, struct text *text);
/* Errors: STATUS_LIMIT if there is too much to draw. */
enum status schedules_write_svg(const struct schedules *schedules, struct text *text,
                                struct error *reterr);

#endif
