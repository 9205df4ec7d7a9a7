/*
 * suggest.h: what would have divided: the valid numbers next to one that is refused, as text for
 * the sentence that refuses it. Internal to sim/step.
 */
#ifndef SIM_STEP_SUGGEST_H
#define SIM_STEP_SUGGEST_H

#include <stdint.h>

#include "sim/step/ranks.h"

enum { SUGGEST_TEXT_BYTES = 96 };

/* "1020 and 1024": multiples of `by` below and above. Returns `text`. */
const char *suggest_multiples(uint64_t amount, uint64_t by, char text[SUGGEST_TEXT_BYTES]);

/* "the nearest batch_tokens that fit: 992 and 1008": microbatches, sequences and data ranks split
 * them evenly, without many more ranks on a sequence than there have to be, if there is such a
 * number. It may be that none fit. */
const char *suggest_batch(const struct ranks *ranks, char text[SUGGEST_TEXT_BYTES]);

/* The greatest value that fits and is `most` or less; 0: there is none. */
uint64_t suggest_batch_below(const struct ranks *ranks, uint64_t most);

/* What does divide the amount, nearest to `by`. */
const char *suggest_divisors(uint64_t amount, uint64_t by, char text[SUGGEST_TEXT_BYTES]);

/*
 * Whether the data ranks share the sequences of a microbatch evenly. They are b times t ranks,
 * each with 1/b of the sequences and 1/t of the tokens of each, where b is the greatest divisor of
 * both numbers: 768 sequences on 4,096 ranks are three on each of 256, shared by 16. `ret_parts` is
 * t, whose ranks are neighbours in `ret_role`, and 1 with cp, which splits sequences by itself.
 */
bool suggest_sequences_split(const struct ranks *ranks, uint64_t sequences, uint32_t *ret_parts,
                             enum mesh_role *ret_role);

#endif
