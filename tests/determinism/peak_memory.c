/*
 * Runs of shipped scenarios take at most twice the memory of an early version (docs/speed.md), of
 * equal work: peak_memory PODSIM. Pages of the program and of its libraries count, too.
 */
#define _XOPEN_SOURCE 700 /* ru_maxrss */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
    const char *scenario;
    long early_kib;
    const char *remat; /* The setting that does the early version's work. */
};

static const struct run runs[] = {
    {"mlp-fsdp-h100-8", 3828, NULL},
    {"mlp-fsdp-h100-16", 3908, NULL},
    {"qwen3-30b-a3b-ep32-h100-32", 4048, NULL},
    {"llama3-8b-pp4-h100-32-short", 4076, NULL},
    {"llama3-70b-fsdp-tp-h100-1024", 4160, NULL},
    {"llama3-70b-fsdp-tp-v5p-16x16x16", 4240, "/workload/remat=layer"},
    {"megatron-39.1b-a100-512", 4604, NULL},
};

/* The peak of a child, or -1 where it fails. */
static long peak_kib(const char *podsim, const struct run *run)
{
    const char *const argument[] = {podsim,
                                    "run",
                                    run->scenario,
                                    "--quiet",
                                    "--set",
                                    "/run/arbitration=fifo",
                                    "--set",
                                    "/run/steps=1",
                                    run->remat == NULL ? NULL : "--set",
                                    run->remat,
                                    NULL};
    struct rusage usage;
    int ended = 0;
    pid_t const child = fork();
    if (child == 0) {
        (void)execv(podsim, (char *const *)argument);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) return -1;
    return getrusage(RUSAGE_CHILDREN, &usage) == 0 ? usage.ru_maxrss : -1;
}

/* The largest of all children so far is what the system tells, so each run has a process. */
static int run_alone(const char *podsim, const struct run *run)
{
    long const peak = peak_kib(podsim, run);
    if (peak < 0) return 2;
    printf("%s: %ld KiB, early version %ld KiB\n", run->scenario, peak, run->early_kib);
    return peak > 2 * run->early_kib;
}

int main(int count, char **argument)
{
    int failed = 0;
    if (count != 2) return 2;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        int ended = 0;
        (void)fflush(stdout);
        pid_t const child = fork();
        if (child == 0) {
            int const result = run_alone(argument[1], &runs[i]);
            (void)fflush(stdout);
            _exit(result);
        }
        if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) {
            printf("%s: fails, or takes more than twice the memory\n", runs[i].scenario);
            failed = 1;
        }
    }
    return failed;
}
