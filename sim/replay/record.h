/*
 * record.h: what the shown chips do, for a timeline.
 */
#ifndef SIM_REPLAY_RECORD_H
#define SIM_REPLAY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/trace/trace.h"

struct records {
    struct trace_record *record; /* Grows; freed when the run has ended. */
    uint64_t count;
    uint64_t capacity;
    bool failed; /* No memory for more. */
    bool active; /* Some chip is shown. */
};

/* Adds a record of a shown chip, unless memory has run out. */
void record_add(struct records *records, const struct trace_record *record);

#endif
