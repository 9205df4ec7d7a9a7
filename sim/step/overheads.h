/*
 * overheads.h: what training frameworks hold on a GPU on top of the bytes that the book counts,
 * with `"memory": "framework"`: Megatron-LM with Transformer Engine, or where parameters are
 * sharded (fsdp, zero 3) PyTorch's FSDP2. One row of a table each, a kind of memory of its own in
 * programs, reports and timelines. None of them takes time. Internal to sim/step but for the
 * table.
 */
#ifndef SIM_STEP_OVERHEADS_H
#define SIM_STEP_OVERHEADS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"
#include "sim/program/program.h"

struct ranks;
struct bucket;

struct overhead {
    enum program_memory memory;
    const char *name;   /* As reports have it. */
    const char *what;   /* What is held, and for how long. */
    const char *source; /* The framework's code that says so. */
    bool outside;       /* PyTorch's allocator does not see it, so its statistics lack it. */
};

/* The row of a kind of memory; NULL: it is none of these. */
const struct overhead *overhead_of(enum program_memory memory);

/* Whether the step is counted as frameworks hold it; and as which of the two. */
bool overheads_count(const struct ranks *ranks);
bool overheads_of_fsdp(const struct ranks *ranks);

/* Bytes of rows, of elements on one chip. 0 where they are not counted. */
uint64_t overheads_master_bytes(const struct ranks *ranks, uint64_t kept, uint64_t state);
enum format overheads_gradient_format(const struct ranks *ranks);
uint64_t overheads_gradient_bytes(const struct ranks *ranks, uint64_t elements);
uint64_t overheads_autograd_bytes(const struct ranks *ranks, uint64_t elements);
uint64_t overheads_loss_bytes(const struct ranks *ranks, uint64_t logits);
uint64_t overheads_gathered_bytes(const struct ranks *ranks, uint64_t elements);
uint64_t overheads_reduced_bytes(const struct ranks *ranks, uint64_t elements);

/* Held from the first instant to the last: by a unit of weights, `times` over; and by a chip that
 * has layers of these kinds (LAYER_KINDS). Added. */
void overheads_bucket(const struct ranks *ranks, const struct bucket *bucket, uint64_t times,
                      uint64_t resident[PROGRAM_MEMORY_COUNT]);
void overheads_chip(const struct ranks *ranks, const uint64_t *layers,
                    uint64_t resident[PROGRAM_MEMORY_COUNT]);

#endif
