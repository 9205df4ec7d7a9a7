/*
 * progress.h: what the line of progress on a terminal says.
 */
#ifndef TOOLS_PODSIM_COMMON_PROGRESS_H
#define TOOLS_PODSIM_COMMON_PROGRESS_H

#include <stdint.h>

enum { PROGRESS_LINE_BYTES = 128 };

/* What progress is of. */
struct progress_words {
    const char *whole;   /* What a share of up to 1 is a part of: "step". */
    const char *further; /* "steps for the period": a share above 1 counts them. NULL: none is. */
};

/* Events of runs that come one after the other, each counting from 0. */
struct progress_events {
    uint64_t ended; /* Events of runs before the current one, as of their last report. */
    uint64_t run;
    uint64_t replaced; /* Runs before the current one. */
};

/* A run reports its events. Returns those of all runs. */
uint64_t progress_events_add(struct progress_events *events, uint64_t run);

/* The run whose share is shown. A run that replaced another since the last look began after that
 * look. So did work on several threads, whose runs are not counted, where the share falls. */
struct progress_run {
    double share, seen_s; /* At the last look. */
    uint64_t replaced;    /* Runs before the one of the last look. */
    double begin_s;
};

/* At each look: the seconds that the run has taken. `replaced` counts the runs before the current
 * one, and `elapsed_s` is of all runs. */
double progress_run_s(struct progress_run *run, double share, uint64_t replaced, double elapsed_s);

/* "32.6 % of the step, 11.0 M events/s, 2 s left": as the run has gone in its `run_s`. In the first
 * two seconds of a run, and up to 2 %, "1 s so far". */
void progress_line(char line[PROGRESS_LINE_BYTES], struct progress_words words, double share,
                   uint64_t events, double elapsed_s, double run_s);

#endif
