/*
 * nearest.h: what would have divided: the valid numbers next to one that is refused, as text for
 * the sentence that refuses it. Internal to sim/step.
 */
#ifndef SIM_STEP_NEAREST_H
#define SIM_STEP_NEAREST_H

#include <stdint.h>

#include "sim/step/local.h"

enum { NEAREST_TEXT_BYTES = 64 };

/* "1020 and 1024": multiples of `by` below and above. Returns `text`. */
const char *nearest_multiples(uint64_t amount, uint64_t by, char text[NEAREST_TEXT_BYTES]);

/* Values of batch_tokens that microbatches, sequences and data ranks split evenly. */
const char *nearest_batch(const struct local *local, char text[NEAREST_TEXT_BYTES]);

/* The greatest value that fits and is `most` or less; 0: there is none. */
uint64_t nearest_batch_below(const struct local *local, uint64_t most);

/* What does divide the amount, nearest to `by`. */
const char *nearest_divisors(uint64_t amount, uint64_t by, char text[NEAREST_TEXT_BYTES]);

/*
 * Whether the data ranks share the sequences of a microbatch evenly. They are b times t ranks,
 * each with 1/b of the sequences and 1/t of the tokens of each, where b is the greatest divisor of
 * both numbers: 768 sequences on 4,096 ranks are three on each of 256, shared by 16. `ret_parts` is
 * t, whose ranks are neighbours in `ret_role`, and 1 with cp, which splits sequences by itself.
 */
bool nearest_sequences_split(const struct local *local, uint64_t sequences, uint32_t *ret_parts,
                             enum mesh_role *ret_role);

#endif
