/*
 * measure_row.h: one line of a table of collectives: what was asked, how long it took, what it
 * means; and one run, which several lines share where collectives go at once.
 */
#ifndef SIM_MEASURE_MEASURE_ROW_H
#define SIM_MEASURE_MEASURE_ROW_H

#include <stdint.h>

#include "sim/choose/choose.h"
#include "sim/collective/ragged.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"
#include "sim/measure/measure_op.h"

/* A collective of every size. Texts outlive the rows. */
struct measure_row_args {
    const struct machine *machine;
    enum measure_op operation;
    struct group group;
    char axes[MEASURE_AXES_BYTES]; /* The group as text. */
    enum format format;
    uint32_t root;
    uint32_t shift; /* sendrecv: how many ranks further a message goes, in digits of
                       the group, each round its own axis; 0: 1. */
    struct plan_ragged
        ragged;             /* Draw of an AllToAll; a size is then one rank's tokens, each once. */
    bool protocols;         /* NCCL's compete, ... */
    enum protocol protocol; /* ... or only this one; PROTOCOL_NONE: all. */
    bool registered;        /* Arrays are registered with NCCL. */
    const struct tuner *tuner;         /* For "auto"; or NULL. */
    const struct msccl_script *script; /* Runs instead of an algorithm; or NULL. */
    struct contention_cache *known;    /* What estimates keep from size to size; or NULL. */
};

/* What is simulated for one size. */
struct measure_row_choice {
    struct choose_candidate candidate;
    struct plan_request request;
    const struct choose_ranking *ranking; /* The ranking of "auto"; else NULL. */
};

enum { ROW_RUNNERS_MAX = 4 };

/* One that could have run instead. */
struct measure_row_runner {
    char algorithm[PLAN_ALGORITHM_SIZE];
    enum protocol protocol;
    double estimate_s;
    int64_t time_ps; /* 0: not simulated. */
};

struct measure_row {
    const struct measure_row_args *args;
    uint64_t size_bytes;  /* The size of nccl-tests. */
    uint64_t array_bytes; /* V */
    uint64_t count;
    char algorithm[PLAN_ALGORITHM_SIZE]; /* The algorithm that was simulated. */
    enum protocol protocol;
    double estimate_s; /* By closed forms (sim/choose/estimate.h); 0: a script. */
    struct measure_row_runner runner[ROW_RUNNERS_MAX]; /* Behind the one that "auto" took. */
    uint32_t runner_count;
    uint32_t left_out;       /* Ways that "auto" passed over, as they would take minutes to play. */
    uint32_t tuner_line;     /* Whose rule decided; 0: none. */
    struct ragged_load load; /* Loads of a ragged exchange. */
    uint64_t farthest_bytes; /* Bytes of a ragged exchange that cross the outermost axis, if a level
                                serves it. */
    const char *farthest_axis; /* NULL: none, or there are no others. */
    bool proved;               /* plan_check() holds; else there are too many ranks for it. */
    int64_t time_ps;
    int64_t alone_ps; /* Time on an idle machine; time_ps if the machine was idle. */
    double algbw_bytes_per_s;
    double busbw_bytes_per_s; /* Ragged: of what a rank sends in the mean. */
    double roofline_s;        /* The book's bound (collective_bound()). */
    double latency_s;         /* Latency of the hops alone. */
    /* No algorithm takes less. The roofline of a ragged exchange is the roofline of a balanced
     * exchange of as many bytes; this bound of a ragged exchange knows hops only. */
    double strict_s;
    const char *bound_by;
    const char *bound_where; /* "NVLink", "x", ""; the machine's. */
};

struct measure_row_run {
    uint64_t size_bytes; /* The size of the first row. */
    uint32_t row_first;
    uint32_t row_count;
    int64_t time_ps; /* Of the last to end. */
    uint64_t events, transfers, digest;
    double fairness; /* measure_row_fairness() of its rows. */
    struct trace_link link[TRACE_PORTS_MAX];
};

/* The request of a plan for a size, without algorithm and protocol; refused: an array beyond
 * plan_size_bytes_max. */
enum status measure_row_request(const struct measure_row_args *args, uint64_t size_bytes,
                                const char *where, struct plan_request *ret_request,
                                struct error *reterr);

/* Of a sendrecv: who sends. On a line the last ranks have nobody so far behind them. */
struct measure_row_senders {
    uint64_t count;                     /* Ranks of the group that send. */
    const struct group_dimension *line; /* NULL: all send. */
    uint32_t silent;                    /* The last ranks of each line. */
};
struct measure_row_senders measure_row_senders(const struct measure_row_args *args);

/* What is simulated for a size: `algorithm` NULL or `auto` is chosen by cost, unless the tuner
 * knows better. Refused: an array beyond plan_size_bytes_max, what cannot run on the group. */
enum status measure_row_choose(struct arena *arena, const struct measure_row_args *args,
                               uint64_t size_bytes, const struct algorithm *algorithm,
                               const char *where, const struct measure_row_choice **ret_choice,
                               struct error *reterr);

/* Another candidate of the same ranking. */
enum status measure_row_choose_other(struct arena *arena, const struct measure_row_args *args,
                                     uint64_t size_bytes, const struct choose_candidate *candidate,
                                     const char *where,
                                     const struct measure_row_choice **ret_choice,
                                     struct error *reterr);

/* The row of a collective that took `time_ps`. */
void measure_row_fill(const struct measure_row_args *args, uint64_t size_bytes,
                      const struct measure_row_choice *choice, const struct plan *plan,
                      int64_t time_ps, int64_t alone_ps, struct measure_row *ret_row);

/* A copy to or from the host: what is simulated for its row, and the row. */
struct program_copy measure_row_copy(const struct measure_row_args *args, uint64_t size_bytes);
void measure_row_fill_copy(const struct measure_row_args *args, uint64_t size_bytes,
                           int64_t time_ps, int64_t alone_ps, struct measure_row *ret_row);

/* Bytes that ranks send each other, over those of N slots a token, N the ranks: the dense exchange
 * of which a ragged one fills a part. Drawn, and by the book, chapter 12: every token to k
 * different ranks, min(k/N,1)·(N-1)/N, and to k ranks that may coincide, (1-((N-1)/N)^k)·(N-1)/N.
 */
struct measure_row_factors {
    double drawn;
    double distinct;
    double independent;
};
struct measure_row_factors measure_row_factors(const struct measure_row *row);

/* Proves on sets that the plan moves what its kind promises, if it has few enough ranks; a plan
 * that does not is refused. */
enum status measure_row_prove(const struct plan *plan, struct measure_row *row,
                              struct error *reterr);

/* Whether it took less than the roofline, which is the book's form and not the strict bound. */
bool measure_row_beats_roofline(const struct measure_row *row);

/* Time over time alone: 1 where nobody else was in the way. */
double measure_row_slowdown(const struct measure_row *row);

/* Jain's index of the rows' slowdowns: 1 if all suffer alike, 1/count if one alone does. */
double measure_row_fairness(const struct measure_row *rows, uint32_t count);

/* Whether a run's port carried anything, and what waited there. Source of the depth: Little's law,
 * the mean number that wait is the sum of the waits over the time. */
bool measure_row_port_was_used(const struct measure_row_run *run, uint32_t port);
struct measure_row_port {
    double busy_fraction; /* Of the busiest link of the port. */
    double mean_depth;    /* Messages that wait for it, in the mean over the time. */
    double mean_wait_s;
    double longest_wait_s; /* Of any link of the port. */
};
struct measure_row_port measure_row_port(const struct measure_row_run *run, uint32_t port);

/* The port with the busiest link; TRACE_PORTS_MAX if none carried anything. */
uint32_t measure_row_busiest_port(const struct measure_row_run *run);

#endif
