/*
 * measure.h: collectives by themselves: one, or several at once, on an idle machine, from request
 * to instants. Each is an op on a stream of its own that begins at 0; who shares links waits in
 * their queues.
 */
#ifndef SIM_MEASURE_MEASURE_H
#define SIM_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"
#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"
#include "sim/replay/replay.h"
#include "sim/trace/trace.h"

struct arena;

enum { MEASURE_REQUESTS_MAX = 15 };

struct measure_options {
    const char *engine;          /* "fast" or "reference" */
    bool full;                   /* Every chip and every hop. */
    bool count_waits;            /* Count what waits at links; alike chips then go one by one. */
    const uint32_t *shown_chips; /* Machine chips to record for a timeline; NULL: none. */
    uint32_t shown_count;
    replay_watch_fn *watch;
    void *watch_owner;
};

struct measured {
    int64_t time_ps[MEASURE_REQUESTS_MAX]; /* Of each: when its last rank had ended. */
    const struct plan *plans;              /* The plans of the requests. */
    const struct program *program;         /* The program that runs the plans. */
    struct fold fold;
    struct trace trace; /* The trace of all together. */
};

/* What is simulated at once: collectives, and copies between every chip and its host. */
struct measure_party {
    const struct plan_request *requests;
    uint32_t request_count;
    const struct program_copy *copies;
    uint32_t copy_count;
};

/* `where` is the place of the party in the input. Times are of the requests, then of the copies.
 * Everything lies in the arena. */
enum status measure_party_run(struct arena *arena, const struct machine *machine,
                              const struct measure_party *party, const char *where,
                              const struct measure_options *options, struct measured *ret_measured,
                              struct error *reterr);

/* As measure_party_run(), without copies. `where` is the place of the requests in the input.
 * hop_bytes and bytes_per_s of the requests are filled here, from the machine's links. */
enum status measure_run(struct arena *arena, const struct machine *machine,
                        const struct plan_request *requests, uint32_t count, const char *where,
                        const struct measure_options *options, struct measured *ret_measured,
                        struct error *reterr);

#endif
