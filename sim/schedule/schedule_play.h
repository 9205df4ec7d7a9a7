/*
 * schedule_play.h: a schedule run with given times and nothing but dependencies: no chip, no
 * link, no contention. A hop is pure latency.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_PLAY_H
#define SIM_SCHEDULE_SCHEDULE_PLAY_H

#include "sim/base/period.h"
#include "sim/schedule/schedule.h"

struct schedule_lane {
    int64_t *begin; /* [pass of the list], ticks. */
    int64_t *end;
    int64_t first, last; /* Begin of its first pass, end of its last. */
    int64_t work;        /* Sum of its passes. */
};

struct schedule_played {
    struct schedule_lane *lane; /* [rank] */
    int64_t makespan;
    int64_t bubble_makespan; /* Less the work of the rank that has least. */
    int64_t bubble_busiest;  /* Less the work of the rank that has most. */
    int64_t bubble_per_rank; /* Worst rank: last - first - work. */
};

/* Errors: STATUS_STUCK names the cycle of passes that wait for each other; STATUS_LIMIT if times
 * add up beyond 2^62; STATUS_INTERRUPTED. */
enum status schedule_play(struct arena *arena, const struct schedule *schedule,
                          const struct schedule_times *times, const struct cancel *cancel,
                          const char *where, struct schedule_played *ret_played,
                          struct error *reterr);

/* The schedule again and again, as often as it takes until its period is known, and at most
 * SCHEDULE_STEPS_MAX times, or as often as times have room for: a rank begins the next step when it
 * has ended its own passes of the last. Errors as above. */
enum { SCHEDULE_STEPS_MAX = 64 };
enum status schedule_period(const struct schedule *schedule, const struct schedule_times *times,
                            const struct cancel *cancel, const char *where,
                            struct period *ret_period, struct error *reterr);

/* Whether any backward pass comes in two halves. */
bool schedule_is_split(const struct schedule *schedule);

/* What a pass takes. */
int64_t schedule_pass_ticks(const struct schedule_times *times, enum schedule_kind kind);

/* By how much a pass changes what its rank holds of activations, in millionths of a chunk's: a
 * forward pass takes them when it begins; a backward or weight pass gives them back when it ends,
 * an input gradient all but `kept_ppm`. */
int64_t schedule_pass_change_ppm(enum schedule_kind kind, uint32_t kept_ppm);

/* The most that a rank holds at once. */
uint64_t schedule_peak_ppm(const struct schedule *schedule, uint32_t rank, uint32_t kept_ppm);

#endif
