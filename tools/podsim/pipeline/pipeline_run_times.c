#include "tools/podsim/pipeline/pipeline_run_times.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

/* Passes of one kind, of one stage in one copy of the model. */
struct tally {
    int64_t sum_ps;
    int64_t count;
};

enum { PAIR = SCHEDULE_KIND_COUNT, TALLIES };

static void tally_add(struct tally *tally, int64_t duration_ps)
{
    tally->sum_ps += duration_ps;
    tally->count++;
}

static int64_t mean_ps(const struct tally *tally)
{
    return tally->count == 0 ? 0 : tally->sum_ps / tally->count;
}

/* Adds the mean of one stage to a mean over stages. */
static void stage_add(struct tally *of_stages, const struct tally *of_stage)
{
    if (of_stage->count > 0) tally_add(of_stages, mean_ps(of_stage));
}

/* A stage's passes lie on one rank, those of the other copy on another. */
static struct tally *tallies_of(struct tally (*tallies)[TALLIES], const struct schedule *schedule,
                                const struct schedule_pass *pass)
{
    uint32_t const copy = pass->microbatch / (schedule->microbatch_count / schedule->copy_count);
    return tallies[copy * schedule->stage_count + pass->stage];
}

static void rank_tally(struct tally (*tallies)[TALLIES], const struct schedule *schedule,
                       uint32_t rank, const struct trace_role *role)
{
    const struct schedule_rank *list = &schedule->rank[rank];
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_pass *pass = &list->pass[i];
        struct tally *of = tallies_of(tallies, schedule, pass);
        /* A pass without ops, of an empty stage, may be the last of the list. */
        int64_t duration_ps = i < role->pass_count ? role->pass_ps[i] : 0;
        if (pass->paired) {
            i++;
            duration_ps += i < role->pass_count ? role->pass_ps[i] : 0;
        }
        tally_add(&of[pass->paired ? PAIR : pass->kind], duration_ps);
    }
}

enum status pipeline_run_times_measure(struct arena *arena, const struct schedule *schedule,
                                       const struct trace_role *roles,
                                       struct schedule_times *ret_times, struct error *reterr)
{
    uint32_t const stages = schedule->stage_count * schedule->copy_count;
    struct tally mean[TALLIES] = {{0}}, backward = {0};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, stages, sizeof(struct tally[TALLIES]), &memory, reterr));
    struct tally(*tallies)[TALLIES] = memory;
    for (uint32_t r = 0; r < schedule->rank_count; r++) rank_tally(tallies, schedule, r, &roles[r]);
    for (uint32_t s = 0; s < stages; s++) {
        const struct tally *of = tallies[s];
        struct tally const whole_and_halves = {
            .sum_ps = of[SCHEDULE_BACKWARD].sum_ps + of[SCHEDULE_INPUT].sum_ps +
                      of[SCHEDULE_WEIGHT].sum_ps,
            .count = of[SCHEDULE_BACKWARD].count + of[SCHEDULE_WEIGHT].count};
        for (uint32_t kind = 0; kind < TALLIES; kind++) stage_add(&mean[kind], &of[kind]);
        stage_add(&backward, &whole_and_halves);
    }
    int64_t const input_ps = mean_ps(&mean[SCHEDULE_INPUT]);
    int64_t const split_ps = input_ps + mean_ps(&mean[SCHEDULE_WEIGHT]);
    int64_t const backward_ps = mean_ps(&backward);
    *ret_times = (struct schedule_times){.forward = mean_ps(&mean[SCHEDULE_FORWARD]),
                                         .input = backward_ps / 2,
                                         .pair = mean_ps(&mean[PAIR])};
    if (split_ps > 0)
        ret_times->input =
            (int64_t)((units_wide)(uint64_t)backward_ps * (uint64_t)input_ps / (uint64_t)split_ps);
    ret_times->weight = backward_ps - ret_times->input;
    return STATUS_OK;
}
