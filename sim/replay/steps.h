/*
 * steps.h: further steps after the first, without a barrier, until their period is known.
 *
 * A chip begins its next step at the instant at which all of its streams have ended the previous
 * one, whatever other chips do. Only messages and collectives keep the steps of two chips together.
 * Everything that a stream counts, a chip counts anew in each step: parts, slots, messages of other
 * ranks. What came early for the next step stays where it is: in the lanes of collectives, and in
 * the count of messages, of which those of the ended step are taken away.
 *
 * The run of several steps gives instants and nothing else: breakdown, memory and links are those
 * of the step by itself.
 */
#ifndef SIM_REPLAY_STEPS_H
#define SIM_REPLAY_STEPS_H

#include <stdint.h>

#include "sim/base/period.h"
#include "sim/replay/replay.h"

struct replay;

struct steps {
    uint32_t max;         /* Most steps in a row; 0: the single step only. */
    int64_t *finished_ps; /* [chip]: when the chip has ended; TIME_PS_NEVER: not yet. */
    uint32_t *ended;      /* [chip] */
    int64_t *end_ps;      /* [step, from 1][chip]; [0]: the starts. */
    uint32_t chips_ended[REPLAY_STEPS_MAX + 1]; /* [step, from 1]: chips that have ended it. */
    struct period period;                       /* Valid once it is found. */
    uint32_t foreseen;                          /* Steps of it that were not simulated. */
    bool any_ended;                             /* Some chip has ended a step. */
    bool pauses; /* The run of the single step stops when the first chip has ended it. */
};

/* Every stream of the chip has come to its end. */
void steps_end(struct replay *replay, uint32_t chip, int64_t now_ps);
/* The chip starts a step: its counters are reset, unless the step is its first. */
void steps_begin(struct replay *replay, uint32_t chip);
/* All from here on comes again `period_ps` later as it came `cycle` steps ago. Whether the period
 * follows: it is found in the ends that steps will have, before a chip lacks the step behind the
 * last one. */
bool steps_foresee(struct replay *replay, uint32_t cycle, int64_t period_ps);
/* Copies the counts of a prefix fold into the whole run. */
void steps_continue(const struct replay *prefix, struct replay *whole, uint32_t factor);

#endif
