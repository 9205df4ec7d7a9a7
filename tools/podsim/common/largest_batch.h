/*
 * largest_batch.h: the most sequences that fit a step of inference, by what a chip holds with each
 * number of them.
 */
#ifndef TOOLS_PODSIM_COMMON_LARGEST_BATCH_H
#define TOOLS_PODSIM_COMMON_LARGEST_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

enum {
    LARGEST_BATCH_MOST = 1 << 20, /* The largest batch of a scenario. */
    LARGEST_BATCH_KNOWN_MAX = 64,
};

/* A batch, and what a chip holds of it. */
struct batch_held {
    uint64_t batch;
    double bytes; /* Bytes of a chip at least; INFINITY: the batch cannot be. */
    bool is_peak; /* The chip holds no more than `bytes` at any time. */
};

/* What is known of batches; searches for several amounts of memory share it. */
struct largest_batch {
    struct batch_held known[LARGEST_BATCH_KNOWN_MAX];
    uint32_t known_count;
    /* Batches up to a multiple of it hold about as much as the multiple, on ranks that have equally
     * many sequences each; 0: nothing is known of that. It is a guess, which is checked. */
    uint64_t step;
    uint64_t part; /* A search ends where fewer batches than one in `part` may fit, too; 0: one. */
    uint64_t refused; /* The batch that the last search ended at and that cannot be; 0: another. */
    bool peaks_are_higher; /* A search has seen it, so that the next one looks at peaks at once. */
    /* Fills bytes and is_peak of a batch. If `plays`, the peak is found of a batch that holds at
     * least no more than `hbm_bytes`, or, if that is more, what it holds at some time; else it
     * may be what the batch holds at least, which is known without a run. */
    enum status (*held_find)(void *owner, double hbm_bytes, bool plays, struct batch_held *held,
                             struct error *reterr);
    void *owner;
};

/* Of one batch both may be added: first what it holds at least, then its peak. */
void largest_batch_add(struct largest_batch *search, const struct batch_held *held);

/* Finds the batch that fits `hbm_bytes` while the next one does not, or is more than a scenario can
 * have; of an estimate one that is about as large; 0: none fits. Looks at `first` first, if it is
 * not 0 and what is known lets expect nothing. Batches are looked for by what they hold at least,
 * and then, where peaks may be higher, by their peaks. Errors are those of held_find(). */
enum status largest_batch_find(struct largest_batch *search, double hbm_bytes, uint64_t first,
                               uint64_t *ret_batch, struct error *reterr);

#endif
