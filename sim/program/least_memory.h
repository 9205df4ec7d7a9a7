/*
 * least_memory.h: what a step holds at least, known before it is simulated.
 *
 * Ops of the compute stream follow each other in the order of the program, so what they take and
 * give back of memory is known without their instants; and what others have taken is known where
 * one of them waits for it. Kinds of memory that others give back (offloading), or take long before
 * anything waits, count only as far as they are there from the start.
 */
#ifndef SIM_PROGRAM_LEAST_MEMORY_H
#define SIM_PROGRAM_LEAST_MEMORY_H

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/program/program.h"

struct arena;

/* Of the role that holds most. */
struct least_memory {
    uint32_t role;
    uint64_t bytes[PROGRAM_MEMORY_COUNT]; /* At the highest point. */
    uint64_t total_bytes;
    bool is_peak; /* The role never holds more: its ops follow one another on all streams. */
};

enum status least_memory_of(struct arena *arena, const struct program *program,
                            struct least_memory *ret_least, struct error *reterr);

#endif
