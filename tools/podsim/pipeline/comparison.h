/*
 * comparison.h: `podsim pipeline`: schedules side by side. What those with given times
 * (schedules.h) and those of a scenario's own pipeline (pipeline_run.h) have in common: which rows
 * there are, how they follow each other, and what every row says of itself.
 */
#ifndef TOOLS_PODSIM_PIPELINE_COMPARISON_H
#define TOOLS_PODSIM_PIPELINE_COMPARISON_H

#include <stdbool.h>

#include "sim/base/strbuf.h"
#include "sim/report/column.h"
#include "sim/schedule/schedule.h"
#include "tools/podsim/common/options.h"
#include "tools/podsim/common/pool.h"

struct arena;
struct json_writer;
struct report_terminal;
struct worker;

enum { COMPARISON_ROWS_MAX = 512, COMPARISON_COUNTS_MAX = 32, COMPARISON_LABEL_BYTES = 4112 };

/* What rows are ranked and sorted by, as --sort names it. Behind each the other word for it: a step
 * of a scenario is the makespan of given times, and memory is what is held. */
#define COMPARISON_KEY_TABLE(X)                                                                    \
    X(PERIOD, "period", "period")                                                                  \
    X(STEP, "step", "makespan")                                                                    \
    X(BUBBLE, "bubble", "bubble")                                                                  \
    X(MEMORY, "memory", "held")

enum comparison_key {
#define X(name, word, other) COMPARISON_##name,
    COMPARISON_KEY_TABLE(X)
#undef X
        COMPARISON_KEY_COUNT,
};

/* One schedule with one number of microbatches. */
struct comparison_row {
    const char *name;                 /* "interleaved:2"; of a file its path. */
    const struct schedule_form *form; /* NULL: from a file. */
    const struct schedule *given;     /* From a file. */
    uint32_t rank_count, chunk_count, microbatch_count;
    struct error refused; /* STATUS_OK: it was simulated, and the fields below are filled. */
    const char *reason;   /* Of a row that was refused: the key that is wrong, and why. */
    double figure[COMPARISON_KEY_COUNT]; /* In one unit for all rows. */
    bool fits;                           /* The memory of a chip, or none is known. */
    bool best;                           /* Best of the rows that it is compared with. */
    bool done;                           /* Simulated, or refused. */
    struct arena *arena;                 /* Holds the schedule and its formula. */

    struct schedule schedule;
    struct schedule_formula formula;
};

struct comparison;

/* How rows come about and are shown; a table of the two ways there are. */
struct comparison_way {
    enum status (*read)(struct comparison *comparison, struct error *reterr);
    /* A row in its own memory, on a thread of the pool. */
    enum status (*play)(struct comparison *comparison, uint32_t row, uint32_t thread,
                        struct error *reterr);
    void (*rank)(struct comparison *comparison, uint32_t row); /* Figures of a row, and `fits`. */
    bool (*are_compared)(const struct comparison_row *row, const struct comparison_row *other);
    void (*write_text)(const struct comparison *comparison, const struct report_terminal *terminal,
                       struct strbuf *text);
    void (*put_head)(const struct comparison *comparison, struct json_writer *json);
    void (*put_row)(const struct comparison *comparison, uint32_t row, struct json_writer *json);
    enum status (*write_svg)(const struct comparison *comparison, struct strbuf *text,
                             struct error *reterr);
    const struct column_line *cells;              /* The cells of --csv. */
    column_find_fn *find;                         /* The figures of a row of struct comparison. */
    void (*close)(struct comparison *comparison); /* Behind read(), whatever that returned; NULL. */
};

struct comparison {
    const struct comparison_way *way;
    void *owner; /* The way's own: struct schedules, struct pipeline_run. */
    const struct options *options;
    struct arena *arena;
    struct worker *worker; /* While it is simulated. */
    struct pool pool;      /* While it is simulated. */
    uint32_t thread_count; /* -j */
    uint32_t rank_count;   /* Ranks of schedules by name. */
    const char *own; /* The scenario's schedule, a row where none are named; NULL: given times.
                      */
    uint32_t microbatches[COMPARISON_COUNTS_MAX];
    uint32_t count; /* Number of `microbatches`. */
    struct comparison_row row[COMPARISON_ROWS_MAX];
    uint32_t row_count;                  /* All that are asked for. */
    uint32_t order[COMPARISON_ROWS_MAX]; /* [place]: the row, behind comparison_rank(). */
    uint32_t done_count;                 /* Rows from the first on that are all done. */
    uint32_t failed_count;  /* Rows that were asked for by name and cannot be simulated. */
    bool traces;            /* A comparison of one row writes a timeline. */
    struct strbuf timeline; /* The timeline. */
};

/* The rows: each schedule that is asked for by name with each number of microbatches, or else with
 * `microbatches`, and those in files. Where none is named, the scenario's own comes first, then all
 * that are known. What is named twice is one row. */
enum status comparison_read_rows(struct comparison *comparison, uint32_t microbatches,
                                 struct error *reterr);

/* --memory, behind the rows: what "auto" may hold, in microbatches; 0: nothing is said. */
enum status comparison_read_memory(const struct comparison *comparison, uint32_t *ret_held_max,
                                   struct error *reterr);

/* Behind the rows: whether a picture that is asked for can be drawn if all rows are simulated.
 * Errors: STATUS_LIMIT if rows have too many passes, STATUS_NO_MEMORY. */
enum status comparison_check_picture(const struct comparison *comparison, struct error *reterr);

/* --trace, behind the rows: a timeline shows one. */
enum status comparison_read_trace(struct comparison *comparison, struct error *reterr);

/* Plays all rows, on as many threads as -j says. One that cannot be does not keep the others from
 * it; of "all" it is passed over, else its error is returned behind the last. Of several rows of
 * which none could be simulated, that is the error: each has its own reason. The work of a worker
 * (worker.h), whose owner is the comparison. */
enum status comparison_play(void *owner, struct worker *worker, struct error *reterr);
/* Behind the last use of the rows. */
void comparison_close(struct comparison *comparison);

/* --sort, behind the rows: whether there is such a key. */
enum status comparison_check_sort(const struct comparison *comparison, struct error *reterr);

/* Behind comparison_play(): the order that rows are shown in, and which are best: with the shortest
 * period of those that fit and, of several, with the least memory. What a search found stands last,
 * and is not best where a schedule with a name has its period. */
void comparison_rank(struct comparison *comparison);

/* What a row is called in a table: "* zb-v" for the best, "  auto (search)". */
struct comparison_label {
    char text[COMPARISON_LABEL_BYTES];
};
struct comparison_label comparison_label(const struct comparison_row *row);
/* What a row is called over a picture: "* zb-v", "auto (search)"; NULL: there is no memory. */
const char *comparison_heading(struct arena *arena, const struct comparison_row *row);
/* The line below a table that says what its signs mean. */
void comparison_write_signs(const struct comparison *comparison, struct strbuf *text);

/* Whether the text goes to standard error, because a result takes standard output. */
bool comparison_prints_to_error(const struct comparison *comparison);

/* Rows that were simulated. */
uint32_t comparison_played(const struct comparison *comparison);

/* "interrupted: 3 of 5 rows", if it was. */
void comparison_write_interrupted(const struct comparison *comparison, struct strbuf *text);
/* A line for each reason that rows were not simulated for, with all rows that it holds for. */
void comparison_write_refused(const struct comparison *comparison, struct strbuf *text);
/* The names of rows that belong together, each once: "dualpipe, dualpipev, 4 microbatches". */
void comparison_write_names(const struct comparison *comparison, const bool *belongs,
                            struct strbuf *text);

#endif
