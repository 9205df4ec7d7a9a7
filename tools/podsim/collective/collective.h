/*
 * collective.h: what `podsim collective` was asked, and what it found: shared by the reader of its
 * options and the writers of its table, its JSON and its CSV.
 */
#ifndef TOOLS_PODSIM_COLLECTIVE_COLLECTIVE_H
#define TOOLS_PODSIM_COLLECTIVE_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/strbuf.h"
#include "sim/measure/measure_row.h"
#include "sim/measure/sizes.h"
#include "tools/podsim/common/collective_args.h"
#include "tools/podsim/common/pool.h"
#include "tools/podsim/common/trace_chips.h"

struct arena;
struct column_line;
struct json_writer;
struct worker;

/* A collective that goes at the same time as others. */
struct collective_member {
    struct measure_row_args args;
    uint64_t size_bytes; /* 0: that of the sweep. */
};

struct collective_study {
    struct arena *arena; /* The memory of everything but single runs. */
    const struct options *options;
    struct collective_args
        asked; /* An algorithm at least; of the first member, the others: auto. */
    struct collective_member member[MEASURE_REQUESTS_MAX]; /* The first is what is swept. */
    uint32_t member_count;
    struct sizes sizes;
    bool plays_runners;    /* What "auto" did not take is simulated too. */
    bool checks;           /* Each plan is proved on sets, where it has few enough ranks. */
    uint32_t thread_count; /* -j */
    struct worker *worker; /* While it is simulated. */
    struct pool pool;      /* While it is simulated. */

    struct measure_row *rows; /* For each size, each algorithm, one of each member. */
    uint32_t row_count;
    struct measure_row_run *runs; /* For each size, each algorithm. */
    uint32_t run_count;
    uint32_t run_count_max;
    uint32_t merged_count; /* Runs left out, as another name means the same plan. */
    struct fold fold;      /* The fold of the last run. */

    struct trace_chips shown; /* None: there is no timeline. */
    struct strbuf timeline;   /* The timeline of the one run. */
};

extern const struct option collective_options[];

/* Reads the options into a study without rows, its memory taken. */
enum status collective_read(const struct options *options, struct collective_study *study,
                            struct error *reterr);

/* An option's whole number, at most `most`; left alone if it is not given. */
enum status collective_read_count(const struct options *options, const char *name, uint64_t most,
                                  uint64_t *ret_count, struct error *reterr);

/* --experts and what belongs to it, into study.asked.row.ragged; its sizes are known. */
enum status collective_read_ragged(const struct options *options, struct collective_study *study,
                                   struct error *reterr);

/* --trace and --trace-chips, once it is known how many runs there are. */
enum status collective_read_trace(const struct options *options, struct collective_study *study,
                                  struct error *reterr);
/* Writes the timeline of a run, if there is to be one. The arena is the run's. */
enum status collective_write_trace(struct arena *arena, struct collective_study *study,
                                   const struct measured *measured, struct error *reterr);

/* What was drawn for a row; nothing for one that is not ragged. */
void collective_write_ragged(const struct measure_row *row, struct strbuf *text);
void collective_put_ragged(const struct measure_row *row, struct json_writer *json);

/* The work, for worker_run(): all runs, or the runs up to when the user stopped it. */
enum status collective_play(void *study, struct worker *worker, struct error *reterr);

/* The columns of a row (collective_columns.c): its headings and cells on the screen, where counts
 * are as wide; its members in JSON. */
int collective_count_width(const struct collective_study *study);
void collective_write_columns(const struct collective_study *study, struct strbuf *text);
void collective_write_cells(const struct collective_study *study, const struct measure_row *row,
                            struct strbuf *text);
void collective_put_row(const struct collective_study *study, const struct measure_row *row,
                        struct json_writer *json);

/* What chose the row: "ring/simple", and what "auto" did not take instead. */
void collective_write_algorithm(const struct measure_row *row, struct strbuf *text);
void collective_write_runners(const struct measure_row *row, struct strbuf *text);

/* The time of hosts before the first message of a collective between slices, which steps of
 * training and inference pay, too; 0: none. */
int64_t collective_hosts_ps(const struct measure_row_args *args);

/* What its messages go over: the axes of its groups, or the link to the host. */
const char *collective_ways(const struct measure_row_args *args);
void collective_write_head(const struct collective_study *study, struct strbuf *text);
void collective_put_head(const struct collective_study *study, struct json_writer *json);

/* A run of several collectives at once, in a line; any run, as an object. */
void collective_write_run(const struct collective_study *study, const struct measure_row_run *run,
                          struct strbuf *text);
void collective_put_run(const struct collective_study *study, const struct measure_row_run *run,
                        struct json_writer *json);

void collective_write_table(const struct collective_study *study, struct strbuf *text);
void collective_write_json(const struct collective_study *study, struct strbuf *text);
/* The columns of CSV. */
extern const struct column_line collective_cells;
void collective_write_csv(const struct collective_study *study, struct strbuf *text);

#endif
