/*
 * parallel.h: parts of work that know nothing of each other, and who runs them.
 *
 * The library starts no threads. A caller that has threads gives a struct parallel; without one the
 * parts run one after another. A part writes only what no other part reads or writes, so the
 * results are the same for any number of threads.
 */
#ifndef SIM_BASE_PARALLEL_H
#define SIM_BASE_PARALLEL_H

#include <stdint.h>

#include "sim/base/status.h"

enum { PARALLEL_THREADS_MAX = 64 };

/* Does one part, on thread 0 to PARALLEL_THREADS_MAX - 1. A thread does one part at a time, so what
 * is kept for each thread needs no lock. Behind a status other than STATUS_OK no part begins. */
typedef enum status parallel_part_fn(void *owner, uint32_t part, uint32_t thread,
                                     struct error *reterr);

/* `part_count` parts of one work. */
struct parallel_work {
    parallel_part_fn *part;
    void *owner; /* The owner of the parts. */
    uint32_t part_count;
    /* The work's share of all that is to be done, for the one who shows progress. */
    double share_begin, share_end;
};

/* Who runs the parts of a work, as parallel_run() says. */
struct parallel {
    enum status (*run)(void *owner, const struct parallel_work *work, struct error *reterr);
    void *owner;
};

/* Runs the parts from 0 on, each once. Returns when every part that began has ended: STATUS_OK, or
 * the failure of the lowest part that failed, which is the same part for any number of threads.
 * NULL: one part after another, on the thread of the caller. */
enum status parallel_run(const struct parallel *parallel, const struct parallel_work *work,
                         struct error *reterr);

#endif
