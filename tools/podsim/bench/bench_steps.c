#define _XOPEN_SOURCE 700 /* ru_maxrss */

#include "tools/podsim/bench/bench_steps.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "sim/base/strbuf.h"
#include "tools/podsim/bench/bench_cases.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/session.h"

/* What a child tells its parent. */
struct report {
    struct bench_step step;
    enum status status;
    struct error error;
};

/* `text`: owns the scenario until it has been read. */
static enum status source_of(const struct bench_case *step, struct strbuf *text,
                             struct session_source *ret_source, struct error *reterr)
{
    STATUS_TRY(bench_case_text(step, NULL, text, reterr));
    if (text->failed) return error_set(reterr, STATUS_NO_MEMORY, step->name, "out of memory");
    *ret_source = (struct session_source){.path = step->name,
                                          .text = text->bytes,
                                          .text_bytes = text->size_bytes,
                                          .full = step->full};
    for (uint32_t i = 0; step->settings[i] != NULL; i++)
        ret_source->settings[ret_source->setting_count++].text = step->settings[i];
    return STATUS_OK;
}

/* In a process of its own, which ends. */
static enum status play(const struct bench_case *step, struct bench_step *ret_step,
                        struct error *reterr)
{
    static struct session_source source;
    static struct session session;
    static struct strbuf text;
    STATUS_TRY(source_of(step, &text, &source, reterr));
    STATUS_TRY(session_build(&session, &source, SESSION_PROGRAM, reterr));
    uint64_t const begin_ns = uv_hrtime();
    struct replay_options const options = {.every_layer = step->every_layer};
    STATUS_TRY(session_replay(&session, &source, &options, reterr));
    ret_step->replay_s = (double)(uv_hrtime() - begin_ns) * 1e-9;
    ret_step->chips = session.trace.fold.chips;
    ret_step->chips_replayed = session.trace.fold.replayed;
    ret_step->events = session.trace.work.events;
    ret_step->transfers = session.trace.work.transfers;
    ret_step->digest = session.trace.digest;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        ret_step->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return STATUS_OK;
}

static enum status fail(int cause, struct error *reterr)
{
    return error_set(reterr, STATUS_IO, "bench", "no process for a measurement: %s",
                     strerror(cause));
}

/* Until the child is known, no signal may end its parent alone. */
static pid_t fork_known(void)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid_t const child = fork();
    if (child > 0) output_child(child);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

/* Plays in a child and reads what it tells. */
static enum status measure(const struct bench_case *step, struct bench_step *ret_step,
                           struct error *reterr)
{
    static struct report report;
    int ends[2];
    if (pipe(ends) != 0) return fail(errno, reterr);
    uint64_t const begin_ns = uv_hrtime();
    pid_t const child = fork_known();
    if (child < 0) return fail(errno, reterr);
    if (child == 0) {
        report = (struct report){0};
        report.status = play(step, &report.step, &report.error);
        _exit(write(ends[1], &report, sizeof report) == (ssize_t)sizeof report ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size < sizeof report; size += (size_t)(got > 0 ? got : 0))
        got = read(ends[0], (char *)&report + size, sizeof report - size);
    (void)close(ends[0]);
    int child_status = 0;
    pid_t const ended = waitpid(child, &child_status, 0);
    output_child(0);
    if (ended < 0) return fail(errno, reterr);
    if (size < sizeof report || child_status != 0)
        return error_set(reterr, STATUS_IO, "bench", "%s ended before its time", step->name);
    if (report.status != STATUS_OK) {
        *reterr = report.error;
        return report.status;
    }
    *ret_step = report.step;
    ret_step->name = step->name;
    ret_step->wall_s = (double)(uv_hrtime() - begin_ns) * 1e-9;
    return STATUS_OK;
}

enum status bench_steps_run(bool quick, struct bench_step *ret_steps, uint32_t *ret_count,
                            struct error *reterr)
{
    *ret_count = 0;
    SIM_ASSERT(bench_case_count <= BENCH_STEPS_MAX);
    for (uint32_t i = 0; i < bench_case_count; i++) {
        if (quick && !bench_cases[i].quick) continue;
        STATUS_TRY(measure(&bench_cases[i], &ret_steps[*ret_count], reterr));
        *ret_count += 1;
    }
    return STATUS_OK;
}
