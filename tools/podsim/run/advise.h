/*
 * advise.h: a scenario's neighbours, simulated: other splits of the mesh between tp and the axis
 * that shards weights or batch, remat, ZeRO, offload, collective matmul, prefetch; of a step of
 * inference other meshes, where the cache lies, activations, weights. Which is best is a result of
 * runs, never of formulas.
 *
 * Neighbours are folded runs in a fixed order, a fixed number of them and each of a bounded number
 * of events, so the advice is the same on every machine. First the scenario's own mesh, then every
 * split of tp, with each usual remat; policies between, and half the layers, where keeping all does
 * not fit; then what else may change, on the best of these that fits.
 */
#ifndef TOOLS_PODSIM_RUN_ADVISE_H
#define TOOLS_PODSIM_RUN_ADVISE_H

#include <stdbool.h>

#include "tools/podsim/common/session.h"

struct json_writer;
struct worker;
struct strbuf;

enum {
    /* Of inference: the scenario's own mesh, three splits each of tp with dp, pp, cp and tp_d,
     * three of ep with tp, six unions, nine changes of the best. Of training: the own mesh and six
     * splits with three ways of remat; then either three more ways with each of these, or four
     * sizes of microbatches and three ways to offload; another arbitration, three changes of the
     * best. */
    ADVISE_ROWS_MAX = 48,
    ADVISE_SETTINGS_MAX = 12,
    ADVISE_EVENTS_MAX = 24000000, /* Events of one neighbour. */
    ADVISE_STEPS_MAX = 4,         /* For its period: most repeat by then. */
    ADVISE_PAGES_MAX = 4,         /* Pages of a whole answer. */
    ADVISE_NONE = ADVISE_ROWS_MAX,
};

enum advise_state {
    ADVISE_PLAYED,
    ADVISE_UNFIT, /* More events than a neighbour may have; what it holds at least is too much. */
    ADVISE_TOO_LONG, /* More events than a neighbour may have; it may fit. */
    ADVISE_REFUSED,  /* The workload cannot be lowered so. */
};

struct advise_row {
    const char *setting[ADVISE_SETTINGS_MAX]; /* Settings of --set: "/workload/remat=none". */
    uint32_t setting_count;
    enum advise_state state;
    uint32_t tp_ranks, tp_d_ranks, dp_ranks; /* Ranks of the mesh that was built. */
    bool fits;                               /* Where simulated. */
    bool has_period;       /* Where simulated: steps follow one another, as with pp. */
    uint64_t digest;       /* Where simulated: of all instants. */
    int64_t step_ps;       /* Where simulated. */
    int64_t time_ps;       /* What rows are compared by: the period, or else the step. */
    double mfu;            /* MFU of the step, if simulated; 0: not known, as of a whole answer. */
    uint64_t memory_bytes; /* Where simulated, the peak; else what it holds at least. */
    const char *why;       /* The sentence of ADVISE_REFUSED. */
};

struct advise {
    struct advise_row row[ADVISE_ROWS_MAX]; /* In the order of play; the first is the scenario. */
    uint32_t count;
    uint32_t best; /* The fastest that fits, but for changes that gain next to nothing; ADVISE_NONE:
                      none fits. */
    uint64_t hbm_bytes;      /* HBM of a chip. */
    uint64_t page, own_page; /* Tokens of an answer that are simulated as one step: by advice, and
                                by the scenario. */
    const struct session_source *source; /* The scenario, with what the command line sets in it. */
};

/* Plays the neighbours on `thread_count` threads. `session` is the scenario's own, built up to its
 * program. Errors: STATUS_INTERRUPTED if the user stopped it. */
enum status advise_run(const struct session_source *source, const struct session *session,
                       struct worker *worker, uint32_t thread_count, struct advise *ret_advise,
                       struct error *reterr);

/* The neighbours, the fastest first; `operand` is how the command line called the scenario. */
void advise_write_text(const struct advise *advise, const char *operand, struct strbuf *text);
/* The member "advice" of an object that is open. */
void advise_write_json(const struct advise *advise, struct json_writer *json);

#endif
