/*
 * replay.h: simulates a program on a machine, through queues. No other folder includes both.
 */
#ifndef SIM_REPLAY_REPLAY_H
#define SIM_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arbitration.h"
#include "sim/base/status.h"
#include "sim/fold/fold.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"
#include "sim/trace/trace.h"

struct arena;

enum {
    REPLAY_LANES_MAX = 256, /* Of the plans of all streams together. */
    REPLAY_STEPS_MAX = 64,
};

struct replay_progress {
    double share; /* Of the step, by parts done on the compute streams. */
    uint64_t events;
    int64_t now_ps;
    uint64_t peak_bytes; /* Of the chip that has held most up to now, with `watch_memory`. */
};

/* Called every few thousand events, on the thread that runs; false stops with
 * STATUS_INTERRUPTED. */
typedef bool replay_watch_fn(void *owner, const struct replay_progress *progress);

struct replay_options {
    const char *engine;           /* "fast" or "reference" */
    enum arbitration arbitration; /* By program_stream.urgency. */
    uint64_t segment_bytes;       /* Bytes of a stream's turn; 0: the default of port.h. */
    const uint32_t *shown_chips;  /* Machine chips to record for a timeline. */
    uint32_t shown_count;
    bool record;
    bool curves;        /* Fill trace_role.curve: costs memory for each effect of an op. */
    bool count_waits;   /* Fill trace_link.waited_ps and .messages: costs some percent of time. */
    uint32_t steps_max; /* Most steps that are replayed in a row to find trace.period; 0 or 1: the
                           single step only. */
    bool every_layer;   /* Simulate layers that are alike one by one (docs/engine.md). */
    bool every_message; /* Simulate collectives that are alike message by message (the same). */
    bool windows; /* Take events from windows (window.c) where that is exact but not faster, too. */
    bool short_stretches; /* Repeat stretches (stretch.h) of few events too, which is not faster. */
    bool watch_memory;    /* Tell `watch` of the peak up to now: looks at every chip. */
    replay_watch_fn *watch;
    void *watch_owner;
};

/* STATUS_NOT_FOUND: no such engine. STATUS_STUCK: ranks did not all finish; the
 * error names who waits for whom. */
enum status replay_run(struct arena *arena, const struct replay_options *options,
                       const struct machine *machine, const struct program *program,
                       const struct fold *fold, struct trace *ret_trace, struct error *reterr);

#endif
