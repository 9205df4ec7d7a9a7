/*
 * pipeline_run.h: `podsim pipeline FILE`: schedules of a scenario's own pipeline, each replayed
 * with the real ops on the real machine, side by side.
 */
#ifndef TOOLS_PODSIM_PIPELINE_PIPELINE_RUN_H
#define TOOLS_PODSIM_PIPELINE_PIPELINE_RUN_H

#include "sim/schedule/schedule_play.h"
#include "sim/trace/trace.h"
#include "tools/podsim/common/session.h"
#include "tools/podsim/pipeline/comparison.h"

struct arena;
struct worker;
struct strbuf;

/* As struct schedule_played has them: the span less the work of the rank with least, and with most;
 * the worst rank's time from its first pass to the end of its last, less its work from there on. */
struct pipeline_run_bubbles {
    int64_t makespan_ps, busiest_ps, per_rank_ps;
};

/* Besides what all rows have. */
struct pipeline_run_row {
    struct comparison_row *of;
    int64_t step_ps;
    struct period period; /* From step to step, in picoseconds; steps 0: only one was asked for. */
    int64_t span_ps; /* From the start to the end of the last pass: the step less its update. */
    struct trace_role *role;
    struct pipeline_run_bubbles bubble;
    double *activations;       /* [rank]: the most held, in its whole shares of a microbatch. */
    uint64_t *parameter_count; /* [rank]: parameters stored on one of its chips. */
    uint64_t *gathered_bytes;  /* [rank]: weights that one of its chips gathers in a step. */
    /* Time of the chip that ends last in which it waits for its weights' gathers and its gradients'
     * reductions over the same ranks. */
    int64_t weights_exposed_ps;
    double mfu;           /* MFU from step to step, of 6 FLOP a parameter and token. */
    double mfu_attention; /* MFU from step to step, with attention. */
    double tokens_per_s;  /* Tokens a second, from step to step. */
    bool fits;
    uint64_t chips_replayed;

    /* What a pass of a chunk took, a mean over ranks: compute and exposed collectives. */
    struct schedule_times times;
    struct schedule_played equal;  /* The order of passes with these durations and nothing else. */
    struct schedule_played played; /* What really began and ended when; empty unless drawn. */
    struct trace_curve curve;      /* The memory of a chip of `fullest`; empty unless drawn. */
    uint32_t fullest;              /* The rank whose chips hold most. */
};

struct pipeline_run {
    struct comparison *of;
    struct session_source source;
    const char *title;
    uint32_t default_microbatches;
    uint64_t chip_count;
    uint64_t hbm_bytes;
    struct pipeline_run_row row[COMPARISON_ROWS_MAX];
    /* Of each thread what it drew last: rows of equally many microbatches route alike. */
    struct routing_drawn drawn[PARALLEL_THREADS_MAX];
    bool draws;        /* Begins and ends of passes are kept. */
    bool draws_memory; /* Memory between passes is kept. */
};

extern const struct comparison_way pipeline_run_way;

/* What the way does, file by file. */
enum status pipeline_run_read(struct comparison *comparison, struct error *reterr);
void pipeline_run_close(struct comparison *comparison);
void pipeline_run_rank(struct comparison *comparison, uint32_t row);
enum status pipeline_run_play(struct comparison *comparison, uint32_t row, uint32_t thread,
                              struct error *reterr);
void pipeline_run_write_text(const struct comparison *comparison,
                             const struct report_terminal *terminal, struct strbuf *text);
void pipeline_run_put_head(const struct comparison *comparison, struct json_writer *json);
void pipeline_run_put_row(const struct comparison *comparison, uint32_t row,
                          struct json_writer *json);
enum status pipeline_run_write_svg(const struct comparison *comparison, struct strbuf *text,
                                   struct error *reterr);

/* From step to step; the step by itself if no further ones were asked for. */
int64_t pipeline_run_period_ps(const struct pipeline_run_row *row);
/* Compute and exposed collectives of a rank, without its update. */
int64_t pipeline_run_work_ps(const struct trace_role *role);
/* The most of any rank. */
uint64_t pipeline_run_peak_bytes(const struct pipeline_run_row *row);

/* What ranks hold of activations (pipeline_run_activations.c): behind the schedule and the roles.
 */
enum status pipeline_run_activations_take(struct arena *arena, struct pipeline_run_row *row,
                                          const struct program *program, struct error *reterr);

/* Weights that are gathered, and what they cost (pipeline_run_weights.c). */
enum status pipeline_run_weights_take(struct arena *arena, struct pipeline_run_row *row,
                                      const struct program *program, const struct trace *trace,
                                      struct error *reterr);
/* Whether weights are gathered. */
bool pipeline_run_row_gathers(const struct pipeline_run_row *row);

/* Figures of a row and of its ranks (pipeline_run_columns.c): find_rank() is of a struct
 * pipeline_run_row. */
extern const struct column_line pipeline_run_cells, pipeline_run_screen,
    pipeline_run_formulas_screen, pipeline_run_weights_screen;
extern const struct column_line pipeline_run_ranks_screen;
column_find_fn pipeline_run_find, pipeline_run_find_rank;

#endif
