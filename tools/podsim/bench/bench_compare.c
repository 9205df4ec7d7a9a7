#define _DEFAULT_SOURCE /* rusage, mkstemps */

#include "tools/podsim/bench/bench_compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/bench/bench_cases.h"
#include "tools/podsim/common/median.h"
#include "tools/podsim/common/worker.h"

enum {
    PATH_BYTES = 4096,
    ARGUMENTS_MAX = 9 + 2 * (BENCH_SETTINGS_MAX + BENCH_EARLY_MAX),
    RUNS_MAX = 20
};
static const double least_s = 0.2; /* What one side of a pair takes at least, if repeating helps. */

struct side {
    const char *program;
    bool is_early, like_early;
    double cpu_s[BENCH_PAIRS_MAX];
};

/* One process, or several in a row. */
struct taken {
    double cpu_s;
    uint64_t events;
    char digest[32];
    char refused[BENCH_REFUSED_BYTES];
};

static enum status fail(int cause, struct error *reterr)
{
    return error_set(reterr, STATUS_IO, "--compare", "no process or file for a measurement: %s",
                     strerror(cause));
}

static double children_cpu_s(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0) return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static enum status read_whole(FILE *file, struct strbuf *text, struct error *reterr)
{
    char bytes[4096];
    size_t got = 0;
    rewind(file);
    while ((got = fread(bytes, 1, sizeof bytes, file)) > 0) strbuf_add_bytes(text, bytes, got);
    if (ferror(file)) return fail(errno, reterr);
    if (text->failed) return error_set(reterr, STATUS_NO_MEMORY, "--compare", "out of memory");
    return STATUS_OK;
}

static void settings_add(const char *const *settings, const char **argument, uint32_t *count)
{
    for (uint32_t i = 0; settings[i] != NULL; i++) {
        argument[(*count)++] = "--set";
        argument[(*count)++] = settings[i];
    }
}

/* `podsim run` of the scenario in a file that has no name any more. A podsim that is early
 * simulates every layer in any case. */
static enum status spawn(const struct side *side, const struct bench_case *step, FILE *scenario,
                         FILE *result, FILE *said, int *ret_ended, struct error *reterr)
{
    const char *const program = side->program;
    char path[32];
    (void)snprintf(path, sizeof path, "/dev/fd/%d", fileno(scenario));
    const char *argument[ARGUMENTS_MAX] = {program, "run", path, "--quiet", "--json", "-"};
    uint32_t count = 6;
    if (step->full) argument[count++] = "--full";
    if (step->every_layer && !side->is_early) argument[count++] = "--every-layer";
    settings_add(step->settings, argument, &count);
    if (side->like_early) settings_add(step->early, argument, &count);
    pid_t const child = fork();
    if (child < 0) return fail(errno, reterr);
    if (child == 0) {
        if (dup2(fileno(result), STDOUT_FILENO) >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0)
            (void)execv(program, (char *const *)argument);
        _exit(127);
    }
    while (waitpid(child, ret_ended, 0) < 0)
        if (errno != EINTR) return fail(errno, reterr);
    return STATUS_OK;
}

/* Digest and events; a text that has none is a refusal. */
static void result_read(struct arena *arena, const struct strbuf *text, struct taken *taken)
{
    struct error error = {0};
    struct json *document = NULL;
    const char *digest = NULL;
    int64_t events = 0;
    if (text->size_bytes == 0 || json_read_text(arena, "its result", text->bytes, text->size_bytes,
                                                &document, &error) != STATUS_OK) {
        (void)snprintf(taken->refused, sizeof taken->refused, "it prints no result in JSON");
        return;
    }
    struct json *value = NULL;
    if (json_as_object(document, &error) != STATUS_OK ||
        json_need(document, "digest", &value, &error) != STATUS_OK ||
        json_as_string(value, &digest, &error) != STATUS_OK ||
        json_need(document, "events", &value, &error) != STATUS_OK ||
        json_as_integer(value, 0, INT64_MAX, &events, &error) != STATUS_OK) {
        (void)snprintf(taken->refused, sizeof taken->refused, "its result: %.100s", error.message);
    } else {
        (void)snprintf(taken->digest, sizeof taken->digest, "%s", digest);
        taken->events = (uint64_t)events;
    }
    json_free(document);
}

static void refusal_read(const struct strbuf *text, int ended, struct taken *taken)
{
    static const char own[] = "podsim: ";
    const char *line = text->size_bytes == 0 ? "" : text->bytes;
    if (strncmp(line, own, sizeof own - 1) == 0) line += sizeof own - 1;
    if (WIFSIGNALED(ended))
        (void)snprintf(taken->refused, sizeof taken->refused, "ended by signal %d",
                       WTERMSIG(ended));
    else if (*line == '\0' || *line == '\n')
        (void)snprintf(taken->refused, sizeof taken->refused, "exit status %d", WEXITSTATUS(ended));
    else
        (void)snprintf(taken->refused, sizeof taken->refused, "%.*s", (int)strcspn(line, "\n"),
                       line);
}

/* Runs once. Errors are of this process; what the other says is in `taken`. */
static enum status run_once(const struct side *side, const struct bench_case *step, FILE *scenario,
                            struct taken *ret_taken, struct error *reterr)
{
    FILE *const result = tmpfile(), *const said = tmpfile();
    struct strbuf text = {0};
    struct arena *arena = arena_create(0);
    int ended = 0;
    *ret_taken = (struct taken){0};
    enum status status = result == NULL || said == NULL ? fail(errno, reterr) : STATUS_OK;
    if (status == STATUS_OK && arena == NULL)
        status = error_set(reterr, STATUS_NO_MEMORY, "--compare", "out of memory");
    double const begin_s = children_cpu_s();
    if (status == STATUS_OK) status = spawn(side, step, scenario, result, said, &ended, reterr);
    ret_taken->cpu_s = children_cpu_s() - begin_s;
    bool const is_well = WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
    if (status == STATUS_OK) status = read_whole(is_well ? result : said, &text, reterr);
    if (status == STATUS_OK && is_well) result_read(arena, &text, ret_taken);
    if (status == STATUS_OK && !is_well) refusal_read(&text, ended, ret_taken);
    if (result != NULL) (void)fclose(result);
    if (said != NULL) (void)fclose(said);
    strbuf_free(&text);
    if (arena != NULL) arena_destroy(arena);
    return status;
}

struct comparison {
    const struct bench_comparing *comparing;
    struct worker *worker;
    FILE *scenario;
    struct side side[2]; /* This podsim, and the other. */
    uint64_t events;     /* Of all runs, for the line of progress. */
};

/* A run that fails after one that did not is an error: results are the same each time. */
static enum status side_run(struct comparison *comparison, const struct bench_case *step,
                            uint32_t runs, struct side *side, uint32_t pair, struct error *reterr)
{
    side->cpu_s[pair] = 0;
    for (uint32_t i = 0; i < runs; i++) {
        struct taken taken;
        STATUS_TRY(run_once(side, step, comparison->scenario, &taken, reterr));
        STATUS_TRY(worker_check(comparison->worker, reterr));
        if (*taken.refused != '\0')
            return error_set(reterr, STATUS_IO, side->program, "%s: %s", step->name, taken.refused);
        side->cpu_s[pair] += taken.cpu_s / runs;
        comparison->events += taken.events;
    }
    return STATUS_OK;
}

static void row_fill(struct comparison *comparison, struct bench_pairs *row)
{
    uint32_t const count = comparison->comparing->pairs;
    double ratio[BENCH_PAIRS_MAX];
    double const events = (double)row->other_events / (double)row->events;
    for (uint32_t pair = 0; pair < count; pair++)
        ratio[pair] = events * comparison->side[0].cpu_s[pair] / comparison->side[1].cpu_s[pair];
    row->ratio = median(ratio, count);
    row->ratio_least = ratio[0];
    row->ratio_most = ratio[count - 1];
    row->cpu_s = median(comparison->side[0].cpu_s, count);
    row->other_cpu_s = median(comparison->side[1].cpu_s, count);
}

/* The first run of each tells whether both have a result and how often a pair repeats it; it counts
 * in no figure, since it also brings the program into memory. */
static enum status row_compare(struct comparison *comparison, const struct bench_case *step,
                               double share, double share_of_pair, struct bench_pairs *row,
                               struct error *reterr)
{
    struct taken first[2];
    for (uint32_t s = 0; s < 2; s++) {
        STATUS_TRY(run_once(&comparison->side[s], step, comparison->scenario, &first[s], reterr));
        STATUS_TRY(worker_check(comparison->worker, reterr));
    }
    if (*first[0].refused != '\0')
        return error_set(reterr, STATUS_IO, step->name, "%s", first[0].refused);
    *row = (struct bench_pairs){
        .name = step->name, .events = first[0].events, .other_events = first[1].events};
    memcpy(row->refused, first[1].refused, sizeof row->refused);
    if (*row->refused != '\0') return STATUS_OK;
    row->same = strcmp(first[0].digest, first[1].digest) == 0;
    double const runs = least_s / (first[0].cpu_s + 1e-6) + 1;
    row->runs = runs > RUNS_MAX ? RUNS_MAX : (uint32_t)runs;
    for (uint32_t pair = 0; pair < comparison->comparing->pairs; pair++) {
        for (uint32_t turn = 0; turn < 2; turn++)
            STATUS_TRY(side_run(comparison, step, row->runs, &comparison->side[(pair + turn) % 2],
                                pair, reterr));
        (void)worker_show(comparison->worker, share + share_of_pair * (pair + 1),
                          comparison->events);
    }
    row_fill(comparison, row);
    return STATUS_OK;
}

static enum status other_check(const char *other, struct error *reterr)
{
    struct stat found;
    if (stat(other, &found) != 0)
        return error_set(reterr, STATUS_NOT_FOUND, "--compare", "%s: %s", other, strerror(errno));
    if (!S_ISREG(found.st_mode) || access(other, X_OK) != 0)
        return error_set(reterr, STATUS_NOT_FOUND, "--compare", "%s is no program", other);
    return STATUS_OK;
}

/* A file of its own, which every podsim reads; some read no model inside a scenario. A disk that
 * becomes full takes a part of the text first, and has a cause for the rest alone. */
static enum status model_write(const struct bench_case *step, char *path, struct error *reterr)
{
    enum { SUFFIX = 5 }; /* ".json" */
    struct strbuf text = {0};
    bench_case_model(step, &text);
    if (text.failed) {
        strbuf_free(&text);
        return fail(ENOMEM, reterr);
    }
    int const file = mkstemps(path, SUFFIX);
    FILE *const stream = file >= 0 ? fdopen(file, "w") : NULL;
    int cause = stream == NULL ? errno : 0;
    if (stream == NULL && file >= 0) (void)close(file);
    if (stream != NULL && fwrite(text.bytes, 1, text.size_bytes, stream) != text.size_bytes)
        cause = errno;
    if (stream != NULL && fclose(stream) != 0 && cause == 0) cause = errno;
    if (file >= 0 && cause != 0) (void)unlink(path);
    strbuf_free(&text);
    return cause == 0 ? STATUS_OK : fail(cause, reterr);
}

static enum status step_compare(struct comparison *comparison, const struct bench_case *step,
                                double share, double share_of_pair, struct bench_pairs *row,
                                struct error *reterr)
{
    struct strbuf text = {0};
    char model[] = "/tmp/podsim-bench-XXXXXX.json";
    bool const has_model = step->layers > 0;
    enum status status = has_model ? model_write(step, model, reterr) : STATUS_OK;
    bool const is_written = has_model && status == STATUS_OK;
    if (status == STATUS_OK) status = bench_case_text(step, model, &text, reterr);
    comparison->scenario = tmpfile();
    if (status == STATUS_OK && text.failed)
        status = error_set(reterr, STATUS_NO_MEMORY, "--compare", "out of memory");
    if (status == STATUS_OK &&
        (comparison->scenario == NULL ||
         fwrite(text.bytes, 1, text.size_bytes, comparison->scenario) != text.size_bytes ||
         fflush(comparison->scenario) != 0))
        status = fail(errno, reterr);
    if (status == STATUS_OK)
        status = row_compare(comparison, step, share, share_of_pair, row, reterr);
    if (comparison->scenario != NULL) (void)fclose(comparison->scenario);
    if (is_written) (void)unlink(model);
    strbuf_free(&text);
    return status;
}

enum status bench_compare(const struct bench_comparing *comparing, struct worker *worker,
                          struct bench_pairs *ret_rows, uint32_t *ret_count, struct error *reterr)
{
    static char own[PATH_BYTES];
    static struct comparison comparison;
    size_t own_bytes = sizeof own;
    *ret_count = 0;
    STATUS_TRY(other_check(comparing->other, reterr));
    int const code = uv_exepath(own, &own_bytes);
    if (code != 0)
        return error_set(reterr, STATUS_IO, "--compare", "this program: %s", uv_strerror(code));
    comparison = (struct comparison){.comparing = comparing, .worker = worker};
    comparison.side[0].program = own;
    comparison.side[1].program = comparing->other;
    comparison.side[0].like_early = comparison.side[1].is_early = comparing->early;
    for (uint32_t i = 0; i < bench_case_count; i++) {
        if (comparing->quick && !bench_cases[i].quick) continue;
        double const part = 1.0 / bench_case_count;
        STATUS_TRY(step_compare(&comparison, &bench_cases[i], part * i, part / comparing->pairs,
                                &ret_rows[*ret_count], reterr));
        *ret_count += 1;
    }
    return STATUS_OK;
}
