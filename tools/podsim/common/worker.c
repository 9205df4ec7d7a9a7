#include "tools/podsim/common/worker.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include <uv.h>

#include "sim/base/status.h"
#include "tools/podsim/common/thread.h"

enum {
    PROGRESS_FIRST_MS = 1000, /* Work that takes less shows nothing. */
    PROGRESS_PERIOD_MS = 200,
};
static const double share_whole = 1e9; /* Shares travel between the threads as integers. */

struct worker {
    uv_loop_t loop;
    uv_thread_t thread;
    uv_async_t done;
    uv_timer_t timer;
    uv_signal_t interrupt;
    uv_signal_t terminate;
    worker_work_fn *work;
    void *owner;
    struct progress_words words;
    enum status status;
    struct error *reterr;
    uint64_t begin_ns;

    /* Between the two threads. */
    atomic_bool stop;
    atomic_uint_fast64_t share;
    atomic_uint_fast64_t events;
    atomic_uint_fast64_t replaced; /* Runs before the one that the share is of. */
    struct progress_events ended;  /* The work's thread only. */
    struct progress_run run;       /* The loop's thread only. */
    bool shown;                    /* A progress line is on the terminal; the loop's thread only. */
};

static bool is_stopped(struct worker *worker)
{
    return atomic_load_explicit(&worker->stop, memory_order_relaxed);
}

enum status worker_check(struct worker *worker, struct error *reterr)
{
    if (!is_stopped(worker)) return STATUS_OK;
    return error_set(reterr, STATUS_INTERRUPTED, "", "interrupted");
}

bool worker_stops(void *worker)
{
    return is_stopped(worker);
}

bool worker_show(struct worker *worker, double share, uint64_t events)
{
    atomic_store_explicit(&worker->share, (uint64_t)(share * share_whole), memory_order_relaxed);
    atomic_store_explicit(&worker->events, events, memory_order_relaxed);
    return !is_stopped(worker);
}

bool worker_progress(struct worker *worker, double share, uint64_t events)
{
    uint64_t const all = progress_events_add(&worker->ended, events);
    atomic_store_explicit(&worker->replaced, worker->ended.replaced, memory_order_relaxed);
    return worker_show(worker, share, all);
}

static void progress_erase(struct worker *worker)
{
    if (worker->shown) (void)fprintf(stderr, "\r\033[K");
    worker->shown = false;
}

static void on_timer(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    double const elapsed_s = (double)(uv_hrtime() - worker->begin_ns) * 1e-9;
    double const share = (double)atomic_load(&worker->share) / share_whole;
    uint64_t const events = atomic_load(&worker->events);
    char line[PROGRESS_LINE_BYTES];
    if (share <= 0 && events == 0) return;
    progress_line(line, worker->words, share, events, elapsed_s,
                  progress_run_s(&worker->run, share, atomic_load(&worker->replaced), elapsed_s));
    (void)fprintf(stderr, "\r\033[K%s", line);
    (void)fflush(stderr);
    worker->shown = true;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct worker *worker = handle->data;
    (void)number;
    atomic_store(&worker->stop, true);
}

static void on_thread(void *owner)
{
    struct worker *worker = owner;
    worker->status = worker->work(worker->owner, worker, worker->reterr);
    SIM_ASSERT(uv_async_send(&worker->done) == 0);
}

static void close_handle(uv_handle_t *handle, void *nothing)
{
    (void)nothing;
    uv_close(handle, NULL);
}

static void on_done(uv_async_t *done)
{
    struct worker *worker = done->data;
    SIM_ASSERT(uv_thread_join(&worker->thread) == 0);
    progress_erase(worker);
    uv_walk(&worker->loop, close_handle, NULL);
}

/* What the loop waits for; stops at the first call that fails. */
static int handles_start(struct worker *worker)
{
    bool const terminal = uv_guess_handle(2) == UV_TTY;
    int code = uv_async_init(&worker->loop, &worker->done, on_done);
    if (code == 0) code = uv_timer_init(&worker->loop, &worker->timer);
    if (code == 0) code = uv_signal_init(&worker->loop, &worker->interrupt);
    if (code == 0) code = uv_signal_init(&worker->loop, &worker->terminate);
    if (code == 0) code = uv_signal_start(&worker->interrupt, on_signal, SIGINT);
    if (code == 0) code = uv_signal_start(&worker->terminate, on_signal, SIGTERM);
    if (code == 0 && terminal)
        code = uv_timer_start(&worker->timer, on_timer, PROGRESS_FIRST_MS, PROGRESS_PERIOD_MS);
    return code;
}

static enum status work_start(struct worker *worker, struct error *reterr)
{
    if (thread_start(&worker->thread, on_thread, worker)) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", THREAD_NONE);
}

static enum status worker_start(struct worker *worker, struct error *reterr)
{
    int const code = handles_start(worker);
    enum status const status =
        code == 0 ? work_start(worker, reterr)
                  : error_set(reterr, STATUS_IO, "", "no event loop: %s", uv_strerror(code));
    if (status != STATUS_OK) uv_walk(&worker->loop, close_handle, NULL);
    return status;
}

enum status worker_run(worker_work_fn *work, void *owner, struct progress_words words,
                       struct error *reterr)
{
    struct worker worker = {.work = work, .owner = owner, .words = words, .reterr = reterr};
    worker.begin_ns = uv_hrtime();
    worker.done.data = worker.timer.data = worker.interrupt.data = worker.terminate.data = &worker;
    int const code = uv_loop_init(&worker.loop);
    if (code != 0) return error_set(reterr, STATUS_IO, "", "no event loop: %s", uv_strerror(code));
    enum status const status = worker_start(&worker, reterr);
    (void)uv_run(&worker.loop, UV_RUN_DEFAULT);
    SIM_ASSERT(uv_loop_close(&worker.loop) == 0);
    return status != STATUS_OK ? status : worker.status;
}
