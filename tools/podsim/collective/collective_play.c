/* The runs of `podsim collective`: each in memory of its own, those of one size on one thread. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/collective/algorithm.h"
#include "tools/podsim/collective/collective.h"
#include "tools/podsim/common/worker.h"

/* What one size has come to. */
struct sweep {
    struct collective_study *study; /* Read only, but for the timeline of the one run. */
    struct measure_options run;     /* As asked, and watched. */
    uint32_t thread;
    struct measure_row *rows;     /* Of the study's, from its place on. */
    struct measure_row_run *runs; /* Of the study's, from its place on. */
    uint32_t row_count, run_count, merged_count;
    struct fold fold; /* Of the last run. */
    bool done;
};

static bool watch(void *owner, const struct replay_progress *progress)
{
    struct sweep *sweep = owner;
    double const share = (double)sweep->run_count / sweep->study->asked.algorithm_count;
    return pool_progress(&sweep->study->pool, sweep->thread, share, progress->events);
}

/* The members of one run. */
struct party {
    struct arena *arena; /* Of the choices, which copies to and from the host have none of. */
    const struct measure_row_choice *choice[MEASURE_REQUESTS_MAX];
    uint64_t size_bytes[MEASURE_REQUESTS_MAX];
    int64_t alone_ps[MEASURE_REQUESTS_MAX];
    uint32_t played[MEASURE_REQUESTS_MAX]; /* Which of the measured times is its own. */
};

static bool is_alike(const struct collective_study *study, uint32_t a, uint32_t b)
{
    const struct collective_member *one = &study->member[a], *other = &study->member[b];
    return one->args.operation == other->args.operation && one->size_bytes == other->size_bytes &&
           (a == 0) == (b == 0) &&
           one->args.ragged.expert_count == other->args.ragged.expert_count &&
           group_equal(&one->args.group, &other->args.group);
}

/* A collective, or else a copy, by itself, in memory of its own. */
static enum status one_play(const struct sweep *sweep, const struct measure_row_choice *choice,
                            const struct program_copy *copy, int64_t *ret_ps, struct error *reterr)
{
    struct measured measured;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(reterr, "");
    struct measure_party const party = {.requests = choice == NULL ? NULL : &choice->request,
                                        .request_count = choice != NULL,
                                        .copies = copy,
                                        .copy_count = choice == NULL};
    enum status const status = measure_party_run(arena, &sweep->study->asked.machine, &party,
                                                 "--algorithm", &sweep->run, &measured, reterr);
    if (status == STATUS_OK) *ret_ps = measured.time_ps[0];
    arena_destroy(arena);
    return status;
}

/* How long each takes by itself; copies are simulated once. */
static enum status alone_play(const struct sweep *sweep, struct party *party, struct error *reterr)
{
    const struct collective_study *study = sweep->study;
    for (uint32_t i = 0; i < study->member_count; i++) {
        uint32_t like = 0;
        while (like < i && !is_alike(study, like, i)) like++;
        party->alone_ps[i] = party->alone_ps[like];
        if (like != i) continue;
        struct program_copy const copy =
            measure_row_copy(&study->member[i].args, party->size_bytes[i]);
        STATUS_TRY(one_play(sweep, party->choice[i], &copy, &party->alone_ps[i], reterr));
    }
    return STATUS_OK;
}

/* The runners-up of the last row, where they are wanted. */
static enum status runners_play(const struct sweep *sweep, const struct party *party,
                                struct measure_row *row, struct error *reterr)
{
    if (!sweep->study->plays_runners || party->choice[0] == NULL) return STATUS_OK;
    const struct choose_ranking *ranking = party->choice[0]->ranking;
    for (uint32_t i = 0; i < row->runner_count; i++) {
        const struct measure_row_choice *choice = NULL;
        STATUS_TRY(measure_row_choose_other(party->arena, row->args, row->size_bytes,
                                            &ranking->candidate[i + 1], "--algorithm", &choice,
                                            reterr));
        STATUS_TRY(one_play(sweep, choice, NULL, &row->runner[i].time_ps, reterr));
    }
    return STATUS_OK;
}

static enum status run_note(struct sweep *sweep, const struct party *party,
                            const struct measured *measured, struct error *reterr)
{
    const struct collective_study *study = sweep->study;
    struct measure_row_run *run = &sweep->runs[sweep->run_count];
    *run = (struct measure_row_run){
        .size_bytes = party->size_bytes[0],
        .row_first = sweep->row_count,
        .row_count = study->member_count,
        .time_ps = measured->trace.step_ps,
        .events = measured->trace.work.events,
        .transfers = measured->trace.work.transfers,
        .digest = measured->trace.digest,
    };
    memcpy(run->link, measured->trace.link, sizeof run->link);
    struct measure_row *rows = &sweep->rows[run->row_first];
    for (uint32_t i = 0; i < study->member_count; i++) {
        const struct measure_row_args *args = &study->member[i].args;
        int64_t const time_ps = measured->time_ps[party->played[i]];
        int64_t const alone_ps = study->member_count > 1 ? party->alone_ps[i] : time_ps;
        if (party->choice[i] == NULL) {
            measure_row_fill_copy(args, party->size_bytes[i], time_ps, alone_ps, &rows[i]);
            continue;
        }
        const struct plan *plan = &measured->plans[party->played[i]];
        measure_row_fill(args, party->size_bytes[i], party->choice[i], plan, time_ps, alone_ps,
                         &rows[i]);
        if (study->checks) STATUS_TRY(measure_row_prove(plan, &rows[i], reterr));
    }
    STATUS_TRY(runners_play(sweep, party, &rows[0], reterr));
    run->fairness = measure_row_fairness(rows, run->row_count);
    sweep->fold = measured->fold;
    sweep->run_count++;
    sweep->row_count += study->member_count;
    return STATUS_OK;
}

static enum status party_play(struct sweep *sweep, struct party *party, uint64_t size_bytes,
                              const struct algorithm *algorithm, struct error *reterr)
{
    struct collective_study *study = sweep->study;
    struct plan_request requests[MEASURE_REQUESTS_MAX];
    struct program_copy copies[MEASURE_REQUESTS_MAX];
    struct measure_party played = {.requests = requests, .copies = copies};
    struct measured measured;
    bool const shifts =
        study->asked.row.operation == MEASURE_SENDRECV && algorithm_is_chosen(algorithm);
    const char *const where = shifts ? "--shift" : "--algorithm";
    for (uint32_t i = 0; i < study->member_count; i++) {
        const struct collective_member *member = &study->member[i];
        party->size_bytes[i] = member->size_bytes == 0 ? size_bytes : member->size_bytes;
        if (measure_op_is_copy(member->args.operation)) {
            uint64_t unused = 0;
            STATUS_TRY(measure_op_array_bytes(
                member->args.operation, group_rank_count(&member->args.group), party->size_bytes[i],
                "--concurrent", &unused, reterr));
            party->played[i] = played.copy_count;
            copies[played.copy_count++] = measure_row_copy(&member->args, party->size_bytes[i]);
            continue;
        }
        STATUS_TRY(measure_row_choose(party->arena, &member->args, party->size_bytes[i],
                                      i == 0 ? algorithm : NULL, i == 0 ? where : "--concurrent",
                                      &party->choice[i], reterr));
        party->played[i] = played.request_count;
        requests[played.request_count++] = party->choice[i]->request;
    }
    for (uint32_t i = 0; i < study->member_count; i++)
        if (party->choice[i] == NULL) party->played[i] += played.request_count;
    if (study->member_count > 1) STATUS_TRY(alone_play(sweep, party, reterr));
    struct measure_options options = sweep->run;
    options.count_waits = true;
    options.shown_chips = study->shown.chip;
    options.shown_count = study->shown.count;
    STATUS_TRY(measure_party_run(party->arena, &study->asked.machine, &played,
                                 study->member_count > 1 ? "--concurrent" : where, &options,
                                 &measured, reterr));
    STATUS_TRY(collective_write_trace(party->arena, study, &measured, reterr));
    return run_note(sweep, party, &measured, reterr);
}

static enum status run_play(struct sweep *sweep, uint64_t size_bytes,
                            const struct algorithm *algorithm, struct error *reterr)
{
    struct party party = {.arena = arena_create(0)};
    if (party.arena == NULL) return error_no_memory(reterr, "");
    enum status const status = party_play(sweep, &party, size_bytes, algorithm, reterr);
    arena_destroy(party.arena);
    return status;
}

/* The plans of one size that have been simulated by name. */
struct namesakes {
    struct arena *arena;
    const struct plan *plan[COLLECTIVE_ALGORITHMS_MAX];
    uint32_t count;
};

/* Whether a name means a plan that another name was simulated for; "auto" asks for one, and is no
 * name. Tokens are not drawn once more for it. */
static enum status name_is_repeated(const struct collective_study *study,
                                    struct namesakes *namesakes, uint64_t size_bytes,
                                    const struct algorithm *algorithm, bool *ret_repeated,
                                    struct error *reterr)
{
    const struct measure_row_args *args = &study->member[0].args;
    const struct measure_row_choice *choice = NULL;
    void *memory = NULL;
    *ret_repeated = false;
    if (study->asked.algorithm_count == 1 || algorithm_is_chosen(algorithm) ||
        args->script != NULL || args->ragged.expert_count > 0 ||
        measure_op_is_copy(args->operation))
        return STATUS_OK;
    STATUS_TRY(measure_row_choose(namesakes->arena, args, size_bytes, algorithm, "--algorithm",
                                  &choice, reterr));
    struct plan_request request = choice->request;
    plan_request_links(args->machine, &request);
    STATUS_TRY(arena_try(namesakes->arena, 1, sizeof(struct plan), &memory, reterr));
    struct plan *plan = memory;
    STATUS_TRY(plan_build(namesakes->arena, &request, "--algorithm", plan, reterr));
    for (uint32_t i = 0; i < namesakes->count && !*ret_repeated; i++)
        *ret_repeated = choose_is_same(namesakes->plan[i], plan);
    if (!*ret_repeated) namesakes->plan[namesakes->count++] = plan;
    return STATUS_OK;
}

/* Each algorithm that was asked for, at one size. */
static enum status algorithms_play(struct sweep *sweep, struct namesakes *namesakes,
                                   uint64_t size_bytes, struct error *reterr)
{
    const struct collective_study *study = sweep->study;
    for (uint32_t i = 0; i < study->asked.algorithm_count; i++) {
        const struct algorithm *algorithm = &study->asked.algorithm[i];
        bool repeated = false;
        STATUS_TRY(worker_check(study->worker, reterr));
        STATUS_TRY(name_is_repeated(study, namesakes, size_bytes, algorithm, &repeated, reterr));
        if (repeated)
            sweep->merged_count++;
        else
            STATUS_TRY(run_play(sweep, size_bytes, algorithm, reterr));
    }
    return STATUS_OK;
}

/* All sizes, and what each has come to. */
struct sweeps {
    struct collective_study *study;
    struct sweep *sweep;  /* [size] */
    uint64_t *size_bytes; /* [size] */
    uint32_t count;
};

static enum status size_play(void *owner, uint32_t index, uint32_t thread, struct error *reterr)
{
    const struct sweeps *sweeps = owner;
    struct collective_study *study = sweeps->study;
    struct sweep *sweep = &sweeps->sweep[index];
    uint32_t const first = index * study->asked.algorithm_count;
    struct namesakes namesakes = {.arena = arena_create(0)};
    if (namesakes.arena == NULL) return error_no_memory(reterr, "");
    *sweep = (struct sweep){.study = study,
                            .run = study->asked.run,
                            .thread = thread,
                            .rows = &study->rows[first * study->member_count],
                            .runs = &study->runs[first]};
    sweep->run.watch = watch;
    sweep->run.watch_owner = sweep;
    enum status const status =
        algorithms_play(sweep, &namesakes, sweeps->size_bytes[index], reterr);
    sweep->done = status == STATUS_OK;
    arena_destroy(namesakes.arena);
    return status;
}

/* Rows and runs without gaps, up to those of the first size that is not done. */
static void sweeps_take(const struct sweeps *sweeps)
{
    struct collective_study *study = sweeps->study;
    for (uint32_t i = 0; i < sweeps->count && (i == 0 || sweeps->sweep[i - 1].done); i++) {
        const struct sweep *sweep = &sweeps->sweep[i];
        for (uint32_t r = 0; r < sweep->run_count; r++) {
            struct measure_row_run *run = &study->runs[study->run_count++];
            *run = sweep->runs[r];
            run->row_first += study->row_count;
        }
        if (sweep->run_count > 0) {
            memmove(&study->rows[study->row_count], sweep->rows,
                    sweep->row_count * sizeof *sweep->rows);
            study->fold = sweep->fold;
        }
        study->row_count += sweep->row_count;
        study->run_count_max -= sweep->merged_count;
        study->merged_count += sweep->merged_count;
    }
}

enum status collective_play(void *owner, struct worker *worker, struct error *reterr)
{
    struct collective_study *study = owner;
    struct sweeps sweeps = {.study = study, .count = sizes_count(&study->sizes)};
    void *memory = NULL;
    uint64_t bytes = 0;
    study->worker = worker;
    STATUS_TRY(arena_try(study->arena, sweeps.count, sizeof *sweeps.sweep, &memory, reterr));
    sweeps.sweep = memory;
    STATUS_TRY(arena_try(study->arena, sweeps.count, sizeof *sweeps.size_bytes, &memory, reterr));
    sweeps.size_bytes = memory;
    for (uint32_t i = 0; sizes_next(&study->sizes, &bytes); i++) sweeps.size_bytes[i] = bytes;
    pool_open(&study->pool, worker, study->thread_count);
    struct parallel const parallel = pool_parallel(&study->pool);
    struct parallel_work const work = {
        .part = size_play, .owner = &sweeps, .part_count = sweeps.count, .share_end = 1};
    enum status const status = parallel_run(&parallel, &work, reterr);
    sweeps_take(&sweeps);
    return status;
}
