/*
 * staged.h: `podsim pipeline FILE`: schedules of a scenario's own pipeline, each replayed with the
 * real ops on the real machine, side by side.
 */
#ifndef TOOLS_PODSIM_PIPELINE_STAGED_H
#define TOOLS_PODSIM_PIPELINE_STAGED_H

#include "sim/schedule/schedule_play.h"
#include "sim/trace/trace.h"
#include "tools/podsim/common/chain.h"
#include "tools/podsim/pipeline/comparison.h"

struct arena;
struct shell;
struct text;

/* As struct schedule_played has them: the span less the work of the rank with least, and with most;
 * the worst rank's time from its first pass to the end of its last, less its work from there on. */
struct staged_bubbles {
    int64_t makespan_ps, busiest_ps, per_rank_ps;
};

/* Besides what all rows have. */
struct staged_row {
    struct comparison_row *of;
    int64_t step_ps;
    struct period period; /* From step to step, in picoseconds; steps 0: only one was asked for. */
    int64_t span_ps; /* From the start to the end of the last pass: the step less its update. */
    struct trace_role *role;
    struct staged_bubbles bubble;
    double *activations;        /* [rank]: the most held, in its whole shares of a microbatch. */
    uint64_t *parameter_count;  /* [rank]: parameters stored on one of its chips. */
    uint64_t *gathered_bytes;   /* [rank]: weights that one of its chips gathers in a step. */
    int64_t weights_exposed_ps; /* Of the chip that ends last: waiting for its weights' gathers and
                                   its gradients' reductions over the same ranks. */
    double mfu;                 /* MFU from step to step, of 6 FLOP a parameter and token. */
    double mfu_attention;       /* MFU from step to step, with attention. */
    double tokens_per_s;        /* Tokens a second, from step to step. */
    bool fits;
    uint64_t chips_replayed;

    /* What a pass of a chunk took, a mean over ranks: compute and exposed collectives. */
    struct schedule_times times;
    struct schedule_played equal;  /* The order of passes with these durations and nothing else. */
    struct schedule_played played; /* What really began and ended when; empty unless drawn. */
    struct trace_curve curve;      /* Of a chip of `fullest`; empty unless drawn. */
    uint32_t fullest;              /* The rank whose chips hold most. */
};

struct staged {
    struct comparison *of;
    struct chain_source source;
    const char *title;
    uint32_t default_microbatches;
    uint64_t chip_count;
    uint64_t hbm_bytes;
    struct staged_row row[COMPARISON_ROWS_MAX];
    struct routing_drawn drawn; /* Rows of equally many microbatches route alike. */
    bool draws;                 /* Begins and ends of passes are kept. */
    bool draws_memory;          /* Memory between passes is kept. */
};

extern const struct comparison_way staged_way;

/* What the way does, file by file. */
enum status staged_read(struct comparison *comparison, struct error *reterr);
void staged_close(struct comparison *comparison);
void staged_rank(struct comparison *comparison, uint32_t row);
enum status staged_play(struct comparison *comparison, uint32_t row, struct error *reterr);
void staged_write_text(const struct comparison *comparison, const struct report_terminal *terminal,
                       struct text *text);
void staged_put_head(const struct comparison *comparison, struct json_writer *json);
void staged_put_row(const struct comparison *comparison, uint32_t row, struct json_writer *json);
enum status staged_write_svg(const struct comparison *comparison, struct text *text,
                             struct error *reterr);

/* From step to step; the step by itself if no further ones were asked for. */
int64_t staged_period_ps(const struct staged_row *row);
/* Compute and exposed collectives of a rank, without its update. */
int64_t staged_work_ps(const struct trace_role *role);
/* The most of any rank. */
uint64_t staged_peak_bytes(const struct staged_row *row);

/* What ranks hold of activations (staged_activations.c): behind the schedule and the roles. */
enum status staged_activations_take(struct arena *arena, struct staged_row *row,
                                    const struct program *program, struct error *reterr);

/* Weights that are gathered, and what they cost (staged_weights.c). */
enum status staged_weights_take(struct arena *arena, struct staged_row *row,
                                const struct program *program, const struct trace *trace,
                                struct error *reterr);
/* Whether weights are gathered. */
bool staged_row_gathers(const struct staged_row *row);

/* Figures of a row and of its ranks (staged_columns.c): find_rank() is of a struct staged_row. */
extern const struct column_line staged_cells, staged_screen, staged_weights_screen;
extern const struct column_line staged_ranks_screen;
column_find_fn staged_find, staged_find_rank;

/* What ranks have of a figure, in seconds. */
struct staged_spread {
    double least, mean, most;
};
struct staged_spread staged_work(const struct staged_row *row);
struct staged_spread staged_waiting(const struct staged_row *row);

#endif
