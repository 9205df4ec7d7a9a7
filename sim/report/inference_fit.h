/*
 * inference_fit.h: how many sequences memory has room for, and on how few chips a step would fit.
 */
#ifndef SIM_REPORT_INFERENCE_FIT_H
#define SIM_REPORT_INFERENCE_FIT_H

#include "sim/report/report.h"
#include "sim/report/smallest_slice.h"

/* With one reading of what HBM holds. */
struct inference_fit {
    bool has_cache;     /* Sequences leave rows behind, which limit their number. */
    uint64_t max_batch; /* Sequences as found; else as long as the mean one, with buffers that grow
                           so. */
    bool is_estimate;   /* `max_batch` is an estimate: it may not fit, or more may. */
    struct report_refused refused; /* The end of `max_batch`, if memory is not. */
    bool with_prompts; /* `max_batch` is of sequences that answer, while as many prompts stay. */
    struct smallest_slice smallest;
    bool is_tried;          /* A layout of the step fits this slice. */
    bool slice_is_estimate; /* The smallest slice may hold more than is known, and not fit. */
    bool of_gpus;
};

/* Sequences of the mean length that could step together. */
struct inference_room {
    uint64_t least; /* Buffers stay as large as they are. */
    uint64_t most;  /* Buffers shrink with the sequences. */
};

/* Of a step that does not fit: one of its chips, at its peak, has `peak_bytes`. Some buffers shrink
 * with fewer sequences and some stay, so that what would fit lies from least to most. */
struct inference_room inference_room(const struct machine *machine, const struct roofline *roofline,
                                     double peak_bytes);

/* Sequences as long as the mean one that fit chips with HBM of `hbm_bytes`, as a step's memory lets
 * expect: buffers grow as the cache does. */
uint64_t inference_batch_expected(const struct report_input *input, uint64_t hbm_bytes);

/* Bytes of weights and cache that `chip_count` chips hold together, with the padding of their
 * shares: never less than one chip. */
struct inference_whole {
    double (*bytes)(const void *owner, uint64_t chip_count);
    const void *owner;
};

/* `hbm_bytes` of a chip. The smallest slice, until layouts are tried, is the one with fewest chips,
 * among those that the product can be sliced into, whose chips have room for a share of the model's
 * weights and of the step's cache each, evenly divided, with the buffers that a chip has here. */
struct inference_fit inference_fit_of(const struct report_input *input,
                                      const struct inference_whole *whole, uint64_t hbm_bytes);

/* What was found takes the place of what one step's memory lets expect: of both readings. */
void inference_fit_found(const struct report_largest *largest, struct inference_fit *fit,
                         struct inference_fit *fit_of_gib);
/* Slices that were tried take the place of the slice that one step lets expect, for one reading. */
void inference_fit_tried(const struct report_slice *slice, struct inference_fit *fit);

#endif
