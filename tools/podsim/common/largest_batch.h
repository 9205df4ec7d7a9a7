/*
 * largest_batch.h: the most sequences that fit a step of inference, by what a chip holds with each
 * number of them.
 */
#ifndef TOOLS_PODSIM_COMMON_LARGEST_BATCH_H
#define TOOLS_PODSIM_COMMON_LARGEST_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum { LARGEST_BATCH_MOST = 1 << 20 }; /* As a scenario has it. */

/* A batch, and what a chip holds of it. */
struct batch_held {
    uint64_t batch;
    double bytes;
    bool is_peak; /* It holds no more at any time. */
};

struct largest_batch {
    double hbm_bytes; /* Of a chip. */
    /* What is known before: `low` fits, or is 0; `high` does not, or is 0 where none is known that
     * does not. `before` fits too, and is less than `low`; 0: there is none. */
    struct batch_held before, low, high;
    /* Fills bytes and is_peak of a batch; of one that cannot be, bytes are INFINITY. `plays`: the
     * peak is asked for. Else it may be what the batch holds at least, which is known without a
     * run. */
    enum status (*held_find)(void *owner, bool plays, struct batch_held *held,
                             struct error *reterr);
    void *owner;
};

/* Searches from `first`, or if it is 0 from what is known, until `low` fits and the batch behind it
 * does not, or is more than a scenario can have: by what batches hold at least, and then, if
 * `may_play` and peaks may be higher, by their peaks. Errors are those of held_find(). */
enum status largest_batch_find(struct largest_batch *search, uint64_t first, bool may_play,
                               struct error *reterr);

#endif
