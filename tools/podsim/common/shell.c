#include "tools/podsim/common/shell.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include <uv.h>

#include "sim/base/status.h"

enum {
    PROGRESS_FIRST_MS = 1000, /* Work that takes less shows nothing. */
    PROGRESS_PERIOD_MS = 200,
};
static const double share_whole = 1e9; /* Shares travel between the threads as integers. */

struct shell {
    uv_loop_t loop;
    uv_work_t request;
    uv_timer_t timer;
    uv_signal_t interrupt;
    uv_signal_t terminate;
    shell_work_fn *work;
    void *owner;
    const char *whole;
    enum status status;
    struct error *reterr;
    uint64_t begin_ns;

    /* Between the two threads. */
    atomic_bool stop;
    atomic_uint_fast64_t share;
    atomic_uint_fast64_t events;
    bool shown; /* A progress line is on the terminal; the loop's thread only. */
};

static bool is_stopped(struct shell *shell)
{
    return atomic_load_explicit(&shell->stop, memory_order_relaxed);
}

enum status shell_check(struct shell *shell, struct error *reterr)
{
    if (!is_stopped(shell)) return STATUS_OK;
    return error_set(reterr, STATUS_INTERRUPTED, "", "interrupted");
}

bool shell_stops(void *shell)
{
    return is_stopped(shell);
}

bool shell_progress(struct shell *shell, double share, uint64_t events)
{
    atomic_store_explicit(&shell->share, (uint64_t)(share * share_whole), memory_order_relaxed);
    atomic_store_explicit(&shell->events, events, memory_order_relaxed);
    return !is_stopped(shell);
}

static void progress_erase(struct shell *shell)
{
    if (shell->shown) (void)fprintf(stderr, "\r\033[K");
    shell->shown = false;
}

static void on_timer(uv_timer_t *timer)
{
    struct shell *shell = timer->data;
    double const elapsed_s = (double)(uv_hrtime() - shell->begin_ns) * 1e-9;
    double const share = (double)atomic_load(&shell->share) / share_whole;
    double const events = (double)atomic_load(&shell->events);
    if (share <= 0 && events <= 0) return;
    /* Further steps than one are as many as the period takes, which nobody knows before. */
    bool const is_further = share > 1;
    if (is_further)
        (void)fprintf(stderr, "\r\033[K%5.1f %ss for the period", share, shell->whole);
    else
        (void)fprintf(stderr, "\r\033[K%5.1f %% of the %s", share * 100, shell->whole);
    (void)fprintf(stderr, ", %.1f M events/s, ", events / elapsed_s * 1e-6);
    if (share > 0 && !is_further)
        (void)fprintf(stderr, "%.0f s left", elapsed_s * (1 - share) / share);
    else
        (void)fprintf(stderr, "%.0f s so far", elapsed_s);
    (void)fflush(stderr);
    shell->shown = true;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct shell *shell = handle->data;
    (void)number;
    atomic_store(&shell->stop, true);
}

static void on_work(uv_work_t *request)
{
    struct shell *shell = request->data;
    shell->status = shell->work(shell->owner, shell, shell->reterr);
}

static void on_done(uv_work_t *request, int status)
{
    struct shell *shell = request->data;
    SIM_ASSERT(status == 0);
    progress_erase(shell);
    uv_close((uv_handle_t *)&shell->timer, NULL);
    uv_close((uv_handle_t *)&shell->interrupt, NULL);
    uv_close((uv_handle_t *)&shell->terminate, NULL);
}

/* Starts everything; stops at the first call that fails. */
static int shell_start(struct shell *shell)
{
    bool const terminal = uv_guess_handle(2) == UV_TTY;
    int code = uv_timer_init(&shell->loop, &shell->timer);
    if (code == 0) code = uv_signal_init(&shell->loop, &shell->interrupt);
    if (code == 0) code = uv_signal_init(&shell->loop, &shell->terminate);
    if (code == 0) code = uv_signal_start(&shell->interrupt, on_signal, SIGINT);
    if (code == 0) code = uv_signal_start(&shell->terminate, on_signal, SIGTERM);
    if (code == 0 && terminal)
        code = uv_timer_start(&shell->timer, on_timer, PROGRESS_FIRST_MS, PROGRESS_PERIOD_MS);
    if (code == 0) code = uv_queue_work(&shell->loop, &shell->request, on_work, on_done);
    return code;
}

enum status shell_run(shell_work_fn *work, void *owner, const char *whole, struct error *reterr)
{
    struct shell shell = {.work = work, .owner = owner, .whole = whole, .reterr = reterr};
    shell.begin_ns = uv_hrtime();
    shell.request.data = shell.timer.data = shell.interrupt.data = shell.terminate.data = &shell;
    int code = uv_loop_init(&shell.loop);
    if (code == 0) code = shell_start(&shell);
    if (code != 0) /* The process ends now, so nothing is closed. */
        return error_set(reterr, STATUS_IO, "", "no event loop: %s", uv_strerror(code));
    (void)uv_run(&shell.loop, UV_RUN_DEFAULT);
    SIM_ASSERT(uv_loop_close(&shell.loop) == 0);
    return shell.status;
}
