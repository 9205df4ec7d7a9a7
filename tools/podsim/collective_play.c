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
    struct arena *arena; /* Of the choices. */
    const struct row_choice *choice[MEASURE_REQUESTS_MAX];
    uint64_t size_bytes[MEASURE_REQUESTS_MAX];
    int64_t alone_ps[MEASURE_REQUESTS_MAX];
};

static bool is_alike(const struct collective_study *study, uint32_t a, uint32_t b)
{
    const struct collective_member *one = &study->member[a], *other = &study->member[b];
    return one->question.operation == other->question.operation &&
           one->size_bytes == other->size_bytes && (a == 0) == (b == 0) &&
           one->question.ragged.expert_count == other->question.ragged.expert_count &&
           group_equal(&one->question.group, &other->question.group);
}

/* One choice by itself, in memory of its own. */
static enum status one_play(struct collective_study *study, const struct row_choice *choice,
                            int64_t *ret_ps, struct error *reterr)
{
    struct measured measured;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status const status = measure_run(arena, &study->asked.machine, &choice->request, 1,
                                           "--algorithm", &study->asked.run, &measured, reterr);
    if (status == STATUS_OK) *ret_ps = measured.time_ps[0];
    arena_destroy(arena);
    return status;
}

/* How long each takes by itself; copies are played once. */
static enum status alone_play(struct collective_study *study, struct party *party,
                              struct error *reterr)
{
    for (uint32_t i = 0; i < study->member_count; i++) {
        uint32_t like = 0;
        while (like < i && !is_alike(study, like, i)) like++;
        party->alone_ps[i] = party->alone_ps[like];
        if (like == i) STATUS_TRY(one_play(study, party->choice[i], &party->alone_ps[i], reterr));
    }
    return STATUS_OK;
}

/* The runners-up of the last row, where they are wanted. */
static enum status runners_play(struct collective_study *study, const struct party *party,
                                struct row *row, struct error *reterr)
{
    const struct choose_ranking *ranking = party->choice[0]->ranking;
    if (!study->plays_runners) return STATUS_OK;
    for (uint32_t i = 0; i < row->runner_count; i++) {
        const struct row_choice *choice = NULL;
        STATUS_TRY(row_choose_other(party->arena, row->question, row->size_bytes,
                                    &ranking->candidate[i + 1], "--algorithm", &choice, reterr));
        STATUS_TRY(one_play(study, choice, &row->runner[i].time_ps, reterr));
    }
    return STATUS_OK;
}

static enum status run_note(struct collective_study *study, const struct party *party,
                            const struct measured *measured, struct error *reterr)
{
    struct row_run *run = &study->runs[study->run_count];
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
    struct row *rows = &study->rows[run->row_first];
    for (uint32_t i = 0; i < study->member_count; i++) {
        int64_t const time_ps = measured->time_ps[i];
        row_fill(&study->member[i].question, party->size_bytes[i], party->choice[i],
                 &measured->plans[i], time_ps,
                 study->member_count > 1 ? party->alone_ps[i] : time_ps, &rows[i]);
        if (study->checks) STATUS_TRY(row_prove(&measured->plans[i], &rows[i], reterr));
    }
    STATUS_TRY(runners_play(study, party, &rows[0], reterr));
    run->fairness = row_fairness(rows, run->row_count);
    study->fold = measured->fold;
    study->run_count++;
    study->row_count += study->member_count;
    return STATUS_OK;
}

static enum status party_play(struct collective_study *study, struct party *party,
                              uint64_t size_bytes, const char *algorithm, struct error *reterr)
{
    struct plan_request requests[MEASURE_REQUESTS_MAX];
    struct measured measured;
    bool const shifts =
        study->asked.row.operation == OPERATION_SENDRECV && strcmp(algorithm, "auto") == 0;
    const char *const where = shifts ? "--shift" : "--algorithm";
    for (uint32_t i = 0; i < study->member_count; i++) {
        const struct collective_member *member = &study->member[i];
        party->size_bytes[i] = member->size_bytes == 0 ? size_bytes : member->size_bytes;
        STATUS_TRY(row_choose(party->arena, &member->question, party->size_bytes[i],
                              i == 0 ? algorithm : NULL, i == 0 ? where : "--concurrent",
                              &party->choice[i], reterr));
        requests[i] = party->choice[i]->request;
    }
    if (study->member_count > 1) STATUS_TRY(alone_play(study, party, reterr));
    STATUS_TRY(measure_run(party->arena, &study->asked.machine, requests, study->member_count,
                           study->member_count > 1 ? "--concurrent" : where, &study->asked.run,
                           &measured, reterr));
    return run_note(study, party, &measured, reterr);
}

static enum status run_play(struct collective_study *study, uint64_t size_bytes,
                            const char *algorithm, struct error *reterr)
{
    struct party party = {.arena = arena_create(0)};
    if (party.arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
    enum status const status = party_play(study, &party, size_bytes, algorithm, reterr);
    arena_destroy(party.arena);
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
