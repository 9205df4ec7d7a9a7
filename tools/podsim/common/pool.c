#include "tools/podsim/common/pool.h"

#include "tools/podsim/common/counts.h"
#include "tools/podsim/common/thread.h"
#include "tools/podsim/common/worker.h"

enum status pool_read(const struct options *options, uint32_t *ret_thread_count,
                      struct error *reterr)
{
    const char *const text = options_value(options, "-j");
    uint32_t const cores = uv_available_parallelism();
    *ret_thread_count = cores < PARALLEL_THREADS_MAX ? cores : PARALLEL_THREADS_MAX;
    if (text == NULL) return STATUS_OK;
    return counts_one(text, "-j", PARALLEL_THREADS_MAX, ret_thread_count, reterr);
}

void pool_open(struct pool *pool, struct worker *worker, uint32_t thread_count)
{
    *pool = (struct pool){.worker = worker, .thread_count = thread_count};
}

bool pool_progress(struct pool *pool, uint32_t thread, double share, uint64_t events)
{
    struct pool_thread *own = &pool->thread[thread];
    double done = atomic_load(&pool->ended);
    uint64_t all = 0;
    atomic_store(&own->event_count, progress_events_add(&own->events, events));
    atomic_store(&own->share, share);
    for (uint32_t t = 0; t < pool->thread_count; t++) {
        done += atomic_load(&pool->thread[t].share);
        all += atomic_load(&pool->thread[t].event_count);
    }
    const struct parallel_work *work = pool->work;
    double const whole = done / work->part_count;
    return worker_show(pool->worker,
                       work->share_begin + whole * (work->share_end - work->share_begin), all);
}

/* A failure counts if no lower part has failed. */
static void fail(struct pool *pool, uint32_t part, enum status status, const struct error *error)
{
    uv_mutex_lock(&pool->lock);
    if (part < pool->failed) {
        pool->failed = part;
        pool->status = status;
        *pool->error = *error;
    }
    uv_mutex_unlock(&pool->lock);
    atomic_store(&pool->stop, true);
}

/* A part that fails keeps only higher parts from beginning: lower ones have all begun. */
static void parts_do(struct pool *pool, uint32_t thread)
{
    const struct parallel_work *work = pool->work;
    uint32_t part = 0;
    while (!atomic_load(&pool->stop) &&
           (part = atomic_fetch_add(&pool->next, 1)) < work->part_count) {
        struct error error = {0};
        enum status const status = work->part(work->owner, part, thread, &error);
        if (status != STATUS_OK) fail(pool, part, status, &error);
        atomic_store(&pool->thread[thread].share, 0);
        (void)atomic_fetch_add(&pool->ended, 1);
    }
}

/* One of the threads besides the caller's. */
struct seat {
    struct pool *pool;
    uint32_t thread;
    uv_thread_t handle;
};

static void seat_work(void *owner)
{
    const struct seat *seat = owner;
    parts_do(seat->pool, seat->thread);
}

/* Where the system gives fewer threads, these do all the work. */
static enum status run(void *owner, const struct parallel_work *work, struct error *reterr)
{
    struct pool *pool = owner;
    struct seat seats[PARALLEL_THREADS_MAX];
    uint32_t const most =
        work->part_count < pool->thread_count ? work->part_count : pool->thread_count;
    uint32_t count = 1;
    if (uv_mutex_init(&pool->lock) != 0) return error_no_memory(reterr, "");
    pool->work = work;
    pool->failed = work->part_count;
    pool->status = STATUS_OK;
    pool->error = reterr;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->ended, 0);
    atomic_store(&pool->stop, false);
    for (; count < most; count++) {
        seats[count] = (struct seat){.pool = pool, .thread = count};
        if (!thread_start(&seats[count].handle, seat_work, &seats[count])) break;
    }
    parts_do(pool, 0);
    while (count > 1) (void)uv_thread_join(&seats[--count].handle);
    uv_mutex_destroy(&pool->lock);
    return pool->status;
}

struct parallel pool_parallel(struct pool *pool)
{
    return (struct parallel){.run = run, .owner = pool};
}
