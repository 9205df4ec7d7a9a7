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

#include "sim/base/arena.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/scenarios.h"
#include "tools/podsim/common/session.h"

/* The bare MLP on a slice: dimensions that 8, 16, 20 and 28 chips can share, so that the same
 * program runs on 512, 4,096 and 8,960 chips with 1,024 tokens on each. */
static const char slice_text[] =
    "{\"podsim\": 1, \"title\": \"slice\","
    " \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"8x8x8\", \"profile\": \"ideal\"},"
    " \"mesh\": {\"fsdp\": [\"x\"], \"tp\": [\"y\"], \"dp\": [\"z\"]},"
    " \"workload\": {\"kind\": \"train_step\", \"batch_tokens\": 524288,"
    "   \"sequence_length\": 1024, \"allow_oversubscription\": true,"
    "   \"model\": {\"kind\": \"mlp\", \"D\": 10240, \"F\": 40960, \"layers\": 16,"
    "     \"matrices\": 2}}}";

static const struct {
    const char *name;
    const char *scenario; /* Built in; NULL: slice_text. */
    bool full;
    bool quick;
    const char *settings[3];
} steps[] = {
    {"headline folded", "llama3-70b-fsdp-tp-v5p-16x16x16", false, true, {NULL}},
    {"decode, v5e 4x4", "llama3-70b-decode-int8-v5e-4x4", false, true, {NULL}},
    {"decode, v5e 4x4, trees",
     "llama3-70b-decode-int8-v5e-4x4",
     false,
     true,
     {"/workload/activations=replicated"}},
    {"decode, 8 H100", "llama3-70b-decode-h100-8", false, true, {NULL}},
    {"decode, 320 H800", "deepseek-v3-decode-h800-320", false, true, {NULL}},
    {"headline --full", "llama3-70b-fsdp-tp-v5p-16x16x16", true, false, {NULL}},
    {"MLP --full, 512 chips", NULL, true, true, {NULL}},
    {"MLP --full, 4,096 chips",
     NULL,
     true,
     false,
     {"/machine/shape=16x16x16", "/workload/batch_tokens=4194304"}},
    {"MLP --full, 8,960 chips",
     NULL,
     true,
     false,
     {"/machine/shape=16x20x28", "/workload/batch_tokens=9175040"}},
};
enum { STEP_COUNT = sizeof steps / sizeof *steps };
_Static_assert((int)STEP_COUNT <= (int)BENCH_STEPS_MAX, "the caller's array is too short");

/* What a child tells its parent. */
struct report {
    struct bench_step step;
    enum status status;
    struct error error;
};

static enum status source_of(uint32_t index, struct session_source *ret_source,
                             struct error *reterr)
{
    *ret_source = (struct session_source){.path = steps[index].name,
                                          .text = slice_text,
                                          .text_bytes = sizeof slice_text - 1,
                                          .full = steps[index].full};
    for (uint32_t i = 0; steps[index].settings[i] != NULL; i++)
        ret_source->settings[ret_source->setting_count++].text = steps[index].settings[i];
    if (steps[index].scenario == NULL) return STATUS_OK;
    for (unsigned i = 0; i < embed_scenarios_count; i++) {
        if (strcmp(embed_scenarios[i].name, steps[index].scenario) != 0) continue;
        ret_source->text = embed_scenarios[i].bytes;
        ret_source->text_bytes = embed_scenarios[i].size_bytes;
        return STATUS_OK;
    }
    return error_set(reterr, STATUS_NOT_FOUND, steps[index].scenario, "is not built in");
}

static enum status play(uint32_t index, struct bench_step *ret_step, struct error *reterr)
{
    static struct session_source source;
    static struct session session;
    STATUS_TRY(source_of(index, &source, reterr));
    STATUS_TRY(session_build(&session, &source, SESSION_PROGRAM, reterr));
    uint64_t const begin_ns = uv_hrtime();
    STATUS_TRY(session_replay(&session, &source, &(struct replay_options){0}, reterr));
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
static enum status measure(uint32_t index, struct bench_step *ret_step, struct error *reterr)
{
    static struct report report;
    int ends[2];
    if (pipe(ends) != 0) return fail(errno, reterr);
    uint64_t const begin_ns = uv_hrtime();
    pid_t const child = fork_known();
    if (child < 0) return fail(errno, reterr);
    if (child == 0) {
        report = (struct report){0};
        report.status = play(index, &report.step, &report.error);
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
        return error_set(reterr, STATUS_IO, "bench", "%s ended before its time", steps[index].name);
    if (report.status != STATUS_OK) {
        *reterr = report.error;
        return report.status;
    }
    *ret_step = report.step;
    ret_step->name = steps[index].name;
    ret_step->wall_s = (double)(uv_hrtime() - begin_ns) * 1e-9;
    return STATUS_OK;
}

enum status bench_steps_run(bool quick, struct bench_step *ret_steps, uint32_t *ret_count,
                            struct error *reterr)
{
    *ret_count = 0;
    for (uint32_t i = 0; i < STEP_COUNT; i++) {
        if (quick && !steps[i].quick) continue;
        STATUS_TRY(measure(i, &ret_steps[*ret_count], reterr));
        *ret_count += 1;
    }
    return STATUS_OK;
}
