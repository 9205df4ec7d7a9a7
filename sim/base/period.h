/*
 * period.h: how far apart steps end that follow one another without a barrier: each place begins
 * its next step as soon as it has ended its own last one.
 *
 * The ends are rows over places: row 0 holds the starts, row k the ends of step k. Steps repeat
 * with a cycle of c steps once, at every place, the last c steps took as long as the c before them,
 * and as long as at every other place. The cycle is 1 in nearly all cases; it is 2 where two
 * microbatches of unlike ranks take turns in going first.
 */
#ifndef SIM_BASE_PERIOD_H
#define SIM_BASE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

struct period {
    int64_t time;   /* From one end to the next, in the unit of the ends; a mean over the cycle. */
    uint32_t steps; /* Steps that were simulated; 0: the period was not asked for. */
    uint32_t cycle; /* Steps until everything repeats; 0: the steps did not repeat. */
    int64_t spread; /* Without a cycle: the difference between the longest and the shortest of the
                       last two steps of any place. */
};

/* Whether `steps` steps end in a repetition; `ends` has a row more. */
bool period_find(const int64_t *ends, uint32_t places, uint32_t steps, struct period *ret_period);

/* The period that period_find() finds; if there is none, the mean of the later half of the steps,
 * between the last ends. At least one step. */
struct period period_of(const int64_t *ends, uint32_t places, uint32_t steps);

#endif
