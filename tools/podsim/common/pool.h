/*
 * pool.h: threads for runs that know nothing of each other: rows of a comparison, sizes of a sweep,
 * cells of a map. A verb takes their number from -j; its results do not depend on it.
 */
#ifndef TOOLS_PODSIM_COMMON_POOL_H
#define TOOLS_PODSIM_COMMON_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "sim/base/parallel.h"
#include "tools/podsim/common/options.h"
#include "tools/podsim/common/progress.h"

struct worker;

#define POOL_OPTION                                                                                \
    {                                                                                              \
        "-j", "N", "simulate on N threads (one for each core)", false                              \
    }

/* What one thread has done, for the line of progress. */
struct pool_thread {
    struct progress_events events; /* Events of this thread only. */
    atomic_uint_fast64_t event_count;
    _Atomic double share; /* The share that is done of the thread's part. */
};

struct pool {
    struct worker *worker;
    uint32_t thread_count;
    struct pool_thread thread[PARALLEL_THREADS_MAX];

    /* Between the threads, while there is work. */
    const struct parallel_work *work;
    atomic_uint next, ended;
    atomic_bool stop;    /* A part failed: none begins. */
    uv_mutex_t lock;     /* The lock of the failure. */
    uint32_t failed;     /* The lowest part that failed; part_count: none did. */
    enum status status;  /* The status of the part that failed. */
    struct error *error; /* The error of the part that failed. */
};

/* -j; without it one thread for each core that the process may use. */
enum status pool_read(const struct options *options, uint32_t *ret_thread_count,
                      struct error *reterr);

/* An idle pool of a worker's work. */
void pool_open(struct pool *pool, struct worker *worker, uint32_t thread_count);
/* The pool as sim/ asks for it. */
struct parallel pool_parallel(struct pool *pool);

/* For a part: how much of it is done, and the events of its current run. Returns false if it should
 * stop. */
bool pool_progress(struct pool *pool, uint32_t thread, double share, uint64_t events);

#endif
