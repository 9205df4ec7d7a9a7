/*
 * overheads.h: what training frameworks hold on a GPU on top of the bytes that the book counts,
 * with `"memory": "framework"`: Megatron-LM with Transformer Engine, or where parameters are
 * sharded (fsdp, zero 3) PyTorch's FSDP2. Each is a kind of memory of its own in programs, reports
 * and timelines; docs/measured-memory.md says what is held, and which code says so. None of them
 * takes time. Internal to sim/step.
 */
#ifndef SIM_STEP_OVERHEADS_H
#define SIM_STEP_OVERHEADS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"
#include "sim/program/program.h"

struct ranks;

/* Elements that one chip has of a bucket: of parameters, of moments, of gradients. */
struct bucket_shares {
    uint64_t kept, state, gradients;
};

/* Whether the step is counted as frameworks hold it; and as which of the two. */
bool overheads_count(const struct ranks *ranks);
bool overheads_of_fsdp(const struct ranks *ranks);

/* Whether shards are in fp32, and so are their own master weights. */
bool overheads_of_wide_shards(const struct ranks *ranks);

/* Bytes of rows, of elements on one chip. 0 where they are not counted. */
enum format overheads_gradient_format(const struct ranks *ranks);
uint64_t overheads_gradient_bytes(const struct ranks *ranks, uint64_t elements);
uint64_t overheads_autograd_bytes(const struct ranks *ranks, uint64_t elements);
uint64_t overheads_loss_bytes(const struct ranks *ranks, uint64_t logits);
uint64_t overheads_gathered_bytes(const struct ranks *ranks, uint64_t elements);
uint64_t overheads_reduced_bytes(const struct ranks *ranks, uint64_t elements);

/* Held from the first instant to the last: by a bucket, `times` over; and by a chip with
 * `layers[kind]` layers of each kind. Both are added to `resident`. */
void overheads_bucket(const struct ranks *ranks, const struct bucket_shares *shares, uint64_t times,
                      uint64_t resident[PROGRAM_MEMORY_COUNT]);
void overheads_chip(const struct ranks *ranks, const uint64_t *layers,
                    uint64_t resident[PROGRAM_MEMORY_COUNT]);

#endif
