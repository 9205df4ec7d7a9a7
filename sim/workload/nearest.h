/*
 * nearest.h: what would have divided: the valid numbers next to one that is refused, as text for
 * the sentence that refuses it. Internal to sim/workload.
 */
#ifndef SIM_WORKLOAD_NEAREST_H
#define SIM_WORKLOAD_NEAREST_H

#include <stdint.h>

#include "sim/workload/local.h"

enum { NEAREST_TEXT_BYTES = 64 };

/* "1020 and 1024": multiples of `by` below and above. Returns `text`. */
const char *nearest_multiples(uint64_t amount, uint64_t by, char text[NEAREST_TEXT_BYTES]);

/* Numbers of tp ranks that split the model's heads, next to the mesh's. */
const char *nearest_tp(const struct local *local, char text[NEAREST_TEXT_BYTES]);

/* Values of batch_tokens that microbatches, sequences and data ranks split evenly. */
const char *nearest_batch(const struct local *local, char text[NEAREST_TEXT_BYTES]);

/* The greatest of them that is `most` or less; 0: there is none. */
uint64_t nearest_batch_below(const struct local *local, uint64_t most);

/* Whether the model's heads and KV heads can be split over so many ranks. */
/* What does divide the amount, beside `by`. */
const char *nearest_divisors(uint64_t amount, uint64_t by, char text[NEAREST_TEXT_BYTES]);
bool nearest_tp_splits(const struct model *model, uint64_t tp);

/* Whether a microbatch of so many sequences gives each data rank whole ones, or ranks of one role
 * equal parts of one. */
bool nearest_sequences_split(const struct local *local, uint64_t sequences);

#endif
