/* The runs of `podsim collective`: each in memory of its own. */
#include <string.h>

#include "sim/base/arena.h"
#include "tools/podsim/collective.h"
#include "tools/podsim/shell.h"

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct collective_study *study = owner;
    return shell_progress(study->shell, (double)study->run_count / study->run_count_max,
                          progress->events);
}

/* The members of one run. */
struct party {
    struct plan_request request[MEASURE_REQUESTS_MAX];
    uint64_t size_bytes[MEASURE_REQUESTS_MAX];
    int64_t alone_ps[MEASURE_REQUESTS_MAX];
};

static bool is_alike(const struct collective_study *study, uint32_t a, uint32_t b)
{
    const struct collective_member *one = &study->member[a], *other = &study->member[b];
    return one->question.operation == other->question.operation &&
           one->size_bytes == other->size_bytes && (a == 0) == (b == 0) &&
           group_equal(&one->question.group, &other->question.group);
}

/* How long each takes by itself; copies are played once. */
static enum status alone_play(struct collective_study *study, struct party *party,
                              struct error *reterr)
{
    for (uint32_t i = 0; i < study->member_count; i++) {
        struct measured measured;
        uint32_t like = 0;
        while (like < i && !is_alike(study, like, i)) like++;
        if (like < i) {
            party->alone_ps[i] = party->alone_ps[like];
            continue;
        }
        struct arena *arena = arena_create(0);
        if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
        enum status const status = measure_run(arena, &study->asked.machine, &party->request[i], 1,
                                               "--algorithm", &study->asked.run, &measured, reterr);
        party->alone_ps[i] = status == STATUS_OK ? measured.time_ps[0] : 0;
        arena_destroy(arena);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

static void run_note(struct collective_study *study, const struct party *party,
                     const struct measured *measured)
{
    struct row_run *run = &study->runs[study->run_count++];
    *run = (struct row_run){
        .size_bytes = party->size_bytes[0],
        .row_first = study->row_count,
        .row_count = study->member_count,
        .time_ps = measured->trace.step_ps,
        .events = measured->trace.events,
        .transfers = measured->trace.transfers,
        .digest = measured->trace.digest,
    };
    memcpy(run->link, measured->trace.link, sizeof run->link);
    for (uint32_t i = 0; i < study->member_count; i++) {
        int64_t const time_ps = measured->time_ps[i];
        row_fill(&study->member[i].question, party->size_bytes[i], &measured->plans[i], time_ps,
                 study->member_count > 1 ? party->alone_ps[i] : time_ps,
                 &study->rows[study->row_count++]);
    }
    run->fairness = row_fairness(&study->rows[run->row_first], run->row_count);
    study->fold = measured->fold;
}

static enum status run_play(struct collective_study *study, uint64_t size_bytes,
                            const char *algorithm, struct error *reterr)
{
    struct party party;
    struct measured measured;
    for (uint32_t i = 0; i < study->member_count; i++) {
        const struct collective_member *member = &study->member[i];
        party.size_bytes[i] = member->size_bytes == 0 ? size_bytes : member->size_bytes;
        STATUS_TRY(row_request(&member->question, party.size_bytes[i], i == 0 ? algorithm : NULL,
                               i == 0 ? "-e" : "--concurrent", &party.request[i], reterr));
    }
    if (study->member_count > 1) STATUS_TRY(alone_play(study, &party, reterr));
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status const status =
        measure_run(arena, &study->asked.machine, party.request, study->member_count,
                    study->member_count > 1 ? "--concurrent" : "--algorithm", &study->asked.run,
                    &measured, reterr);
    if (status == STATUS_OK) run_note(study, &party, &measured);
    arena_destroy(arena);
    return status;
}

enum status collective_play(void *owner, struct shell *shell, struct error *reterr)
{
    struct collective_study *study = owner;
    study->shell = shell;
    study->asked.run.watch = watch;
    study->asked.run.watch_owner = study;
    for (uint64_t bytes = 0; sizes_next(&study->sizes, &bytes);) {
        for (uint32_t i = 0; i < study->asked.algorithm_count; i++) {
            STATUS_TRY(shell_check(shell, reterr));
            STATUS_TRY(run_play(study, bytes, study->asked.algorithm[i], reterr));
        }
    }
    return STATUS_OK;
}
