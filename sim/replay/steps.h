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

#include "sim/replay/replay_internal.h"

/* Every stream of the chip has come to its end. */
void steps_end(struct replay *replay, uint32_t chip, int64_t now_ps);
/* The chip starts a step: its counters are reset, unless the step is its first. */
void steps_begin(struct replay *replay, uint32_t chip);
/* Copies the counts of an early fold into the whole run. */
void steps_spread(const struct replay *early, struct replay *whole, uint32_t factor);

#endif
