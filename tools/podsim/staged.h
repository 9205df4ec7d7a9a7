/*
 * staged.h: `podsim pipeline FILE`: schedules of a scenario's own pipeline, each replayed with the
 * real ops on the real machine, side by side.
 */
#ifndef TOOLS_PODSIM_STAGED_H
#define TOOLS_PODSIM_STAGED_H

#include "sim/schedule/schedule_play.h"
#include "sim/trace/trace.h"
#include "tools/podsim/chain.h"
#include "tools/podsim/options.h"

struct arena;
struct shell;
struct text;

enum { STAGED_ROWS_MAX = 256, STAGED_COUNTS_MAX = 32 };

/* What a rank holds over time: the memory of one chip. */
struct staged_curve {
    int64_t *at_ps;
    uint64_t *bytes;
    uint32_t count;
};

/* One schedule with one number of microbatches. */
struct staged_row {
    const char *name;
    const struct schedule_form *form; /* NULL: from a file. */
    const struct schedule *given;     /* From a file. */
    uint32_t chunk_count;
    uint32_t microbatch_count;
    struct error refused; /* STATUS_OK: it was played. */

    struct schedule schedule;
    int64_t step_ps;
    int64_t span_ps; /* From the start to the end of the last pass: the step less its update. */
    struct trace_role *role;
    uint64_t *parameter_count;  /* [rank]: stored on one chip of it. */
    uint64_t *gathered_bytes;   /* [rank]: weights that one chip of it gathers in a step. */
    int64_t weights_exposed_ps; /* Of the chip that ends last: waiting for its weights' gathers and
                                   its gradients' reductions over the same ranks. */
    double mfu;                 /* With attention. */
    double tokens_per_s;
    bool fits;
    uint64_t chips_replayed;

    /* What a pass of a chunk took, a mean over ranks: compute and exposed collectives. */
    struct schedule_times times;
    struct schedule_formula formula; /* With these, in ps. */
    struct schedule_played equal;    /* The same order of passes, with these and nothing else. */
    struct schedule_played played;   /* What really began and ended when; empty unless drawn. */
    struct staged_curve curve;       /* Of `fullest`; empty unless drawn. */
    uint32_t fullest;                /* The rank whose chips hold most. */
};

struct staged {
    const struct options *options;
    struct arena *arena;
    struct chain_source source;
    const char *title;
    uint32_t rank_count, default_microbatches;
    uint64_t chip_count;
    uint64_t hbm_bytes;
    uint32_t microbatches[STAGED_COUNTS_MAX];
    uint32_t count; /* Of those. */
    struct staged_row row[STAGED_ROWS_MAX];
    uint32_t row_count, done_count;
    bool draws;
    struct shell *shell;
};

/* Reads the scenario and the lists. */
enum status staged_read(struct staged *staged, struct error *reterr);
/* Plays the rows that are left; one that was asked for by name and cannot be is an error, of "all"
 * it is passed over. */
enum status staged_play(struct staged *staged, struct shell *shell, struct error *reterr);

/* Both definitions of the bubble, in ps: the span less the work of the busiest rank; and the worst
 * rank's time from its first pass to the end of its last, less its work. */
int64_t staged_bubble_ps(const struct staged_row *row);
int64_t staged_bubble_per_rank_ps(const struct staged_row *row);
/* Compute and exposed collectives of a rank, without its update. */
int64_t staged_work_ps(const struct trace_role *role);
/* The most of any rank. */
uint64_t staged_peak_bytes(const struct staged_row *row);

/* Weights that are gathered, and what they cost (staged_weights.c). */
enum status staged_weights_take(struct staged *staged, struct staged_row *row,
                                const struct program *program, const struct trace *trace,
                                struct error *reterr);
/* A table of it on a terminal; nothing if no weights are gathered. */
void staged_weights_write(const struct staged *staged, struct text *text);

void staged_write_text(const struct staged *staged, bool colour, struct text *text);
void staged_write_json(const struct staged *staged, struct text *text);
/* Errors: STATUS_LIMIT if there is too much to draw. */
enum status staged_write_svg(const struct staged *staged, struct text *text, struct error *reterr);

#endif
